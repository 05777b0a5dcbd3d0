package spec

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestChanges(t *testing.T) {
	// Changes must list exactly the fields that differ, by their JSON names, in field order, as a user types the values.
	to := valid()
	to.Agent = "pi"
	to.WorkspaceDir = ""
	to.EnvNames = []string{"A", "C"}
	to.Restart = Restart{}
	to.Limits.CPUs, to.Limits.Run, to.Limits.MemoryBytes = 2, 0, 3<<29
	to.RecordTask = false
	want := []string{
		"agent: claude -> pi",
		"workspace_dir: /src -> (none)",
		"env_names: [A B] -> [A C]",
		"restart: on-failure:3 -> no",
		"limits.memory_bytes: 1g -> 1536m",
		"limits.cpus: 1.5 -> 2",
		"limits.timeout: 1h0m0s -> (none)",
		"record_task: true -> false",
	}
	var got []string
	for _, c := range Changes(valid(), to) {
		got = append(got, c.String())
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if same := Changes(valid(), valid()); len(same) > 0 {
		t.Errorf("equal specs differ: %v", same)
	}
}

func TestChangesOfLimits(t *testing.T) {
	// An amount of memory must be told exactly, in the unit in which it is round, and no limit as none.
	for n, want := range map[int64]string{0: "(none)", 1000: "1000", 1024: "1k", 5 << 20: "5m", 4 << 30: "4g", 1 << 40: "1024g", 4<<30 + 1: "4294967297"} {
		from, to := valid(), valid()
		from.Limits.MemoryBytes, from.Limits.CPUs, to.Limits.CPUs = 7, 0, 1.5
		to.Limits.MemoryBytes = n
		if got := Changes(from, to); len(got) != 2 || got[0].String() != "limits.memory_bytes: 7 -> "+want || got[1].String() != "limits.cpus: (none) -> 1.5" {
			t.Errorf("%d: %v", n, got)
		}
	}
}

func TestChangesKnowsEveryField(t *testing.T) {
	// Every field of a spec must have a JSON name and be compared, so that a new one cannot change unnoticed.
	s := valid()
	s.Repo, s.Depth = "https://example.com/a", 1
	full := reflect.ValueOf(s)
	for i := range full.NumField() {
		var from Spec
		reflect.ValueOf(&from).Elem().Field(i).Set(full.Field(i))
		name, _, _ := strings.Cut(full.Type().Field(i).Tag.Get("json"), ",")
		changes := Changes(Spec{}, from)
		if name == "typed" { // where values came from
			continue
		}
		if name == "limits" && len(changes) == full.Field(i).NumField() {
			continue // each of its fields by itself
		}
		if len(changes) != 1 || changes[0].Field != name || name == "" {
			t.Errorf("field %s: changes %v", full.Type().Field(i).Name, changes)
		}
	}
}

func TestNearest(t *testing.T) {
	// Nearest must find a slip of the fingers and stay silent on another word.
	words := []string{"claude", "codex", "pi", "opencode", "headless_restart"}
	for typed, want := range map[string]string{
		"claude": "claude", "cluade": "claude", "Claude": "claude", "claud": "claude", "codec": "codex", "p": "pi", "openkode": "opencode",
		"headles-restart": "headless_restart", "headlessrestart": "headless_restart",
		"": "", "xy": "", "emacs": "", "qqqqqqq": "", "restart": "",
		"codqz": "codex", "cabez": "", // two letters of a short word may be wrong, three not
		"headless_qqqqqrt": "headless_restart", "headless_qqqqqqt": "", // a third of a long one
		strings.Repeat("claude", 1000): "",
	} {
		if got := Nearest(typed, words); got != want {
			t.Errorf("Nearest(%.20q) = %q, want %q", typed, got, want)
		}
	}
	if got := Nearest("claude", nil); got != "" {
		t.Errorf("Nearest of no words = %q", got)
	}
	if got := Nearest("ab", []string{"abc", "abd"}); got != "abc" {
		t.Errorf("of two equally near words the first must win, got %q", got)
	}
}
