package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/agent-container/agent-container/spec"
)

// unreadable is a script that returns the texts whose contrast is too low, by
// the rule of WCAG 2: 4.5, and 3 for large ones.
const unreadable = `(() => {
  const parse = c => { const m = c.match(/[\d.]+/g).map(Number); return m.length > 3 ? m : [...m, 1] };
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255).map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4).reduce((s, v, i) => s + v * [.2126, .7152, .0722][i], 0);
  const behind = e => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c[3] > 0) return c } return [255, 255, 255] };
  const bad = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let n; n = walker.nextNode();) {
    const e = n.parentElement, s = getComputedStyle(e);
    if (!n.data.trim() || e.closest('title') || s.visibility == 'hidden' || !e.getClientRects().length) continue;
    const a = light(parse(e.closest('svg') ? s.fill : s.color)), b = light(behind(e)), size = parseFloat(s.fontSize);
    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (ratio < (size >= 24 || size >= 18.66 && s.fontWeight >= 700 ? 3 : 4.5)) bad.push(n.data.trim().slice(0, 40) + ' ' + ratio.toFixed(2));
  }
  return bad;
})()`

// tooWide is a script that returns what reaches over the edge of the page.
const tooWide = `[...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > document.documentElement.clientWidth + 1 && !e.closest('.first')).map(e => e.outerHTML.slice(0, 120))
  .concat(document.documentElement.scrollWidth > document.documentElement.clientWidth ? ['the page is ' + document.documentElement.scrollWidth + ' wide'] : [])`

// wantGood checks that a page can be looked at as it stands, and with all open.
func wantGood(t *testing.T, b *browser, about string) {
	t.Helper()
	for _, open := range []string{"as it is", "open"} {
		if open == "open" {
			var n int
			b.eval(`(l => (l.forEach(d => d.open = true), l.length))(document.querySelectorAll('details'))`, &n)
		}
		for what, script := range map[string]string{"too wide": tooWide, "hard to read": unreadable} {
			var list []string
			if b.eval(script, &list); len(list) > 0 {
				t.Errorf("%s, %s: %d are %s: %.700q", about, open, len(list), what, list[:min(len(list), 8)])
			}
		}
		b.picture(about + " " + open)
	}
	if problems := b.problems(); len(problems) > 0 {
		t.Errorf("%s: %q", about, problems)
	}
}

// hostile is what a container may put wherever a text goes.
const hostile = `<script>document.title="owned"</script><img src=x onerror='document.title="owned"'></style></title>`

// hostileJob changes a repository and its own record, and writes what a page
// must not obey.
const hostileJob = `git init -q -b main . && git init -q --bare "$HOME/.claude/origin.git" && git remote add origin "$HOME/.claude/origin.git"
mkdir -p src/a/very/long/path/that/goes/on/through/many/directories/of/a/repository/until/nobody/remembers/where/it/began
echo "$PAYLOAD" >'src/<b>"x".html'; seq 1 40 >src/a/very/long/path/that/goes/on/through/many/directories/of/a/repository/until/nobody/remembers/where/it/began/numbers
git add -A; git -c user.name=t -c user.email=t@example commit -qm first; echo "two" >after; printf 'raw \033[2J\033[31mred\033[0m\n%s\n' "$PAYLOAD"; head -c 2000 /dev/zero | tr '\0' x
python3 -c '
import glob, json, os
path = sorted(glob.glob("/var/lib/agent-container/runs/*.json"))[-1]
record, text = json.load(open(path)), os.environ["PAYLOAD"]
record["agent_version"], record["notes"] = text, [text, "a note"]
json.dump(record, open(path, "w"))'`

// A report of real runs must tell in a real browser how they ended, in any
// width and in both colour schemes, and never run what a container wrote.
func TestReportInABrowser(t *testing.T) {
	u := newUser(t)
	b := newBrowser(t)
	u.withStub()
	u.job(0, `n=$(ls /var/lib/agent-container/runs/*.json | wc -l); echo "attempt $n"; sleep 0.3; [ "$n" -ge 3 ] || exit 7`, "--headless-restart", "on-failure:3", "--foreground")
	u.want(0, "redeploy", u.name, "--task", hostile, "--env", "STUB_RUN="+hostileJob, "--env", "PAYLOAD="+hostile, "--headless-restart", "no", "--foreground")
	newest := u.record()["id"].(string)

	one, all := u.path("one.html"), u.path("all.html")
	u.must("runs", "report", newest, "--file", one)
	if r := u.must("runs", "report", u.name, "--file", all); !contains(r.stderr, "report of 4 runs: "+all) {
		t.Errorf("it does not say where the page is: %s", r)
	}
	eachView(func(width int, scheme string) {
		about := fmt.Sprintf("one %d %s", width, scheme)
		b.visit(one, width, scheme)
		wantPage(t, b, about, "Run of "+u.name, map[string]string{
			"h1 .badge": "finished", ".sentence": "The agent exited with code 0.", "aside.alarm strong": "1 commit was not pushed", "pre.task": hostile,
			".notes li:first-child": hostile, ".count": "+42",
		})
		wantGood(t, b, about)

		about = fmt.Sprintf("all %d %s", width, scheme)
		b.visit(all, width, scheme)
		wantPage(t, b, about, "4 runs of "+u.name, map[string]string{".tally": "2 failed2 finished", ".detailed li:nth-child(2) small": "3 attempts", ".detailed li:nth-child(2) .end": "finished, "})
		var rows []string
		b.eval(`[...document.querySelectorAll('tbody tr')].map(r => r.cells[0].innerText + ' ' + r.cells[1].innerText)`, &rows)
		for i, want := range []string{"^" + u.name + "\n.* finished\nexit 0 1 not pushed$", "^" + u.name + " attempt 3\n.* finished\nexit 0$", " attempt 2\n.* failed\nexit 7$", "^" + u.name + "\n.* failed\nexit 7$"} {
			if len(rows) != 4 || !regexp.MustCompile(want).MatchString(rows[i]) {
				t.Errorf("%s: rows are %q, row %d should be %q", about, rows, i, want)
			}
		}
		wantGood(t, b, about)
	})

	// What is read with open eyes must be there for others: the diff, the output.
	b.visit(one, 1200, "light")
	var seen struct {
		Files       []string
		Output, Ins string
		Red, Green  bool
	}
	b.eval(`(q => ({files: q('.file summary code').map(e => e.textContent), output: q('.output')[0].textContent, ins: q('.diff ins').map(e => e.textContent).join(''),
		green: getComputedStyle(q('.diff ins')[0]).backgroundColor != getComputedStyle(q('.panel')[0]).backgroundColor}))(s => [...document.querySelectorAll(s)])`, &seen)
	if len(seen.Files) != 3 || !contains(strings.Join(seen.Files, "\n"), `src/<b>\"x\".html`) || !contains(seen.Ins, hostile) || !contains(seen.Ins, "+two") || !seen.Green {
		t.Errorf("the changes are shown as %+v", seen)
	}
	if !strings.HasPrefix(seen.Output, "raw \ufffd[2Jred\n"+hostile+"\n") {
		t.Errorf("the output is shown as %.300q", seen.Output)
	}

	// Links and what opens must work without a script.
	b.visit(all, 400, "light")
	var at struct {
		Top  float64
		Open bool
	}
	b.eval(`(() => { document.querySelector('tbody tr:nth-child(3) a').click(); document.querySelector('#run-3 summary').click();
		return {top: document.querySelector('#run-3').getBoundingClientRect().top, open: document.querySelector('#run-3 details').open} })()`, &at)
	if at.Top < -5 || at.Top > 300 || !at.Open {
		t.Errorf("after a click on the third run: %+v", at)
	}
}

// eachView calls f for every width and scheme in which people look at a page.
func eachView(f func(width int, scheme string)) {
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int{1200, 400} {
			f(width, scheme)
		}
	}
	f(700, "print")
}

// wantPage checks the title, that nothing has run, and what stands in elements.
func wantPage(t *testing.T, b *browser, about, title string, texts map[string]string) {
	t.Helper()
	var page struct {
		Title, Mode string
		Active      int
		Brightness  float64
	}
	b.eval(`({title: document.title, mode: document.compatMode, active: document.querySelectorAll('script, iframe, object, embed, form, img, [onerror], [onload]').length,
		brightness: getComputedStyle(document.body).backgroundColor.match(/\d+/g).map(Number).slice(0, 3).reduce((a, b) => a + b) / 765})`, &page)
	if page.Title != title+" – agent-container" || page.Mode != "CSS1Compat" || page.Active != 0 {
		t.Errorf("%s: the page is %+v", about, page)
	}
	if dark := page.Brightness < 0.2; dark != strings.HasSuffix(about, "dark") {
		t.Errorf("%s: its brightness is %.2f", about, page.Brightness)
	}
	for selector, want := range texts {
		argument, _ := json.Marshal(selector)
		var got string
		b.eval(`(e => e ? e.textContent : "(nothing)")(document.querySelector(`+string(argument)+`))`, &got)
		if !contains(strings.ReplaceAll(got, "\n", ""), want) {
			t.Errorf("%s: %s is %.300q, without %q", about, selector, got, want)
		}
	}
}

// Forty runs with long names over days and with every outcome must be a good
// page too; and so must be none, a lost one, and one that goes on.
func TestReportOfManyRuns(t *testing.T) {
	u := newUser(t)
	b := newBrowser(t)
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	names := []string{u.name, strings.Repeat("a-long-name-", 4)[:40], strings.Repeat("w", 40)}
	for i := range 40 {
		r := manyRun(i, names[i%3], start.Add(time.Duration(i*i)*7*time.Minute))
		content, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		base := fmt.Sprintf("data/runs/local/%s/%s", r.Deployment, r.ID)
		u.write(base+".json", string(content))
		u.write(base+spec.OutputSuffix, strings.Repeat("a line of output\n", 10)+strings.Repeat("W", 500))
		u.write(base+spec.DiffSuffix, "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+"+strings.Repeat("new", 200)+"\n")
	}
	pages := map[string][]string{
		"forty": nil, "none": {"--since", "2099-01-01"}, "lost": {spec.NewRecordID(start.Add(4*4*7*time.Minute), []byte{0, 0, 0, 4})},
		"open": {spec.NewRecordID(start.Add(39*39*7*time.Minute), []byte{0, 0, 0, 39})},
	}
	titles := map[string]string{"forty": "40 runs of 3 deployments", "none": "No runs", "lost": "Run of " + names[1], "open": "Run of " + u.name}
	for name, args := range pages {
		path := u.path(name + ".html")
		u.must(append([]string{"runs", "report", "--file", path}, args...)...)
		eachView(func(width int, scheme string) {
			about := fmt.Sprintf("%s %d %s", name, width, scheme)
			b.visit(path, width, scheme)
			wantPage(t, b, about, titles[name], nil)
			wantGood(t, b, about)
		})
	}
	b.visit(u.path("forty.html"), 1200, "light")
	var n []int
	b.eval(`['tbody tr', 'article', '.panel .detailed .bar', '.lanes'].map(s => document.querySelectorAll(s).length)`, &n)
	if len(n) != 4 || n[0] != 40 || n[1] != 40 || n[2] < 60 || n[3] < 40 {
		t.Errorf("rows, runs, bars, charts: %v", n)
	}
	if info, err := os.Stat(u.path("forty.html")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

// manyRun is the nth of many runs; the outcomes take turns.
func manyRun(n int, name string, at time.Time) *spec.Record {
	agent, kept := at.Add(time.Duration(n)*time.Second), at.Add(2*time.Hour)
	r := &spec.Record{
		Schema: spec.RecordSchema, ID: spec.NewRecordID(at, []byte{0, 0, 0, byte(n)}), Deployment: name, Host: "local", Agent: "claude", AgentVersion: "2.1.332",
		Image: "sha256:" + strings.Repeat("0123456789abcdef", 4), Kind: spec.Headless, Attempt: 1, StartedAt: at, AgentAt: &agent, KeptAt: &kept, OutputBytes: int64(n) * 70001,
		Engine: &spec.EngineReport{Status: "exited", ExitCode: n, StartedAt: at.Format(time.RFC3339Nano), FinishedAt: at.Format(time.RFC3339Nano)},
	}
	r.SetTask([]byte(strings.Repeat("Look at everything. ", 1+n%3*30)), true)
	code := n
	switch end := at.Add(time.Duration(n*n) * time.Second); n % 10 {
	case 4:
		r.Finish(spec.OutcomeLost, spec.CauseLost, nil, end)
		r.Disagreement, r.Notes = "the record says exit code 4, the engine 137", []string{"a note", strings.Repeat("long", 200)}
	case 5:
		r.Finish(spec.OutcomeFailed, spec.CauseOOM, &code, end)
	case 6:
		r.Finish(spec.OutcomeStopped, spec.CauseStop, &code, end)
	case 7:
		r.Kind, r.AgentAt, r.Task = spec.Interactive, nil, nil
		r.Finish(spec.OutcomeEnded, spec.CauseExit, nil, end)
	case 8:
		r.AgentAt = nil
		r.Finish(spec.OutcomeFailed, spec.CauseSetup, &code, end)
	case 9:
		if n < 39 {
			r.Finish(spec.OutcomeFailed, spec.CauseTimeout, &code, end)
		}
	default:
		zero := 0
		r.Finish(spec.OutcomeFinished, spec.CauseExit, &zero, end)
		r.Repository = &spec.Repository{
			State: "ok", Branch: strings.Repeat("branch", 20), Remote: true, Unpushed: n % 4, Paths: []string{"x", strings.Repeat("path/", 50)},
			Commits: []string{strings.Repeat("ab", 20), strings.Repeat("cd", 20)},
		}
	}
	return r
}

// The checks of the tests above must see what they are for: a script, what a
// policy forbids, a request, what is too wide or too pale.
func TestBrowserSeesWhatIsWrong(t *testing.T) {
	t.Parallel()
	b := newBrowser(t)
	dir := t.TempDir()
	const policy = `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">`
	for name, c := range map[string]struct{ html, problem, script string }{
		"forbidden": {policy + `<script>document.title = "owned"</script>`, "Content Security Policy", ""},
		"handler":   {policy + `<p onclick="1">x</p>`, "Content Security Policy", ""},
		"console":   {`<script>console.log("x")</script>`, "consoleAPICalled", ""},
		"thrown":    {`<script>throw "x"</script>`, "exceptionThrown", ""},
		"request":   {`<img src="x.png">`, "it asks for more", ""},
		"wide":      {`<p style="width: 2000px">x</p>`, "", tooWide},
		"pale":      {`<p style="color: #999">x</p>`, "", unreadable},
		"good":      {`<p>x</p>`, "", ""},
	} {
		path := fmt.Sprintf("%s/%s.html", dir, name)
		if err := os.WriteFile(path, []byte("<!DOCTYPE html><meta charset=utf-8><title>t</title>"+c.html), 0o600); err != nil {
			t.Fatal(err)
		}
		b.visit(path, 800, "light")
		var title string
		b.eval("document.title", &title)
		problems := b.problems()
		if title != "t" || (len(problems) > 0) != (c.problem != "") || !contains(strings.Join(problems, "\n"), c.problem) {
			t.Errorf("%s: title %q, problems %q", name, title, problems)
		}
		for _, script := range []string{tooWide, unreadable} {
			var list []string
			if b.eval(script, &list); (len(list) > 0) != (script == c.script) {
				t.Errorf("%s: %q", name, list)
			}
		}
	}
	b.visit(dir+"/forbidden.html", 800, "dark")
	var dark bool
	if b.eval(`matchMedia("(prefers-color-scheme: dark)").matches`, &dark); !dark {
		t.Error("the browser does not prefer dark")
	}
}
