package spec

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// slowestMatch says what Match must say: of the rules for port that cover name by
// the slow comparison, an exact one, and otherwise the one that leaves least open.
func slowestMatch(p *Policy, name string, port int) (best Rule, found bool) {
	for _, r := range p.Rules {
		pattern := r.Name
		if r.Below {
			pattern = "*." + pattern
		}
		if r.Name == "" || r.Port != port || !slowMatch(pattern, name) {
			continue
		}
		depth := strings.Count(r.Name, ".")
		if !found || best.Below && (!r.Below || depth > strings.Count(best.Name, ".")) {
			best, found = r, true
		}
	}
	return best, found
}

// A file must be taken for a policy only if it could have been declared; one that
// is must be written and read as the same, and permit by the same rule what the slow
// comparison permits.
func FuzzPolicy(f *testing.F) {
	for _, seed := range []string{
		`{"enforcement":"strict","rules":null}`, `{"enforcement":"advisory","rules":[]}`, `null`, `{}`,
		`{"enforcement":"strict","rules":[{"name":"allowed.test","port":443,"from":"a"},{"name":"wild.test","below":true,"port":443,"from":"b"},{"name":"deep.wild.test","below":true,"port":443,"from":"c"},{"name":"x.wild.test","port":80,"from":"d"}]}`,
		`{"enforcement":"strict","rules":[{"address":"10.0.0.5","port":5432,"private":true,"from":"a"}]}`,
		`{"enforcement":"strict","rules":[{"address":"::ffff:10.0.0.5","port":5432,"private":true,"from":"a"}]}`,
		`{"enforcement":"strict","rules":[{"name":"Allowed.test","port":443,"from":"a"}]}`, `{"enforcement":"strict","rules":[{"name":"test","below":true,"port":443,"from":"a"}]}`,
	} {
		for _, name := range []string{"allowed.test", "a.wild.test", "b.deep.wild.test", "x.wild.test", "wild.test", "awild.test"} {
			f.Add(seed, name, 443)
		}
	}
	f.Fuzz(func(t *testing.T, text, asked string, port int) {
		p := new(Policy)
		if json.Unmarshal([]byte(text), p) != nil || p.Validate() != nil {
			return
		}
		for _, r := range p.Rules {
			if r.Port < 1 || r.Port > 65535 || r.Name == "" && (!r.Address.Is4() || !r.Private) || r.Below && strings.Count(r.Name, ".") == 0 {
				t.Errorf("%+v is taken", r)
			}
		}
		written, err := json.Marshal(p)
		again := new(Policy)
		if err != nil || json.Unmarshal(written, again) != nil || !reflect.DeepEqual(p, again) {
			t.Errorf("%+v is written %s and read as %+v, %v", p, written, again, err)
		}
		name, err := CanonicalName(asked)
		if err != nil {
			return
		}
		want, found := slowestMatch(p, name, port)
		got, ok := p.Match(name, port)
		if ok != found || got.Name != want.Name || got.Below != want.Below || found && !p.Knows(name) {
			t.Errorf("%s at %d of %+v: %+v %t, want %+v %t", name, port, p, got, ok, want, found)
		}
	})
}
