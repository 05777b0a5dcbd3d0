package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agent-container/agent-container/compose"
	"github.com/agent-container/agent-container/compose/engine"
	"github.com/agent-container/agent-container/images"
	"github.com/agent-container/agent-container/process"
	"github.com/agent-container/agent-container/runs"
	"github.com/agent-container/agent-container/settings"
	"github.com/agent-container/agent-container/spec"
)

func TestErrorsMapToExitCodes(t *testing.T) {
	// Every typed error must have its exit code and its hint, however deep it is wrapped.
	for name, c := range map[string]struct {
		err  error
		code int
		hint string
	}{
		"plain":            {errors.New("x"), exitFailed, ""},
		"child's status":   {&process.ExitError{Argv: []string{"docker", "ps"}, Code: 42}, exitFailed, ""}, // never our code
		"spec":             {&spec.Error{Field: "--agent", Problem: "x", Hint: "h"}, exitRefused, "h"},
		"name":             {spec.ValidateName("My.App"), exitRefused, `use "my-app"`},
		"settings":         {&settings.Error{Where: "f:1", Problem: "x", Hint: "h"}, exitRefused, "h"},
		"services":         {&compose.ServicesError{File: "f", Line: 1, Problem: "x", Hint: "h"}, exitRefused, "h"},
		"foreign":          {&engine.ForeignError{Kind: "volume", Name: "v"}, exitRefused, "choose another NAME"},
		"unreachable":      {&engine.UnreachableError{Tried: "docker", Problem: "x", Hint: "h"}, exitUnreachable, "h"},
		"no run":           {&runs.NotFoundError{ID: "1"}, exitNotFound, "runs list"},
		"busy":             {&busyError{name: "demo"}, exitBusy, "wait for it"},
		"no guest":         {images.ErrNoGuest, exitFailed, "make build"},
		"disk full":        {&fs.PathError{Op: "write", Path: os.TempDir() + "/no/such/file", Err: syscall.ENOSPC}, exitFailed, "df -h " + os.TempDir() + ")"},
		"quota used up":    {&os.LinkError{Op: "rename", Old: "/a", New: "/no/such", Err: syscall.EDQUOT}, exitFailed, "df -h /)"},
		"disk of nothing":  {syscall.ENOSPC, exitFailed, ""},
		"engine's disk":    {&process.ExitError{Argv: []string{"docker", "cp"}, Code: 1, Stderr: "Error: write /var: no space left on device"}, exitFailed, "docker system df"},
		"deadline":         {context.DeadlineExceeded, exitFailed, "try again"},
		"interrupted":      {errInterrupted, exitInterrupted, ""},
		"terminated":       {errTerminated, exitTerminated, ""},
		"refusal":          {refuse("h", "no"), exitRefused, "h"},
		"own":              {fail(exitPending, "h", "wait"), exitPending, "h"},
		"signal over own":  {fmt.Errorf("%w: %w", errInterrupted, refuse("", "no")), exitInterrupted, ""},
		"child of exec":    {childExit(42, "ls", nil), 42, ""},
		"signal in a call": {&wrapped{errTerminated}, exitTerminated, ""},
	} {
		for _, err := range []error{c.err, fmt.Errorf("outer: %w", fmt.Errorf("inner: %w", c.err))} {
			f := asFailure(err)
			if f.code != c.code || !strings.Contains(f.hint, c.hint) || (c.hint == "") != (f.hint == "") {
				t.Errorf("%s: %v gives code %d, hint %q; want %d, %q", name, err, f.code, f.hint, c.code, c.hint)
			}
		}
	}
}

func TestDiskFullNamesThePlace(t *testing.T) {
	// A full disk must be said first, with a path that exists although the file that found it full does not, and with all that was known before.
	dir := t.TempDir()
	log := filepath.Join(dir, "build.log")
	if err := os.WriteFile(log, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, at := range map[string]string{filepath.Join(dir, "web", ".compose.yaml123"): dir, log: log} {
		err := fmt.Errorf("create web: %w", &fs.PathError{Op: "write", Path: path, Err: syscall.ENOSPC})
		f := asFailure(err)
		if want := "disk full at " + at + ": create web: write " + path; !strings.HasPrefix(f.message, want) || f.code != exitFailed {
			t.Errorf("code %d, %q; want %q", f.code, f.message, want)
		}
		if g := asFailure(afterStart(err)); g.code != exitOurs || g.message != f.message || g.hint != f.hint {
			t.Errorf("after the start: %+v, want code %d and the rest as %+v", g, exitOurs, f)
		}
	}
}

type wrapped struct{ err error }

func (w *wrapped) Error() string { return "wrapped" }
func (w *wrapped) Unwrap() error { return w.err }

func TestAfterStart(t *testing.T) {
	// Where the agent's code may come back, our own failures must be 125; a signal and a child's end stay what they are.
	for _, c := range []struct {
		err  error
		code int
	}{
		{errors.New("x"), exitOurs},
		{refuse("", "no"), exitOurs},
		{&engine.UnreachableError{}, exitOurs},
		{errInterrupted, exitInterrupted},
		{errTerminated, exitTerminated},
		{childExit(3, "claude", nil), 3},
	} {
		if got := asFailure(afterStart(c.err)).code; got != c.code {
			t.Errorf("%v gives %d, want %d", c.err, got, c.code)
		}
	}
	if afterStart(nil) != nil {
		t.Error("no error became one")
	}
	before := refuse("h", "no")
	if _ = afterStart(before); before.code != exitRefused {
		t.Error("the error itself was changed")
	}
}

func TestReport(t *testing.T) {
	// An error must be one line and a hint on stderr, or one envelope on stdout whose ok agrees with the code.
	for _, c := range []struct {
		err         error
		code        int
		name        string
		text        string
		dataPresent bool
	}{
		{nil, 0, "", "", false},
		{refuse("do this", "not\n  that <b>"), 2, "refused", "agent-container: error: not that <b>\nagent-container: hint: do this\n", false},
		{fail(exitBusy, "", "busy"), 6, "busy", "agent-container: error: busy\n", false},
		{childExit(2, "ls", execAnswer{Name: "demo", ExitCode: 2}), 2, "exit", "", true}, // the child has spoken
		{childExit(200, "ls", nil), 200, "exit", "", false},
	} {
		var out, conversation bytes.Buffer
		a := &app{out: &out, err: &conversation}
		if code := a.report(c.err); code != c.code || conversation.String() != c.text || out.Len() > 0 {
			t.Errorf("%v: code %d, stderr %q, stdout %q", c.err, code, conversation.String(), out.String())
		}
		if c.err == nil {
			continue
		}
		a.json = true
		conversation.Reset()
		if code := a.report(c.err); code != c.code || conversation.Len() > 0 {
			t.Errorf("%v: code %d, stderr %q with --json", c.err, code, conversation.String())
		}
		var e struct {
			Schema string
			OK     bool
			Data   map[string]any
			Error  struct{ Code, Message, Hint string }
		}
		if err := json.Unmarshal(out.Bytes(), &e); err != nil || strings.Count(out.String(), "\n") != 1 {
			t.Fatalf("%q: %v", out.String(), err)
		}
		if e.Schema != envelopeSchema || e.OK || e.Error.Code != c.name || (e.Data != nil) != c.dataPresent {
			t.Errorf("%v: envelope %s", c.err, out.String())
		}
	}
}

func TestAnswer(t *testing.T) {
	// An answer must be its text, or one envelope with ok; an answer without data still is one.
	var out bytes.Buffer
	a := &app{out: &out}
	if err := a.answer(versionAnswer{"1", "go", "p"}); err != nil || out.String() != "agent-container 1 (go, p)\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
	a.json = true
	for _, data := range []any{versionAnswer{"<1>", "go", "p"}, nil} {
		out.Reset()
		if err := a.answer(data); err != nil {
			t.Fatal(err)
		}
		var e map[string]any
		if err := json.Unmarshal(out.Bytes(), &e); err != nil || e["ok"] != true || e["data"] == nil || e["error"] != nil {
			t.Errorf("%v gives %s", data, out.String())
		}
		if strings.Contains(out.String(), `\u003c`) {
			t.Errorf("escaped for HTML: %s", out.String())
		}
	}
}

func TestAge(t *testing.T) {
	// A time must be relative on a terminal and absolute in a pipe; never is nothing; the future is now.
	now := time.Date(2026, 1, 2, 15, 4, 5, 0, time.FixedZone("", 3600))
	for _, c := range []struct {
		ago  time.Duration
		want string
	}{
		{0, "0s"}, {59 * time.Second, "59s"}, {time.Minute, "1m"}, {59*time.Minute + 59*time.Second, "59m"},
		{time.Hour, "1h"}, {47 * time.Hour, "47h"}, {48 * time.Hour, "2d"}, {240 * time.Hour, "10d"}, {-time.Hour, "0s"},
	} {
		if got := age(now.Add(-c.ago), now, true); got != c.want {
			t.Errorf("%s ago is %q, want %q", c.ago, got, c.want)
		}
	}
	if got := age(now, now, false); got != "2026-01-02T14:04:05Z" {
		t.Errorf("in a pipe it is %q", got)
	}
	if got := age(time.Time{}, now, false) + age(time.Time{}, now, true); got != "" {
		t.Errorf("never is %q", got)
	}
}

func TestTable(t *testing.T) {
	// Columns must be aligned, and an empty cell be a dash, so that fields can be counted.
	var b bytes.Buffer
	table(&b, []string{"NAME", "EXIT"}, [][]string{{"a", ""}, {"longer", "42"}})
	if want := "NAME    EXIT\na       -\nlonger  42\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}
