package e2e

import (
	"os"
	"strings"
	"testing"
)

// foreign makes a container that is not ours under a name of ours, and removes
// it at the end. It never runs.
func (u *user) foreign(container string, labels ...string) {
	u.t.Helper()
	args := []string{"create", "--name", container, "--label", "agent-container-e2e=" + u.name, "--network", "none", "--entrypoint", "true"}
	for _, l := range labels {
		args = append(args, "--label", l)
	}
	docker(u.t, append(args, u.built()[0])...)
	u.t.Cleanup(func() { docker(u.t, "rm", "--force", container) })
}

// foreignVolume makes a volume that is not ours, with a file in it, and returns
// a function that reads the file.
func (u *user) foreignVolume(name string) (read func() string) {
	u.t.Helper()
	image := u.built()[0]
	inVolume := func(script string) string {
		u.t.Helper()
		return docker(u.t, "run", "--rm", "--label", "agent-container-e2e="+u.name, "--network", "none", "--user", "0",
			"--volume", name+":/volume", "--entrypoint", "sh", image, "-c", script)
	}
	docker(u.t, "volume", "create", "--label", "agent-container-e2e="+u.name, name)
	u.t.Cleanup(func() { docker(u.t, "volume", "rm", name) })
	inVolume("echo precious >/volume/file")
	return func() string { return inVolume("ls /volume; cat /volume/file") }
}

// A container with our name and without our label, or with the label of another
// deployment, must be refused by every verb, named, and left as it is.
func TestForeignContainerIsRefused(t *testing.T) {
	for kind, labels := range map[string][]string{"without a label": nil, "of another deployment": {"agent-container.name=e2e-somebody-else"}} {
		t.Run(kind, func(t *testing.T) {
			u := newUser(t)
			u.withStub()
			u.foreign(u.container(), labels...)
			const state = "{{.Id}} {{.State.Status}} {{.State.StartedAt}} {{json .Config.Labels}}"
			before := u.inspect(state)
			for _, args := range [][]string{
				{"up", u.name, "--mode", "idle"}, {"redeploy", u.name}, {"start", u.name}, {"stop", u.name},
				{"down", u.name, "--yes"}, {"down", u.name, "--purge", "--yes"}, {"wipe", u.name, "--yes"},
				{"exec", u.name, "--", "true"}, {"logs", u.name}, {"runs", "list", u.name},
			} {
				if r := u.want(2, args...); !contains(r.stderr, "container "+u.container()+" ") {
					t.Errorf("the container is not named: %s", r)
				}
				if now := u.inspect(state); now != before {
					t.Fatalf("%v changed the container from %s to %s", args, before, now)
				}
			}
			if volumes := docker(t, "volume", "ls", "--quiet", "--filter", "name="+u.container()); volumes != "" {
				t.Errorf("volumes were made: %s", volumes)
			}
		})
	}
}

// A volume with our name and without our label must be refused, named, and left
// as it is: by up before anything is made, and by every verb that removes.
func TestForeignVolumeIsRefused(t *testing.T) {
	u := newUser(t)
	u.withStub()
	volume := u.container() + "-claude"
	read := u.foreignVolume(volume)
	for _, args := range [][]string{
		{"up", u.name, "--mode", "idle"}, {"down", u.name, "--yes"}, {"down", u.name, "--purge", "--yes"}, {"wipe", u.name, "--yes"},
	} {
		if r := u.want(2, args...); !contains(r.stderr, "volume "+volume+" ") {
			t.Errorf("the volume is not named: %s", r)
		}
	}
	if got := read(); got != "file\nprecious" {
		t.Errorf("the volume holds %q", got)
	}
	if all := docker(t, "ps", "--all", "--quiet", "--filter", "name="+u.container()) + docker(t, "volume", "ls", "--quiet", "--filter", "label=agent-container.name="+u.name); all != "" {
		t.Errorf("something was made: %s", all)
	}
}

// A redeploy that runs into a foreign volume must leave the deployment running
// as it was.
func TestForeignVolumeStopsNoDeployment(t *testing.T) {
	u := newUser(t)
	u.withStub()
	u.must("up", u.name, "--mode", "idle", "--workspace", "ephemeral")
	read := u.foreignVolume(u.container() + "-workspace")
	before := u.inspect("{{.Id}} {{.State.Status}} {{.State.StartedAt}}")
	u.want(2, "redeploy", u.name, "--workspace", "persistent")
	if now := u.inspect("{{.Id}} {{.State.Status}} {{.State.StartedAt}}"); now != before {
		t.Errorf("the deployment went from %s to %s", before, now)
	}
	// Nor may a purge take it for ours.
	u.want(2, "down", u.name, "--purge", "--yes")
	if got := read(); got != "file\nprecious" {
		t.Errorf("the volume holds %q", got)
	}
}

// What services need is under the same rule: their containers, their volumes
// and the network, with our name and without our label, are refused before
// anything is made.
func TestForeignThingsOfServicesAreRefused(t *testing.T) {
	for _, kind := range []string{"container", "volume", "network"} {
		t.Run(kind, func(t *testing.T) {
			u := newUser(t)
			u.withStub()
			u.services("services:\n  db:\n    image: IMAGE\n    pull_policy: never\n    init: true\n    entrypoint: [sleep, '600']\n    volumes: ['data:/data']\nvolumes:\n  data:\n")
			var name string
			switch kind {
			case "container":
				name = u.container() + ".db"
				u.foreign(name)
			case "volume":
				name = u.container() + ".data"
				read := u.foreignVolume(name)
				defer func() {
					if got := read(); got != "file\nprecious" {
						t.Errorf("the volume holds %q", got)
					}
				}()
			case "network":
				name = u.container()
				docker(t, "network", "create", "--label", "agent-container-e2e="+u.name, "--subnet", "10.231.255.0/28", name)
				t.Cleanup(func() { docker(t, "network", "rm", name) })
			}
			r := u.want(2, "up", u.name, "--mode", "idle")
			if !contains(r.stderr, kind+" "+name+" ") {
				t.Errorf("it is not named: %s", r)
			}
			if made := docker(t, "ps", "--all", "--quiet", "--filter", "label=agent-container.name="+u.name) +
				docker(t, "volume", "ls", "--quiet", "--filter", "label=agent-container.name="+u.name); made != "" {
				t.Errorf("something was made: %s", made)
			}
		})
	}
}

// services writes the user's services file; IMAGE in it is the stub's image,
// which has a shell, python3 and curl.
func (u *user) services(content string) {
	u.t.Helper()
	content = strings.ReplaceAll(content, "IMAGE", u.built()[0])
	u.write("config/"+u.name+".services.yaml", content)
}

// noServices removes the services file.
func (u *user) noServices() {
	u.t.Helper()
	if err := os.Remove(u.path("config", u.name+".services.yaml")); err != nil {
		u.t.Fatal(err)
	}
}
