package gateway

import (
	"slices"
	"testing"
)

// The resolvers must be those that Docker names, those that it would ask itself
// apart; another one on the loopback could be any program and must not be asked.
func TestResolvers(t *testing.T) {
	for text, want := range map[string][2][]string{
		"nameserver 127.0.0.11\noptions ndots:0\n# ExtServers: [192.0.2.53 192.0.2.54]\n": {{"127.0.0.11:53"}, {"192.0.2.53:53", "192.0.2.54:53"}},
		"nameserver 127.0.0.11\n# ExtServers: [host(127.0.0.53)]\n":                       {{"127.0.0.11:53"}, nil},
		"nameserver 127.0.0.11\n# ExtServers: [host(127.0.0.53) 192.0.2.53]\n":            {{"127.0.0.11:53"}, {"192.0.2.53:53"}},
		"nameserver 127.0.0.53\nnameserver ::1\nnameserver 192.0.2.53\n":                  {{"192.0.2.53:53"}, nil},
		"nameserver\nnameserver x\n# ExtServers:\n":                                       {nil, nil},
	} {
		if engine, beyond := resolvers(text); !slices.Equal(engine, want[0]) || !slices.Equal(beyond, want[1]) {
			t.Errorf("%q: %v and %v, want %v", text, engine, beyond, want)
		}
	}
}
