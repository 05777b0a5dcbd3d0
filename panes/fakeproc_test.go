package panes

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fakeProc is a /proc of processes that a test makes up.
type fakeProc struct {
	t   *testing.T
	dir string
}

func (f fakeProc) put(pid int, comm, state string, pgrp, foreground, start int, children string, argv ...string) {
	f.t.Helper()
	dir := filepath.Join(f.dir, fmt.Sprint(pid))
	stat := fmt.Sprintf("%d (%s) %s 1 %d 1 34816 %d 0 0 0 0 0 0 0 0 0 20 0 1 0 %d 0 0\n", pid, comm, state, pgrp, foreground, start)
	for name, text := range map[string]string{
		"stat": stat, "cmdline": strings.Join(argv, "\x00") + "\x00", fmt.Sprintf("task/%d/children", pid): children,
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			f.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			f.t.Fatal(err)
		}
	}
}

// thread gives a process a second thread, with children.
func (f fakeProc) thread(pid, tid int, children string) {
	f.t.Helper()
	stat := filepath.Join(f.dir, fmt.Sprint(pid), "stat")
	b, err := os.ReadFile(stat)
	if err == nil {
		err = os.WriteFile(stat, []byte(strings.Replace(string(b), " 20 0 1 0 ", " 20 0 2 0 ", 1)), 0o600)
	}
	dir := filepath.Join(f.dir, fmt.Sprint(pid), "task", fmt.Sprint(tid))
	if err == nil {
		err = os.Mkdir(dir, 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "children"), []byte(children), 0o600)
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

// stack gives a process the address of its stack, as it is told of one's own.
func (f fakeProc) stack(pid int, address string) {
	f.t.Helper()
	file, err := os.OpenFile(filepath.Join(f.dir, fmt.Sprint(pid), "stat"), os.O_WRONLY|os.O_APPEND, 0)
	if err == nil {
		_, err = fmt.Fprintln(file, " 0 1 1", address)
		file.Close()
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f fakeProc) processes() *Processes {
	return &Processes{source: slashProc{f.dir}, known: map[key]*reading{}}
}
