package compose

import (
	"context"
	"errors"
	"strings"
	"testing"
)

func TestProxyVariable(t *testing.T) {
	// A variable that sends programs to a proxy, or keeps them from one, must be known in any case; one that only ends alike must not.
	for name, want := range map[string]bool{
		"HTTP_PROXY": true, "https_proxy": true, "All_Proxy": true, "NO_PROXY": true, "no_proxy": true, "npm_config_proxy": true, "npm_config_noproxy": true, "NPM_CONFIG_HTTPS_PROXY": true, "FTP_PROXY": true,
		"GOPROXY": false, "PROXY": false, "HTTP_PROXY_HOST": false, "": false,
	} {
		if ProxyVariable(name) != want {
			t.Errorf("%s: want %t", name, want)
		}
	}
}

func TestCheckInside(t *testing.T) {
	// A service of the gateway's namespace must ask for nothing of that network; one outside may.
	for text, problem := range map[string]string{
		"hostname: x":                         `service "db" has a hostname`,
		"sysctls: {net.ipv4.ip_forward: 1}":   `service "db" sets sysctl net.ipv4.ip_forward`,
		"sysctls: [net.core.somaxconn=10]":    `service "db" sets sysctl net.core.somaxconn`,
		"environment: {no_proxy: secret-x}":   `service "db" has the variable no_proxy`,
		"environment: [HTTPS_PROXY=secret-x]": `service "db" has the variable HTTPS_PROXY`,
		"user: root":                          "",
		"environment: {GOPROXY: x}":           "",
	} {
		s, err := ParseServices(context.Background(), "web", "f.yaml", "/", []byte("services:\n  db:\n    image: busybox\n    "+text+"\n"), nil)
		if err != nil {
			t.Fatal(err)
		}
		var refusal *ServicesError
		switch err := s.CheckInside(nil); {
		case problem == "" && err != nil:
			t.Errorf("%s: %v", text, err)
		case problem != "" && (!errors.As(err, &refusal) || !strings.Contains(err.Error(), problem) || strings.Contains(err.Error(), "secret") || refusal.Hint == ""):
			t.Errorf("%s: %v, want %q", text, err, problem)
		}
		if err := s.CheckInside([]string{"db"}); err != nil {
			t.Errorf("%s, outside: %v", text, err)
		}
	}
}
