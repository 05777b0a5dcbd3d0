package runs

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-container/agent-container/spec"
)

// element is an element of a page, with the attributes that are ours alone and
// the text directly in it.
type element struct {
	Name  string
	Attrs map[string]string
	Text  string
}

// String leaves out only what attributes say to people.
func (e element) String() string {
	s := e.Name
	for _, name := range slices.Sorted(maps.Keys(e.Attrs)) {
		s += " " + name
		if name != "aria-label" {
			s += "=" + e.Attrs[name]
		}
	}
	return s
}

// makePage renders a report and takes it apart. The template is well-formed XML, so
// that a strict parser finds whatever a record has broken.
func makePage(t *testing.T, list ...Reported) (string, []element) {
	t.Helper()
	var b bytes.Buffer
	if err := Report(&b, list); err != nil {
		t.Fatal(err)
	}
	var elements []element
	var open []int
	for d := xml.NewDecoder(bytes.NewReader(b.Bytes())); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return b.String(), elements
		}
		if err != nil {
			t.Fatalf("the page is not well-formed: %v", err)
		}
		switch v := token.(type) {
		case xml.StartElement:
			e := element{Name: v.Name.Local, Attrs: map[string]string{}}
			for _, a := range v.Attr {
				e.Attrs[a.Name.Local] = a.Value
			}
			open = append(open, len(elements))
			elements = append(elements, e)
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
			if len(open) > 0 {
				elements[open[len(open)-1]].Text += string(v)
			}
		}
	}
}

// named are the elements with a name and a class, any class when it is empty.
func named(list []element, name, class string) []element {
	return slices.DeleteFunc(slices.Clone(list), func(e element) bool {
		return e.Name != name || class != "" && !slices.Contains(strings.Fields(e.Attrs["class"]), class)
	})
}

// jobRun is an ended job, n minutes after noon.
func jobRun(n int, change func(*spec.Record)) Reported {
	r := closed(n, 0)
	r.Host, r.Deployment, r.Image, r.Engine, r.Disagreement, r.KeptAt, r.Egress = "local", "web", "sha256:1", nil, "", nil, nil
	r.Attempt = 1
	started := at(n).Add(2 * time.Second)
	r.AgentAt = &started
	r.SetTask([]byte("do it"), true)
	if change != nil {
		change(&r)
	}
	return Reported{Record: &r}
}

// fillStrings puts text into every string of v.
func fillStrings(v reflect.Value, text string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Pointer:
		if v.Type() == reflect.TypeFor[*time.Time]() {
			return
		}
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		fillStrings(v.Elem(), text)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 3, 3))
		for i := range 3 {
			fillStrings(v.Index(i), text)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range v.NumField() {
			fillStrings(v.Field(i), text)
		}
	}
}

// full are two runs whose every string is text.
func full(text string) []Reported {
	diff := "diff --git a/%[1]s b/%[1]s\n--- a/%[1]s\n+++ b/%[1]s\n@@ -1 +1 @@ %[1]s\n-%[1]s\n+%[1]s\n %[1]s\n"
	list := []Reported{jobRun(1, nil), jobRun(9, nil)}
	for i := range list {
		fillStrings(reflect.ValueOf(list[i].Record).Elem(), text)
		list[i].Record.Kind = spec.Headless
		list[i].Record.Repository.Unpushed = 2
		list[i].Record.Repository.State = "ok"
		list[i].Output, list[i].Diff, list[i].Lost = []byte(text), fmt.Appendf(nil, diff, text), text
	}
	return list
}

var payloads = []string{
	`<script>document.title="owned"</script>`, `</style></title></pre><script>alert(1)</script>`, `" onload="alert(1)`, `'><img src=x onerror=alert(1)>`,
	`]]><!--`, `--><svg onload=alert(1)>`, `javascript:alert(1)`, `{{.}}{{template "h"}}`, `&lt;b&gt;&amp;`, "\x1b]0;title\a\x1b[2J", "\u202egnp.exe\u2066", "a\x00b", "\xff\xfe\xc0", "\u009b31m\u2028", `url(//x)`, `a%20"b`,
}

func TestReportOfHostileRecords(t *testing.T) {
	// Whatever stands in a record, the page must have the elements that it has for a harmless one, show the text as text, and hold no character that steers.
	for _, n := range []int{1, 2} {
		_, harmless := makePage(t, full("x")[:n]...)
		for _, payload := range payloads {
			html, elements := makePage(t, full(payload)[:n]...)
			if d := cmp.Diff(skeleton(harmless), skeleton(elements)); d != "" {
				t.Errorf("%q changes the page: %s", payload, d)
			}
			if i := strings.IndexFunc(html, steers); i >= 0 {
				t.Errorf("%q: %q is in the page", payload, html[i:i+4])
			}
			if strings.Contains(html, "<script") || strings.Contains(html, "<img") || strings.Contains(html, "ZgotmplZ") {
				t.Errorf("%q came through", payload)
			}
			shown := 0
			for _, e := range elements {
				shown += strings.Count(e.Text, strings.TrimSpace(spec.PrintableText(payload)))
			}
			if shown < 7*n { // in a line a control character is a space, and shown otherwise
				t.Errorf("%q is shown %d times only", payload, shown)
			}
		}
	}
}

func skeleton(list []element) string {
	var b strings.Builder
	for _, e := range list {
		fmt.Fprintln(&b, e)
	}
	return b.String()
}

func steers(r rune) bool {
	return r < 0x20 && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 || r == '\u2028' || r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069'
}

func TestReportNeedsNothing(t *testing.T) {
	// A page must have its policy before anything that it governs, no script, and no address beside its own places, all of which exist.
	html, elements := makePage(t, full("x")...)
	policy := strings.Index(html, `content="default-src 'none'; style-src 'unsafe-inline'; img-src data:;`)
	if policy < 0 || policy > strings.Index(html, "<style") {
		t.Error("the policy does not come first")
	}
	ids := map[string]bool{}
	for _, e := range elements {
		if id := e.Attrs["id"]; id != "" {
			if ids[id] {
				t.Errorf("two elements have the id %s", id)
			}
			ids[id] = true
		}
	}
	level := 0
	for _, e := range elements {
		for name, value := range e.Attrs {
			if name == "src" || name == "style" || strings.HasPrefix(name, "on") {
				t.Errorf("%v has %s", e, name)
			}
			if name == "href" && value != "data:," && !ids[strings.TrimPrefix(value, "#")] {
				t.Errorf("%v leads nowhere", e)
			}
			if name == "aria-labelledby" && !ids[value] {
				t.Errorf("%v is named by nothing", e)
			}
		}
		switch {
		case e.Name == "script" || e.Name == "iframe" || e.Name == "form":
			t.Errorf("the page has %v", e)
		case e.Name == "th" && e.Attrs["scope"] == "", e.Name == "svg" && e.Attrs["aria-label"] == "" && e.Attrs["role"] == "img":
			t.Errorf("%v does not say what it is", e)
		case regexp.MustCompile(`^h[1-6]$`).MatchString(e.Name):
			now := int(e.Name[1] - '0')
			if now > level+1 {
				t.Errorf("a heading of level %d follows one of level %d", now, level)
			}
			level = now
		}
	}
	if strings.Contains(html, "url(") || strings.Contains(html, "@import") || strings.Contains(html, "http") && !strings.Contains(html, "http-equiv") {
		t.Error("the page loads something")
	}
}

func TestReportIsTheSame(t *testing.T) {
	// The same runs must give the same page.
	list := full("x")
	for i := range 20 {
		list = append(list, jobRun(40-i, func(r *spec.Record) {
			r.Deployment, r.Repository = fmt.Sprint("web", i%7), &spec.Repository{State: "ok", Remote: true, Unpushed: 1}
		}))
	}
	first, _ := makePage(t, list...)
	for range 5 {
		if again, _ := makePage(t, list...); again != first {
			t.Fatal("two pages of the same runs differ")
		}
	}
}
