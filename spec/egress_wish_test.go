package spec

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// declared is a declaration of words: an enforcement and entries, "+" before one
// that was typed, "/" before a service outside; nil for "".
func declared(t *testing.T, text string) *Egress {
	t.Helper()
	words := strings.Fields(text)
	if len(words) == 0 {
		return nil
	}
	e := &Egress{Enforcement: Enforcement(words[0]), Allow: []string{}}
	for _, word := range words[1:] {
		entry, typed := strings.CutPrefix(word, "+")
		service, outside := strings.CutPrefix(word, "/")
		switch {
		case outside:
			e.Outside = append(e.Outside, service)
			continue
		case typed:
			e.Typed = append(e.Typed, entry)
		}
		e.Allow = append(e.Allow, entry)
	}
	slices.Sort(e.Allow)
	slices.Sort(e.Typed)
	e.Allow = slices.Compact(e.Allow)
	if err := e.validate(Agents[0]); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return e
}

// What is declared must follow from what was typed, else from what is deployed
// within today's settings, else from settings; and be wider by a typed flag only.
func TestDeclare(t *testing.T) {
	none := []string{}
	for about, row := range map[string]struct {
		was, settings string // "-" for no deployment
		held          bool
		typed         []string
		mode          string
		want          string
		left          []string
	}{
		"nothing anywhere":                       {was: "-"},
		"settings":                               {was: "-", settings: "advisory a.test /db", want: "advisory a.test /db"},
		"an empty list of settings":              {was: "-", settings: "strict", want: "strict"},
		"typed alone is strict":                  {was: "-", typed: []string{"a.test"}, want: "strict +a.test"},
		"typed beside settings":                  {was: "-", settings: "advisory a.test", typed: []string{"b.test"}, want: "advisory a.test +b.test"},
		"typed and in settings":                  {was: "-", settings: "strict a.test", typed: []string{"a.test"}, want: "strict +a.test"},
		"typed none lets nothing out":            {was: "-", typed: none, want: "strict"},
		"typed none beside settings":             {was: "-", settings: "strict a.test", typed: none, want: "strict a.test"},
		"strict alone lets nothing out":          {was: "-", mode: "strict", want: "strict"},
		"advisory over strict settings":          {was: "-", settings: "strict a.test", mode: "advisory", want: "advisory a.test"},
		"off over settings":                      {was: "-", settings: "strict a.test", mode: "off"},
		"the same again":                         {was: "strict a.test +b.test", settings: "strict a.test", want: "strict a.test +b.test"},
		"settings are gone":                      {was: "strict a.test +b.test /db", want: "strict a.test +b.test /db"},
		"settings are narrower":                  {was: "strict a.test c.test +b.test /db", settings: "strict a.test", want: "strict a.test +b.test"},
		"settings permit nothing now":            {was: "strict a.test +b.test", settings: "strict", want: "strict +b.test"},
		"settings are wider":                     {was: "strict a.test", settings: "strict a.test c.test /db", want: "strict a.test", left: []string{"c.test"}},
		"settings name a part":                   {was: "strict *.a.test", settings: "strict x.a.test", want: "strict x.a.test"},
		"settings name more than a part":         {was: "strict x.a.test", settings: "strict *.a.test", want: "strict x.a.test", left: []string{"*.a.test"}},
		"a provider holds a host":                {was: "strict provider:github", settings: "strict github.com:22", want: "strict github.com:22"},
		"settings are advisory now":              {was: "strict a.test", settings: "advisory a.test", want: "strict a.test"},
		"settings are strict now":                {was: "advisory a.test", settings: "strict a.test", want: "strict a.test"},
		"advisory was typed":                     {was: "advisory a.test", settings: "strict a.test", held: true, want: "advisory a.test"},
		"unrestricted, and declared now":         {was: "", settings: "advisory a.test", want: "advisory a.test"},
		"unrestricted, and off was typed":        {was: "", settings: "strict a.test", held: true},
		"unrestricted, off, and an entry is":     {was: "", settings: "strict a.test", held: true, typed: []string{"b.test"}, want: "strict a.test +b.test"},
		"typed entries are replaced":             {was: "strict a.test +b.test", settings: "strict a.test", typed: []string{"c.test"}, want: "strict a.test +c.test"},
		"typed entries are dropped":              {was: "strict a.test +b.test", settings: "strict a.test", typed: none, want: "strict a.test"},
		"the last entries are dropped":           {was: "strict +b.test", typed: none, want: "strict"},
		"the wider settings are taken":           {was: "strict a.test +b.test", settings: "strict a.test c.test /db", mode: "strict", want: "strict a.test c.test +b.test /db"},
		"the enforcement, settings are gone":     {was: "strict a.test", mode: "advisory", want: "advisory a.test"},
		"off on a redeploy":                      {was: "strict a.test", settings: "strict a.test", mode: "off"},
		"a declaration for an unrestricted one":  {was: "", mode: "strict", want: "strict"},
		"of what differs by agent, no other one": {was: "strict provider:agent", settings: "strict provider:anthropic", want: "strict", left: []string{"provider:anthropic"}},
	} {
		w := EgressWish{Deployed: row.was != "-", Held: row.held, Settings: declared(t, row.settings), Typed: row.typed, Mode: row.mode}
		if w.Deployed {
			w.Was = declared(t, row.was)
		}
		if w.Settings != nil {
			w.Outside = w.Settings.Outside
		}
		got, left := w.Declare()
		if diff := cmp.Diff(declared(t, row.want), got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: %s", about, diff)
		}
		if !slices.Equal(left, row.left) {
			t.Errorf("%s: leaves %q, want %q", about, left, row.left)
		}
	}
}

// Hosts of a package manager must be read again only where that is typed.
func TestDeclareManagers(t *testing.T) {
	was := declared(t, "strict provider:npm +provider:go a.test")
	was.Managers = map[string][]string{"npm": {"n.test"}, "go": {"g.test"}}
	for about, row := range map[string]struct {
		w    EgressWish
		want map[string][]string
	}{
		"nothing typed":      {EgressWish{}, was.Managers},
		"another entry":      {EgressWish{Typed: []string{"b.test"}}, map[string][]string{"npm": {"n.test"}}},
		"it is typed":        {EgressWish{Typed: []string{"provider:npm", "provider:go"}}, nil},
		"the enforcement is": {EgressWish{Mode: "strict"}, nil},
	} {
		row.w.Deployed, row.w.Was = true, was
		next, _ := row.w.Declare()
		if diff := cmp.Diff(row.want, next.Managers, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: %s", about, diff)
		}
	}
}

// entries is what random declarations are made of; they overlap in every way.
var entries = []string{
	"a.test", "a.test:443", "a.test:22", "*.a.test", "*.a.test:22", "x.a.test", "*.x.a.test", "private:*.a.test", "private:x.a.test:443", "b.test:80", "private:10.0.0.1", "private:10.0.0.1:5432",
	"api.anthropic.com", "provider:anthropic", "*.anthropic.com", "provider:agent", "provider:github", "github.com:22", "provider:npm", "service:db:5432", "claude.ai:443",
}

// may says the slow way, entry by entry and with names compared label by label,
// whether e lets a connection out, to a private address where that is asked.
func may(e *Egress, host string, port int, private bool) bool {
	if e == nil {
		return true
	}
	for _, text := range e.Allow {
		a, _ := ParseAllow("", text)
		for _, r := range a.Rules(Agents[0], e.Managers) {
			pattern := r.Name
			if r.Below {
				pattern = "*." + pattern
			}
			address, err := netip.ParseAddr(host)
			if same := err == nil && r.Address == address || err != nil && r.Name != "" && slowMatch(pattern, host); same && r.Port == port && (r.Private || !private) {
				return true
			}
		}
	}
	return false
}

// Without a typed flag nothing may be let out that was not before, whatever the
// settings say; what settings narrow must be gone; and the policy must permit
// what the declaration says, no more and no less.
func TestDeclareIsNeverWider(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 8))
	some := func() *Egress {
		if random.IntN(6) == 0 {
			return nil
		}
		e := &Egress{Enforcement: []Enforcement{Strict, Advisory}[random.IntN(2)], Allow: []string{}, Managers: map[string][]string{"npm": {"n.test"}}}
		for _, entry := range entries {
			if random.IntN(4) == 0 {
				e.Allow = append(e.Allow, entry)
				if random.IntN(3) == 0 {
					e.Typed = append(e.Typed, entry)
				}
			}
		}
		for _, service := range []string{"db", "cache"} {
			if random.IntN(2) == 0 {
				e.Outside = append(e.Outside, service)
			}
		}
		slices.Sort(e.Allow)
		slices.Sort(e.Typed)
		return e
	}
	hosts := []string{"a.test", "x.a.test", "y.x.a.test", "b.test", "api.anthropic.com", "other.anthropic.com", "github.com", "10.0.0.1", "db", "n.test", "claude.ai", "c.test"}
	for range 1000 {
		w := EgressWish{Deployed: true, Was: some(), Settings: some(), Held: random.IntN(4) == 0}
		if w.Settings != nil {
			w.Settings.Typed, w.Settings.Managers, w.Outside = nil, nil, w.Settings.Outside
		}
		next, _ := w.Declare()
		if next == nil && w.Was != nil || next != nil && w.Was != nil && w.Was.Enforcement == Strict && next.Enforcement != Strict {
			t.Fatalf("%+v: %v", w, next)
		}
		if next != nil && w.Was != nil && slices.ContainsFunc(next.Outside, func(s string) bool { return !slices.Contains(w.Was.Outside, s) }) {
			t.Fatalf("%v leaves %q outside", w.Was, next.Outside)
		}
		again := w
		again.Was = next
		if repeated, _ := again.Declare(); !cmp.Equal(next, repeated, cmpopts.EquateEmpty()) && next != nil {
			t.Fatalf("was %v, settings %v: %v, and done again %v", w.Was, w.Settings, next, repeated)
		}
		policy, err := next.Policy(Agents[0])
		if err != nil || next.validate(Agents[0]) != nil {
			t.Fatal(err)
		}
		for _, host := range hosts {
			for _, port := range []int{22, 80, 443, 5432} {
				for _, private := range []bool{false, true} {
					lets := may(next, host, port, private)
					if lets && !may(w.Was, host, port, private) {
						t.Fatalf("%s:%d, private %t: was %v, settings %v, now %v", host, port, private, w.Was, w.Settings, next)
					}
					typed := w.Was != nil && may(&Egress{Allow: w.Was.Typed, Managers: w.Was.Managers}, host, port, private)
					settings := w.Settings == nil || next == nil || host == "n.test" || may(w.Settings, host, port, private)
					if lets && !typed && !settings {
						t.Fatalf("%s:%d, private %t: settings %v, now %v", host, port, private, w.Settings, next)
					}
					if policy != nil && policyLets(policy, host, port, private) != lets {
						t.Fatalf("%s:%d, private %t: %v as a policy says otherwise", host, port, private, next)
					}
				}
			}
		}
	}
}

func policyLets(p *Policy, host string, port int, private bool) bool {
	r, ok := p.Match(host, port)
	if address, err := netip.ParseAddr(host); err == nil {
		r, ok = p.MatchAddress(address, port)
	}
	return ok && (r.Private || !private)
}

// Entries must cover one only where they permit all of it, at its ports.
func TestCovered(t *testing.T) {
	for entry, row := range map[string]struct{ yes, no string }{
		"x.a.test":              {"x.a.test|*.a.test|*.test.a x.a.test|x.a.test:443 x.a.test:80|private:*.a.test", "x.a.test:443|*.x.a.test|a.test|"},
		"*.x.a.test:22":         {"*.a.test:22|*.x.a.test:22", "*.a.test|x.a.test:22|*.y.x.a.test:22"},
		"private:x.a.test":      {"private:*.a.test|private:x.a.test", "x.a.test|*.a.test"},
		"private:10.0.0.1:5432": {"private:10.0.0.1:5432", "private:10.0.0.1|private:10.0.0.2:5432|*.a.test:5432"},
		"api.anthropic.com:443": {"provider:anthropic|*.anthropic.com", "provider:agent|provider:openai"},
		"api.anthropic.com":     {"api.anthropic.com", "provider:anthropic"}, // 80 too
		"provider:anthropic":    {"api.anthropic.com|api.anthropic.com:443|*.anthropic.com", "provider:agent|api.anthropic.com:80"},
		"provider:agent":        {"provider:agent", "provider:anthropic claude.ai claude.com platform.claude.com"},
		"provider:npm":          {"provider:npm", "*.a.test"},
		"service:db:5432":       {"service:db:5432", "private:db:5432|service:db:5433"},
	} {
		for want, lists := range map[bool]string{true: row.yes, false: row.no} {
			for _, list := range strings.Split(lists, "|") {
				if Covered(entry, strings.Fields(list)) != want {
					t.Errorf("%s by %q: want %t", entry, list, want)
				}
			}
		}
	}
}

// A declaration that could not have been made here must be refused: it may stand
// in a label.
func TestValidateEgress(t *testing.T) {
	for about, e := range map[string]Egress{
		"no enforcement": {Allow: []string{}}, "another enforcement": {Enforcement: "off"}, "a scheme": {Enforcement: Strict, Allow: []string{"https://a.test"}},
		"not canonical": {Enforcement: Strict, Allow: []string{"A.test"}}, "twice": {Enforcement: Strict, Allow: []string{"a.test", "a.test"}}, "not sorted": {Enforcement: Strict, Allow: []string{"b.test", "a.test"}},
		"typed and not there": {Enforcement: Strict, Allow: []string{"a.test"}, Typed: []string{"b.test"}}, "a manager's address": {Enforcement: Strict, Allow: []string{"provider:npm"}, Managers: map[string][]string{"npm": {"10.0.0.1"}}},
	} {
		if err := e.validate(Agents[0]); err == nil {
			t.Errorf("%s: not refused", about)
		}
	}
}

// Changes must tell of egress entry by entry, and as a whole where there is none
// on a side.
func TestChangesOfEgress(t *testing.T) {
	for about, row := range map[string]struct {
		from, to string
		want     []string
	}{
		"declared":    {"", "strict a.test", []string{"egress: unrestricted -> strict, a.test"}},
		"dropped":     {"strict", "", []string{"egress: strict, nothing -> unrestricted"}},
		"entries":     {"strict a.test b.test", "advisory b.test +c.test /db", []string{"egress.enforcement: strict -> advisory", "egress.allow: a.test -> (none)", "egress.allow: (none) -> c.test", "egress.outside: (none) -> db"}},
		"typed now":   {"strict a.test", "strict +a.test", nil},
		"both absent": {"", "", nil},
	} {
		var got []string
		for _, c := range Changes(Spec{Egress: declared(t, row.from)}, Spec{Egress: declared(t, row.to)}) {
			got = append(got, c.String())
		}
		if diff := cmp.Diff(row.want, got); diff != "" {
			t.Errorf("%s: %s", about, diff)
		}
	}
}
