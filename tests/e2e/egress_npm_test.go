package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// npm must get its packages where provider:npm is permitted and the host's own
// configuration says that they are; a registry in a network of the user's own has to
// be permitted as such, and a service by its name.
func TestNPMThroughEgress(t *testing.T) {
	npm, err := exec.LookPath("npm")
	if err != nil {
		t.Skip("npm is not installed on this machine: whether provider:npm reads its configuration is not seen")
	}
	if npm, err = filepath.EvalSymlinks(npm); err != nil || filepath.Base(npm) != "npm-cli.js" {
		t.Skipf("npm is %s and not a script that another node can run: %v", npm, err)
	}
	u := newUser(t)
	script, err := os.ReadFile("testdata/egress/registry.py")
	if err != nil {
		t.Fatal(err)
	}
	u.write("config/"+u.name+".services.yaml", "services:\n"+strings.ReplaceAll(service("registry", string(script)), "IMAGE", u.built("--agent", "pi")[0]))
	u.write("config/settings.yaml", "agent: pi\negress:\n  outside: [registry]\n")
	u.write("home/.npmrc", "registry=http://registry:8000/\n")
	u.env = append(u.env, "npm_config_registry=http://registry:8000/") // before one of this machine's
	install := func() result {
		return u.run("exec", u.name, "--", "sh", "-c", "cd /workspace && rm -rf node_modules && /opt/agent/bin/node ~/npm/bin/npm-cli.js install "+
			"--registry http://registry:8000/ --no-audit --no-fund --fetch-retries 0 --fetch-timeout 60000 tiny && /opt/agent/bin/node -p 'require(\"tiny\")'")
	}
	withNPM := func() { // no image of ours has it
		docker(t, "cp", filepath.Dir(filepath.Dir(npm)), u.container()+":/home/agent/npm")
	}
	asked := func() string { return docker(t, "logs", u.container()+".registry") }

	r := u.must("up", u.name, "--mode", "idle", "--egress", "strict", "--egress-allow", "provider:npm")
	if !contains(r.stderr, "provider:npm is registry:8000 (as npm is configured here); a host of your own network needs private:HOST as well") {
		t.Errorf("where npm gets packages is not said: %s", r)
	}
	withNPM()
	if r := install(); r.code == 0 || contains(asked(), "GET") {
		t.Errorf("a registry at a private address: %s, asked %s", r, asked())
	}
	if got := u.must("egress", "suggest", u.name).stdout; !contains(got, "registry port 8000, stage resolve: a service of yours; declare service:registry:8000") {
		t.Errorf("what would mend it: %s", got)
	}
	u.must("redeploy", u.name, "--egress-allow", "provider:npm", "--egress-allow", "service:registry:8000")
	withNPM()
	if r := install(); r.code != 0 || !strings.HasSuffix(r.stdout, "from the registry\n") {
		t.Errorf("with its service: %s, asked %s", r, asked())
	}
	eventually(t, patience, func() string {
		if seen := asked(); !contains(seen, "GET /tiny/-/tiny-1.0.0.tgz") {
			return "the registry was asked " + seen
		}
		return ""
	})
	if got := u.must("egress", "denied", u.name).stdout; got != "nothing was refused\n" {
		t.Errorf("with its service: refused: %s", got)
	}
}
