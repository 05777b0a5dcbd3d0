package settings

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/agent-container/agent-container/spec"
)

func egress(enforcement spec.Enforcement, allow string, outside ...string) *spec.Egress {
	return &spec.Egress{Enforcement: enforcement, Allow: strings.Fields(allow), Outside: outside}
}

func TestEgress(t *testing.T) {
	// Nothing, an empty list and a list must be three declarations; a project's must narrow the user's, in whatever order its keys stand.
	for about, row := range map[string]struct {
		user, project string
		env           map[string]string
		want          *spec.Egress
	}{
		"nothing":                          {"agent: pi\n", "agent: pi\n", nil, nil},
		"only who stays outside":           {"egress: {outside: [db]}\n", "", nil, nil},
		"an empty list":                    {"egress: {allow: []}\n", "", nil, egress("strict", "")},
		"an enforcement alone":             {"egress: {enforcement: advisory}\n", "", nil, egress("advisory", "")},
		"every form":                       {"egress:\n  allow:\n  - B.test.\n  - '*.a.test:22'\n  - provider:npm\n  - {provider: anthropic}\n  - {service: db, port: 5432}\n  - service:cache:6379\n  - {host: x.test, port: 22, private: true}\n  - {host: y.test, private: false}\n  outside: [db, cache]\n  enforcement: strict\n", "", nil, egress("strict", "*.a.test:22 b.test private:x.test:22 provider:anthropic provider:npm service:cache:6379 service:db:5432 y.test", "cache", "db")},
		"keys with dots":                   {"egress.allow: [a.test]\negress.enforcement: advisory\n", "", nil, egress("advisory", "a.test")},
		"a project's, of everything":       {"", "egress: {allow: [a.test]}\n", nil, egress("strict", "a.test")},
		"a project's, advisory":            {"", "egress: {allow: [a.test], enforcement: advisory}\n", nil, egress("advisory", "a.test")},
		"a project's, advisory first":      {"", "egress: {enforcement: advisory, allow: [a.test]}\n", nil, egress("advisory", "a.test")},
		"a project's, of a list":           {"egress: {allow: ['*.a.test', {provider: github}]}\n", "egress: {allow: [x.a.test, 'github.com:22', {provider: github}]}\n", nil, egress("strict", "github.com:22 provider:github x.a.test")},
		"a project's empty list":           {"egress: {allow: [a.test]}\n", "egress: {allow: []}\n", nil, egress("strict", "")},
		"a project that is stricter":       {"egress: {allow: [a.test], enforcement: advisory}\n", "egress: {enforcement: strict}\n", nil, egress("strict", "a.test")},
		"a project that is laxer":          {"egress: {allow: [a.test], enforcement: strict}\n", "egress: {enforcement: advisory}\n", nil, egress("strict", "a.test")},
		"a project that is laxer unsaid":   {"egress: {allow: [a.test]}\n", "egress: {enforcement: advisory}\n", nil, egress("strict", "a.test")},
		"a variable":                       {"egress: {allow: [a.test]}\n", "", map[string]string{"AGENT_CONTAINER_EGRESS_ALLOW": "c.test B.test"}, egress("strict", "b.test c.test")},
		"a variable that says nothing may": {"egress: {allow: [a.test]}\n", "", map[string]string{"AGENT_CONTAINER_EGRESS_ALLOW": "nothing"}, egress("strict", "")},
		"an empty variable":                {"egress: {allow: [a.test]}\n", "", map[string]string{"AGENT_CONTAINER_EGRESS_ALLOW": ""}, egress("strict", "a.test")},
		"more variables":                   {"", "", map[string]string{"AGENT_CONTAINER_EGRESS_ENFORCEMENT": "advisory", "AGENT_CONTAINER_EGRESS_OUTSIDE": "db cache"}, egress("advisory", "", "cache", "db")},
	} {
		s, err := write(t, row.user, row.project).load(row.env)
		must(t, err)
		if diff := cmp.Diff(row.want, s.Egress(), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: %s", about, diff)
		}
	}
}

func TestEgressRefuses(t *testing.T) {
	// What is no declaration, or a project's that is wider than the user's, must be refused with its line, never taken for none.
	list := "egress:\n  allow: [a.test, '*.b.test', {provider: anthropic}, 'private:c.test:22']\n"
	for _, row := range []struct{ user, project, where, problem string }{
		{"egress:\n", "", "U:1", "egress is not a mapping"},
		{"egress: null\n", "", "U:1", "egress is not a mapping"},
		{"egress: strict\n", "", "U:1", "egress is not a mapping"},
		{"egress: []\n", "", "U:1", "egress is not a mapping"},
		{"agent: pi\negress: {}\n", "", "U:2", "neither what may leave"},
		{"egress:\n  allow:\n", "", "U:2", "egress.allow: takes a list"},
		{"egress: {allow: a.test}\n", "", "U:1", "egress.allow: takes a list"},
		{"egress: {allow: {host: a.test}}\n", "", "U:1", "egress.allow: takes a list"},
		{"egress: {alow: [a.test]}\n", "", "U:1", `unknown key "egress.alow"`},
		{"egress: {enforcement: off}\n", "", "U:1", `"off" is not one of strict, advisory`},
		{"egress: {enforcement: }\n", "", "U:1", "takes one value"},
		{"egress:\n  allow:\n  - a.test\n  - https://b.test\n", "", "U:4", "a scheme"},
		{"egress:\n  allow:\n  - a.test\n  - A.test\n", "", "U:4", "twice"},
		{"egress:\n  allow:\n  -\n", "", "U:3", "an entry is one word"},
		{"egress:\n  allow: [[a.test]]\n", "", "U:2", "an entry is one word"},
		{"egress:\n  allow: ['a.test b.test']\n", "", "U:2", "an entry is one word"},
		{"egress:\n  allow: [nothing]\n", "", "U:2", "a word of ours"},
		{"egress:\n  allow: [*.a.test]\n", "", "U:2", "not YAML"},
		{"egress:\n  allow: [{}]\n", "", "U:2", "one of host, provider and service"},
		{"egress:\n  allow: [{host: a.test, provider: npm}]\n", "", "U:2", "one of host, provider and service"},
		{"egress:\n  allow: [{hots: a.test}]\n", "", "U:2", `unknown key "hots"`},
		{"egress:\n  allow: [{host: a.test, port: '22'}]\n", "", "U:2", "port takes a number"},
		{"egress:\n  allow: [{host: a.test, port: 0x16}]\n", "", "U:2", "not a port"},
		{"egress:\n  allow: [{host: a.test, private: 'yes'}]\n", "", "U:2", "private takes a true or false"},
		{"egress:\n  allow: [{host: 'a.test:22', port: 22}]\n", "", "U:2", "no colon"},
		{"egress:\n  allow: [{host: 'provider:npm'}]\n", "", "U:2", "no colon"},
		{"egress:\n  allow: [{provider: npm, port: 22}]\n", "", "U:2", "ports of its own"},
		{"egress:\n  allow: [{service: db}]\n", "", "U:2", "needs a port"},
		{"egress:\n  outside: [DB]\n", "", "U:2", "not the name of a service"},
		{"egress:\n  outside: [{service: db}]\n", "", "U:2", "one word"},
		{list, "agent: pi\negress:\n  allow:\n  - a.test\n  - d.test\n", "P:5", "d.test is not within what the user's"},
		{list, "egress:\n  allow: ['a.test:22']\n", "P:2", "a.test:22 is not within"},
		{list, "egress:\n  allow: [b.test]\n", "P:2", "b.test is not within"},
		{list, "egress:\n  allow: ['*.a.test']\n", "P:2", "*.a.test is not within"},
		{list, "egress:\n  allow: [api.anthropic.com]\n", "P:2", "api.anthropic.com is not within"}, // port 80 is not
		{list, "egress:\n  allow: ['private:x.b.test']\n", "P:2", "private:x.b.test is not within"},
		{list, "egress:\n  allow: ['provider:agent']\n", "P:2", "provider:agent is not within"},
		{"egress: {enforcement: advisory}\n", "egress:\n  allow: [a.test]\n", "P:2", "a.test is not within"},
		{"egress: {allow: []}\n", "egress:\n  allow: [a.test]\n", "P:2", "a.test is not within"},
		{"", "egress:\n  outside: [db]\n", "P:2", "a project may not set egress.outside"},
		{"", "egress:\n", "P:1", "egress is not a mapping"},
	} {
		w := write(t, row.user, row.project)
		_, err := w.load(nil)
		if err == nil {
			t.Errorf("%q, %q: accepted", row.user, row.project)
			continue
		}
		e := refusal(t, err)
		where := strings.NewReplacer(w.userFile(), "U", w.projectFile(), "P").Replace(e.Where)
		if where != row.where || !strings.Contains(e.Problem, row.problem) {
			t.Errorf("%q, %q: %s: %s", row.user, row.project, where, e.Problem)
		}
	}
	for value, problem := range map[string]string{"https://a.test": "a scheme", "a.test a.test": "twice", "nothing a.test": "a word of ours"} {
		_, err := write(t, "", "").load(map[string]string{"AGENT_CONTAINER_EGRESS_ALLOW": value})
		if e := refusal(t, err); e.Where != "AGENT_CONTAINER_EGRESS_ALLOW" || !strings.Contains(e.Problem, problem) {
			t.Errorf("%s: %v", value, e)
		}
	}
}

func TestEgressCut(t *testing.T) {
	// A file that was cut behind the word egress must be refused, or still declare something, strictly.
	whole := "egress:\n  enforcement: strict\n  allow:\n  - a.test:22\n  - provider:github\n  - {host: b.test, port: 443}\n"
	for n := len("egress:"); n < len(whole); n++ {
		w := write(t, whole[:n], "")
		s, err := w.load(nil)
		if err != nil {
			continue
		}
		if e := s.Egress(); e == nil || e.Enforcement != spec.Strict {
			t.Errorf("%q declares %v", whole[:n], e)
		}
	}
}
