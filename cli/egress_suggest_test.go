package cli

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-container/agent-container/spec"
)

// refusedAt is a refusal of HOST, HOST:PORT or ADDRESS:PORT.
func refusedAt(stage spec.Stage, name, address string, port int) spec.Refusal {
	return spec.Refusal{Name: name, Address: address, Port: port, Stage: stage, Count: 1}
}

func strictly(t *testing.T, entries ...string) *spec.Policy {
	t.Helper()
	e, err := spec.NewEgress("egress", spec.Strict, entries)
	if err != nil {
		t.Fatal(err)
	}
	p, err := e.Policy(spec.Agents[0])
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// What is suggested must be what a person would write, and what no entry mends
// must be said with its reason.
func TestSuggest(t *testing.T) {
	dns := func(name string) spec.Refusal { return refusedAt(spec.StageDNS, name, "", 0) }
	port := func(name string, n int) spec.Refusal { return refusedAt(spec.StagePort, name, "", n) }
	address := func(a string, n int) spec.Refusal { return refusedAt(spec.StageAddress, "", a, n) }
	for about, c := range map[string]struct {
		declared, outside []string
		refusals          []spec.Refusal
		wildcards         bool
		want              []string
		others            int
	}{
		"a name":              {refusals: []spec.Refusal{dns("a.test")}, want: []string{"a.test"}},
		"web ports":           {refusals: []spec.Refusal{port("a.test", 443), port("a.test", 80), dns("a.test")}, want: []string{"a.test"}},
		"another port":        {refusals: []spec.Refusal{port("a.test", 8443), dns("a.test")}, want: []string{"a.test:8443"}},
		"declared elsewhere":  {declared: []string{"a.test:443"}, refusals: []spec.Refusal{port("a.test", 22)}, want: []string{"a.test:22"}},
		"declared since":      {declared: []string{"*.test.example"}, refusals: []spec.Refusal{dns("a.test.example"), port("b.test.example", 80)}, want: []string{}},
		"own network":         {refusals: []spec.Refusal{address("10.1.2.3", 5432), address("192.168.0.1", 443)}, want: []string{"private:10.1.2.3:5432", "private:192.168.0.1"}},
		"a public address":    {refusals: []spec.Refusal{address("198.51.100.1", 443), address("2001:db8::1", 443)}, want: []string{}, others: 2},
		"a mapped address":    {refusals: []spec.Refusal{address("::ffff:10.0.0.1", 22)}, want: []string{"private:10.0.0.1:22"}},
		"a service":           {outside: []string{"db"}, refusals: []spec.Refusal{port("db", 5432)}, want: []string{"service:db:5432"}},
		"a service's name":    {outside: []string{"db"}, refusals: []spec.Refusal{dns("db")}, want: []string{}, others: 1},
		"one word":            {refusals: []spec.Refusal{dns("db")}, want: []string{}, others: 1},
		"a look-up backwards": {refusals: []spec.Refusal{dns("1.0.0.10.in-addr.arpa")}, want: []string{}, others: 1},
		"no name":             {refusals: []spec.Refusal{dns("[2J.test"), dns("A.test"), dns("")}, want: []string{}, others: 3},
		"other stages": {refusals: []spec.Refusal{refusedAt(spec.StageTLS, "a.test", "", 443), refusedAt(spec.StageHTTP, "a.test", "", 80), refusedAt(spec.StageResolve, "a.test", "", 443),
			refusedAt(spec.StageDial, "a.test", "", 443), refusedAt(spec.StageLimit, "", "", 0)}, want: []string{}, others: 5},
		"several, one by one":  {refusals: []spec.Refusal{dns("a.x.example.com"), dns("b.x.example.com")}, want: []string{"a.x.example.com", "b.x.example.com"}},
		"several":              {wildcards: true, refusals: []spec.Refusal{dns("a.x.example.com"), dns("b.x.example.com"), dns("c.example.org")}, want: []string{"*.x.example.com", "c.example.org"}},
		"in common":            {wildcards: true, refusals: []spec.Refusal{dns("a.x.example.com"), dns("x.example.com")}, want: []string{"*.example.com"}},
		"the domain itself":    {wildcards: true, refusals: []spec.Refusal{dns("a.example.com"), dns("example.com")}, want: []string{"a.example.com", "example.com"}},
		"anybody's domain":     {wildcards: true, refusals: []spec.Refusal{dns("a.co.uk"), dns("b.co.uk"), dns("a.github.io"), dns("b.github.io")}, want: []string{"a.co.uk", "a.github.io", "b.co.uk", "b.github.io"}},
		"several, other ports": {wildcards: true, refusals: []spec.Refusal{port("a.example.com", 22), port("b.example.com", 22), port("c.example.com", 443)}, want: []string{"*.example.com:22", "c.example.com"}},
	} {
		got, mended, others := suggest(strictly(t, c.declared...), c.outside, c.refusals, c.wildcards)
		if d := cmp.Diff(c.want, got); d != "" || len(others) != c.others {
			t.Errorf("%s: %d others, %s", about, len(others), d)
		}
		if about != "declared since" && len(mended)+len(others) != len(c.refusals) {
			t.Errorf("%s: %d and %d of %d refusals", about, len(mended), len(others), len(c.refusals))
		}
	}
}

// A service that is declared as a host of the internet must be named as what it is.
func TestSuggestNamesAService(t *testing.T) {
	for _, c := range []struct {
		outside []string
		want    string
	}{
		{[]string{"db"}, "a service of yours; declare service:db:5432"}, {nil, unmendable[spec.StageResolve]},
	} {
		_, _, others := suggest(strictly(t, "db:5432"), c.outside, []spec.Refusal{refusedAt(spec.StageResolve, "db", "", 5432)}, false)
		if len(others) != 1 || others[0].Why != c.want {
			t.Errorf("%v: %+v", c.outside, others)
		}
	}
}

// With what is suggested beside what is declared, each refusal that an entry can
// mend must pass, each other must have its reason, and no entry be superfluous.
func TestSuggestIsEnoughAndNoMore(t *testing.T) {
	names := []string{"a.example.com", "b.example.com", "a.b.example.com", "example.com", "c.co.uk", "d.co.uk", "db", "web", "x.test", "y.x.test", "1.10.in-addr.arpa", "Bad.test", ""}
	addresses := []string{"10.0.0.1", "10.0.0.2", "8.8.8.8", "127.0.0.1", "2001:db8::1", "nonsense"}
	stages := []spec.Stage{spec.StageDNS, spec.StagePort, spec.StageAddress, spec.StageTLS, spec.StageDial, spec.StageResolve}
	declared := []string{"a.example.com", "*.example.com:22", "x.test:8443", "private:10.0.0.1:22", "service:db:5432"}
	r := rand.New(rand.NewPCG(1, 2))
	pick := func(list []string) string { return list[r.IntN(len(list))] }
	for range 3000 {
		var refusals []spec.Refusal
		for range r.IntN(8) {
			one := spec.Refusal{Stage: stages[r.IntN(len(stages))], Port: []int{0, 22, 80, 443, 5432, 8443}[r.IntN(6)], Count: 1}
			if one.Stage == spec.StageAddress {
				one.Address = pick(addresses)
			} else if one.Name = pick(names); one.Stage == spec.StageDNS {
				one.Port = 0
			}
			refusals = append(refusals, one)
		}
		var some []string
		for _, d := range declared {
			if r.IntN(2) == 0 {
				some = append(some, d)
			}
		}
		p := strictly(t, some...)
		entries, mended, others := suggest(p, []string{"db"}, refusals, r.IntN(2) == 0)
		said := fmt.Sprintf("%v beside %v for %+v", entries, some, refusals)
		with := func(list []string) []spec.Rule { return append(slices.Clone(p.Rules), strictly(t, list...).Rules...) }
		for _, one := range refusals {
			isOther := slices.ContainsFunc(others, func(u unmended) bool { return u.Refusal == one && u.Why != "" })
			if permitted(with(entries), one) == isOther {
				t.Fatalf("%+v: a reason: %t, with %s", one, isOther, said)
			}
		}
		for i := range entries {
			less := with(slices.Delete(slices.Clone(entries), i, i+1))
			if !slices.ContainsFunc(mended, func(one spec.Refusal) bool { return !permitted(less, one) }) {
				t.Fatalf("%s is superfluous: %s", entries[i], said)
			}
		}
	}
}

// A provider must be named only when it permits all of what was refused.
func TestProviderFor(t *testing.T) {
	refused := func(names ...string) (list []spec.Refusal) {
		for _, n := range names {
			list = append(list, refusedAt(spec.StageDNS, n, "", 0))
		}
		return list
	}
	for want, list := range map[string][]spec.Refusal{
		"provider:github": refused("github.com", "api.github.com"), "": refused("github.com", "api.github.com", "a.test"), "provider:agent": refused("api.anthropic.com", "claude.ai"),
	} {
		if got := providerFor(nil, spec.Agents[0], list); got != want {
			t.Errorf("%v: %q, want %q", list, got, want)
		}
	}
}

// The command must carry what was typed before, since typing drops it, and be one
// that can be pasted.
func TestDeclareCommand(t *testing.T) {
	s := spec.Spec{Name: "web", Mode: spec.Headless, Egress: &spec.Egress{Typed: []string{"a.test"}}}
	want := "agent-container redeploy web --egress-allow a.test --egress-allow '*.example.com' --task ..."
	if got := declareCommand(s, []string{"*.example.com"}); got != want {
		t.Errorf("%q", got)
	}
	if len(s.Egress.Typed) != 1 {
		t.Error("the spec was changed")
	}
}
