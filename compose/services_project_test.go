package compose

import (
	"context"
	"errors"
	"strings"
	"testing"
)

func parseProject(text string) (*Services, error) {
	return ParseProjectServices(context.Background(), "web", servicesFile, "/config", []byte(text))
}

func TestProjectServicesRefused(t *testing.T) {
	// What reaches the host must be refused in a project's file, although the user's own may have it.
	t.Setenv("SET", "canary")
	volume := func(keys string) string {
		return "services: {db: {image: x, volumes: ['vol:/s']}}\nvolumes: {vol: " + keys + "}\n"
	}
	for text, problem := range map[string]string{
		one("build: ."):                                           `key "services.db.build" is not allowed`,
		one("build: {context: .}"):                                `key "services.db.build" is not allowed`,
		one("env_file: a.env"):                                    `key "services.db.env_file" is not allowed`,
		one("volumes: ['/srv:/s']"):                               "mounts /srv",
		one("volumes: ['./a:/s:ro']"):                             "mounts /config/a",
		one("volumes: ['~/.ssh:/s']"):                             "mounts ",
		one("volumes: [{type: bind, source: /srv, target: /s}]"):  "mounts /srv",
		one("volumes: [{type: image, source: x, target: /s}]"):    "mounts x",
		one("volumes: [{type: npipe, source: x, target: /s}]"):    "mounts x",
		one("volumes: [{type: cluster, source: x, target: /s}]"):  "mounts x",
		volume("{external: true}"):                                `key "volumes.vol.external" is not allowed`,
		volume("{name: other}"):                                   `key "volumes.vol.name" is not allowed`,
		volume("{driver: local}"):                                 `key "volumes.vol.driver" is not allowed`,
		volume("{driver_opts: {type: none, o: bind, device: /}}"): `key "volumes.vol.driver_opts" is not allowed`,
		one("environment: {A: $SET}"):                             "$SET: a project's services take no variable",
		one("environment: {A: '${SET}'}"):                         "${SET}: a project's services take no variable",
		one("environment: {A: 'a ${SET:-b}'}"):                    "a project's services take no variable",
		one("environment: {A: '${SET-$$b}'}"):                     "a project's services take no variable",
		one("command: [sh, -c, 'echo ${SET:?x}']"):                "a project's services take no variable",
		one("environment: [SET]"):                                 "the variable SET without a value",
		one("environment: {SET: }"):                               "the variable SET without a value",
		one("environment: {SET: null}"):                           "the variable SET without a value",
		one("pids_limit: -1"):                                     `key "services.db.pids_limit" is not allowed`,
		one("privileged: true"):                                   `key "services.db.privileged" is not allowed`,
		"services:\n  agent: {image: x}\n":                        `service "agent" is our own`,
	} {
		_, err := parseProject(text)
		var e *ServicesError
		if !errors.As(err, &e) || !strings.Contains(err.Error(), problem) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%q: %v, want %q", text, err, problem)
		}
	}
}

func TestProjectServicesAllowed(t *testing.T) {
	// A project's services must have images, words, volumes of their own and dollar signs that are meant.
	s, err := parseProject(`services:
  db:
    image: postgres:17
    environment: {A: "$$B", C: 1, EMPTY: ""}
    volumes: ["data:/d", "/anonymous", {type: tmpfs, target: /t}]
    command: [sh, -c, "echo $$HOME"]
    healthcheck: {test: [CMD, "true"]}
    depends_on: [other]
  other: {image: x}
volumes:
  data:
`)
	if err != nil {
		t.Fatal(err)
	}
	if got := *s.project.Services["db"].Environment["A"]; got != "$B" || s.File != servicesFile {
		t.Errorf("a doubled dollar sign became %q, the file %q", got, s.File)
	}
}

func FuzzParseProjectServices(f *testing.F) {
	// What a project's file may hold must be a part of what the user's own may, without a variable or a file of the host.
	for _, s := range []string{goldenServices, one("volumes: ['/a:/b']"), one("environment: [SET]"), one("environment: {A: '$$B'}"), one("volumes: ['a:/b']") + "volumes: {a: {}}\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parseProject(text)
		if err != nil {
			if !IsServicesError(err) {
				t.Errorf("%q: %T", text, err)
			}
			return
		}
		if _, err := parseText(text, nil); err != nil {
			t.Errorf("%q: the user's own file would be refused: %v", text, err)
		}
		for name, svc := range s.project.Services {
			for _, v := range svc.Volumes {
				if v.Type == "bind" {
					t.Errorf("%q: service %s mounts %s", text, name, v.Source)
				}
			}
			for k, v := range svc.Environment {
				if v == nil {
					t.Errorf("%q: service %s takes %s", text, name, k)
				}
			}
			if svc.Build != nil || len(svc.EnvFiles) > 0 {
				t.Errorf("%q: service %s reads files", text, name)
			}
		}
	})
}
