package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// What a job was refused must be in its record, and the entries that suggest
// prints, declared as they are, be exactly those with which the same job passes.
func TestWhatIsSuggestedPasses(t *testing.T) {
	u := newUser(t)
	u.withStub()
	web := func(name string) string {
		return service(name, fmt.Sprintf("import http.server\nclass H(http.server.BaseHTTPRequestHandler):\n"+
			"    def do_GET(self):\n        self.send_response(200); self.end_headers(); self.wfile.write(b'from %s ' + self.path.encode() + b'\\n')\n"+
			"import threading\nthreading.Thread(target=http.server.HTTPServer(('0.0.0.0', 8080), H).serve_forever, daemon=True).start()\nhttp.server.HTTPServer(('0.0.0.0', 8000), H).serve_forever()", name))
	}
	u.services("services:\n" + web("one") + web("two") + web("inside"))
	u.write("config/settings.yaml", "egress:\n  outside: [one, two]\n  allow: [provider:agent, \"service:one:8000\", \"service:two:8000\"]\n")
	job := "curl -fsS -o /dev/null http://inside:8000/; for at in one:8000 one:8080 two:8080; do curl -sS --max-time 60 http://$at/job || failed=1; done; exit ${failed:-0}"
	r := u.job(1, job, "--foreground")
	if r.stdout != "from one /job\n" {
		t.Fatalf("of three the one that is declared is reached: %s", r)
	}
	record := u.record()
	wantEnd(t, record, "failed", "exit", 1)
	if refused := refusedIn(t, record); !refused.Watched || !refused.has("one", 8080) || !refused.has("two", 8080) || len(refused.Refusals) != 2 {
		t.Errorf("the record's egress: %+v", refused)
	}
	run := record["id"].(string)
	// A check has said the same.
	u.must("egress", "check", u.name, "http://one:8000/job", "inside:8000", "localhost:8000")
	if r := u.want(1, "egress", "check", u.name, "one:8080", "two:8080"); !contains(r.stderr, "2 of 2 would not pass") {
		t.Error(r)
	}
	for _, verb := range [][]string{{"runs", "show", run}, {"egress", "denied", u.name, "--run", run}} {
		if got := u.must(verb...).stdout; !contains(got, "one") || !contains(got, "two") || !contains(got, "8080") {
			t.Errorf("%v: %s", verb, got)
		}
	}

	var suggested struct{ Data struct{ Entries []string } }
	if r := u.must("egress", "suggest", u.name, "--run", run, "--json"); json.Unmarshal([]byte(r.stdout), &suggested) != nil {
		t.Fatal(r)
	}
	if got, want := strings.Join(suggested.Data.Entries, " "), "service:one:8080 service:two:8080"; got != want {
		t.Errorf("suggested is %s, want %s", got, want)
	}
	flags := []string{"redeploy", u.name, "--task", "again", "--foreground"}
	for _, entry := range suggested.Data.Entries {
		flags = append(flags, "--egress-allow", entry)
	}
	if r = u.must(flags...); r.stdout != "from one /job\nfrom one /job\nfrom two /job\n" {
		t.Errorf("with what was suggested: %s", r)
	}
	if refused := refusedIn(t, u.record()); !refused.Watched || len(refused.Refusals) != 0 {
		t.Errorf("with what was suggested is refused: %+v", refused)
	}

	// Of a service that was only asked for by its name nobody knows the port, and an
	// address of the deployment's own network is another service's tomorrow.
	u.write("config/settings.yaml", "egress:\n  outside: [one, two]\n  allow: [provider:agent]\n")
	u.again(1, "curl -sS --max-time 60 http://one:8080/; own=$(hostname -i); curl -sS --max-time 60 http://${own%.*}.$((${own##*.} / 16 * 16 + 1)):8000/; exit 1", "--foreground", "--egress", "strict", "--egress-allow", "service:two:8000")
	r = u.must("egress", "suggest", u.name, "--run", u.record()["id"].(string))
	if !contains(r.stdout, "# no entry mends what was refused") || !contains(r.stdout, "one, stage dns: a service of yours; declare service:one:PORT") ||
		!contains(r.stdout, "port 8000, stage address: an address of the deployment's own network") {
		t.Errorf("a name alone: %s", r)
	}
}

// Of a deployment without a declaration nothing may be said to have been refused,
// nor to have not: nobody watches it.
func TestNothingIsWatchedUnrestricted(t *testing.T) {
	u := newUser(t)
	u.withStub()
	u.must("up", u.name, "--mode", "idle")
	for _, words := range [][]string{{"denied", u.name}, {"suggest", u.name}} {
		if got := u.must(append([]string{"egress"}, words...)...).stdout; !contains(got, "unrestricted: nothing is watched") || contains(got, "nothing was refused") {
			t.Errorf("%v: %s", words, got)
		}
		if got := u.must(append([]string{"egress", "--json"}, words...)...).stdout; !contains(got, `"watched":false`) {
			t.Errorf("%v: %s", words, got)
		}
	}
	if got := u.must("egress", "show", u.name).stdout; !contains(got, "unrestricted") {
		t.Errorf("show: %s", got)
	}
}
