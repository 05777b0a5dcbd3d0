package tests

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/agent-container/agent-container"

// mayImport is the import table: for every package, the packages of ours that
// it may import. Arrows only point down.
var mayImport = map[string][]string{
	"": {"cli"}, // main.go

	"cli": {"compose", "compose/engine", "completions", "entrypoint", "images", "panes", "process", "recognise", "runs", "settings", "spec"},

	"compose/engine": {"compose", "process", "spec"},
	"runs":           {"spec"},
	"settings":       {"compose", "spec"},
	"completions":    {},
	"panes":          {"process", "recognise", "spec"},
	"recognise":      {"spec"}, // a parser, and no file

	"compose": {"entrypoint", "images", "spec"}, // no process
	"process": {},

	"images":     {"entrypoint", "spec"},
	"entrypoint": {"spec"},
	"spec":       {},

	"guest":         {"guest/gateway", "spec"},
	"guest/gateway": {"spec"},

	"tests":             {},
	"tests/e2e":         {},
	"tests/bench":       {},
	"tests/gitserver":   {},
	"tests/modelserver": {},
}

// mayStart lists the packages that may start a program.
var mayStart = []string{"process", "guest"}

type goPackage struct {
	ImportPath string
	Imports    []string
}

func ours(path string) (string, bool) {
	if path == module {
		return "", true
	}
	return strings.CutPrefix(path, module+"/")
}

func packages(t *testing.T) []goPackage {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", "./...")
	cmd.Dir = ".."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var list []goPackage
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
}

// importProblems holds packages against the table.
func importProblems(list []goPackage) []string {
	var problems []string
	for _, p := range list {
		name, _ := ours(p.ImportPath)
		allowed, known := mayImport[name]
		if !known {
			problems = append(problems, name+" is not in the import table")
			continue
		}
		for _, i := range p.Imports {
			if target, ok := ours(i); ok && !slices.Contains(allowed, target) {
				problems = append(problems, name+" must not import "+target)
			}
			if i == "os/exec" && !slices.Contains(mayStart, name) {
				problems = append(problems, name+" must not start programs")
			}
		}
	}
	return problems
}

func TestImports(t *testing.T) {
	// Every package must be in the import table and import no more than it says.
	list := packages(t)
	for _, p := range importProblems(list) {
		t.Error(p)
	}
	var found []string
	for _, p := range list {
		name, _ := ours(p.ImportPath)
		found = append(found, name)
	}
	for name := range mayImport {
		if !slices.Contains(found, name) {
			t.Errorf("the import table has a row for %q, which does not exist", name)
		}
	}
}

func TestImportTablePointsDown(t *testing.T) {
	// The table itself must have no circle: each package above all it may import.
	var visit func(name string, path []string)
	visit = func(name string, path []string) {
		if slices.Contains(path, name) {
			t.Fatalf("circle in the import table: %v", append(path, name))
		}
		for _, next := range mayImport[name] {
			visit(next, append(slices.Clone(path), name))
		}
	}
	visit("", nil)
	visit("guest", nil)
}

func TestImportTableCatches(t *testing.T) {
	// The check must see an unknown package, an upward import and a second os/exec.
	problems := importProblems([]goPackage{
		{ImportPath: module + "/helpers"},
		{ImportPath: module + "/spec", Imports: []string{module + "/compose"}},
		{ImportPath: module + "/compose", Imports: []string{module + "/process", "os/exec"}},
		{ImportPath: module + "/process", Imports: []string{"os/exec", "strings"}},
		{ImportPath: module + "/guest", Imports: []string{module + "/spec", module + "/cli"}},
	})
	want := []string{
		"helpers is not in the import table",
		"spec must not import compose",
		"compose must not import process",
		"compose must not start programs",
		"guest must not import cli",
	}
	if !slices.Equal(problems, want) {
		t.Errorf("problems are %q, want %q", problems, want)
	}
}
