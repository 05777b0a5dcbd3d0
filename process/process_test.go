package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sh is a command of a shell script with arguments.
func sh(script string, args ...string) Command {
	return Command{Argv: append([]string{"sh", "-c", script, "sh"}, args...)}
}

func TestRunExitCodes(t *testing.T) {
	// A status other than 0 must come back unchanged as an *ExitError, and a signal as 128 + its number.
	for script, want := range map[string]int{
		"exit 0": 0, "exit 1": 1, "exit 2": 2, "exit 42": 42, "exit 125": 125, "exit 126": 126, "exit 127": 127, "exit 255": 255,
		"kill -TERM $$": 143, "kill -KILL $$": 137, "kill -INT $$": 130, "kill -HUP $$": 129,
	} {
		err := new(Runner).Run(t.Context(), sh(script))
		var exit *ExitError
		if want == 0 && err != nil || want != 0 && (!errors.As(err, &exit) || exit.Code != want) {
			t.Errorf("%q: %v, want status %d", script, err, want)
		}
	}
}

func TestRunErrorText(t *testing.T) {
	// The error must name the program and its verb, and say its last line on stderr, or its status where it said nothing.
	for script, want := range map[string]string{
		"echo first >&2; echo 'the reason' >&2; exit 3":                             "the reason",
		"printf 'no end of line' >&2; exit 3":                                       "no end of line",
		"printf 'reason\\n\\n  \\n' >&2; exit 3":                                    "reason",
		"echo reason >&2; echo 'exit status 3' >&2; exit 3":                         "reason",
		"echo 'exit status 3' >&2; exit 3":                                          "exit status 3",
		"echo 'reason: exit status 4' >&2; exit 3":                                  "reason: exit status 4",
		"echo on stdout; exit 3":                                                    "exit status 3",
		"kill -TERM $$":                                                             "exit status 143",
		"printf '\\n' >&2; exit 1":                                                  "exit status 1",
		"echo reason >&2; echo exit status 1 >&2; exit 1":                           "reason", // as docker 28 does
		"head -c 200000 /dev/zero | tr '\\0' x >&2; echo >&2; echo end >&2; exit 1": "end",
	} {
		err := new(Runner).Run(t.Context(), sh(script))
		if err == nil || err.Error() != "sh: "+want {
			t.Errorf("%q: %.200v, want %q", script, err, "sh: "+want)
		}
	}
	err := new(Runner).Run(t.Context(), Command{Argv: []string{"env", "false"}})
	if err == nil || err.Error() != "env false: exit status 1" {
		t.Errorf("%v", err)
	}
}

func TestRunStderrElsewhere(t *testing.T) {
	// Where stderr goes to the caller, all of it must arrive there and none be kept for the error.
	var stderr bytes.Buffer
	c := sh("echo said >&2; exit 3")
	c.Stderr = &stderr
	err := new(Runner).Run(t.Context(), c)
	var exit *ExitError
	if !errors.As(err, &exit) || exit.Stderr != "" || stderr.String() != "said\n" {
		t.Errorf("%v, stderr %q", err, stderr.String())
	}
}

func TestRunKeepsStderrToo(t *testing.T) {
	// What goes elsewhere must be in the error as well where that was asked for.
	var elsewhere bytes.Buffer
	c := sh("echo reason >&2; exit 3")
	c.Stderr, c.KeepStderr = &elsewhere, true
	err := new(Runner).Run(t.Context(), c)
	var exit *ExitError
	if !errors.As(err, &exit) || exit.Stderr != "reason\n" || elsewhere.String() != "reason\n" {
		t.Errorf("%v, elsewhere %q", err, elsewhere.String())
	}
}

func TestRunNotFound(t *testing.T) {
	// A program that is not on PATH must be told apart from one that failed.
	for _, path := range []string{"", t.TempDir()} {
		t.Setenv("PATH", path)
		err := new(Runner).Run(t.Context(), Command{Argv: []string{"no-such-program", "verb"}})
		if !errors.Is(err, ErrNotFound) || !strings.HasPrefix(err.Error(), "no-such-program verb: ") {
			t.Errorf("%v", err)
		}
	}
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err := new(Runner).Run(t.Context(), Command{Argv: []string{plain}})
	if err == nil || errors.Is(err, ErrNotFound) || errors.As(err, new(*ExitError)) {
		t.Errorf("a file that cannot be executed: %v", err)
	}
}

func TestRunStreams(t *testing.T) {
	// The program must get the input, directory and environment it was given, and an empty input where it was given none.
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c := sh(`cat; pwd; echo "$A:$HOME"`)
	c.Stdin, c.Dir = strings.NewReader("input\n"), dir
	r := Runner{Env: []string{"A=1", "PATH=" + os.Getenv("PATH")}}
	out, err := r.Output(t.Context(), c)
	if want := "input\n" + dir + "\n1:\n"; err != nil || string(out) != want {
		t.Errorf("%q, %v; want %q", out, err, want)
	}
	t.Setenv("A", "of the caller")
	out, err = new(Runner).Output(t.Context(), sh(`cat; echo "$A"`))
	if err != nil || string(out) != "of the caller\n" {
		t.Errorf("%q, %v", out, err)
	}
}

func TestOutputOnFailure(t *testing.T) {
	// What a program printed before it failed must be returned with the error.
	out, err := new(Runner).Output(t.Context(), sh("echo half; exit 9"))
	var exit *ExitError
	if string(out) != "half\n" || !errors.As(err, &exit) || exit.Code != 9 {
		t.Errorf("%q, %v", out, err)
	}
}

func TestTrace(t *testing.T) {
	// Each argv must be printed before it runs, so that it can be pasted into a shell, and nothing of the input.
	var trace bytes.Buffer
	r := Runner{Trace: &trace}
	c := Command{Argv: []string{"printf", "%s\n", "it's $HOME", ""}, Stdin: strings.NewReader("secret")}
	if err := r.Run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	_ = r.Run(t.Context(), Command{Argv: []string{"no-such-program"}})
	want := "+ printf '%s\n' 'it'\\''s $HOME' ''\n+ no-such-program\n"
	if d := cmp.Diff(want, trace.String()); d != "" {
		t.Error(d)
	}
}

func TestShort(t *testing.T) {
	// An error must name the program and its verb, never an option or what follows.
	for want, argv := range map[string][]string{
		"docker":         {"docker"},
		"docker compose": {"docker", "compose", "up"},
		"claude":         {"claude", "-p", "task"},
	} {
		if got := Short(argv); got != want {
			t.Errorf("Short(%q) = %q, want %q", argv, got, want)
		}
	}
}

func TestQuote(t *testing.T) {
	// Plain words must stay as they are, and everything else be quoted.
	for want, argv := range map[string][]string{
		"docker compose -f /a/b.yaml up": {"docker", "compose", "-f", "/a/b.yaml", "up"},
		"a ''":                           {"a", ""},
		"'a b' '$c' '~' '*' '#'":         {"a b", "$c", "~", "*", "#"},
		`'it'\''s'`:                      {"it's"},
		"":                               {},
	} {
		if got := Quote(argv); got != want {
			t.Errorf("Quote(%q) = %q, want %q", argv, got, want)
		}
	}
}

func TestQuoteRoundTrip(t *testing.T) {
	// A real shell must read back every byte but NUL, alone, in the middle of a word, and all together.
	argv := []string{"printf", "%s|"}
	var all []byte
	for b := 1; b < 256; b++ {
		argv = append(argv, string([]byte{byte(b)}), fmt.Sprintf("x%cy%s", 'z', []byte{byte(b)})+"x")
		all = append(all, byte(b))
	}
	argv = append(argv, string(all), "é 🙂", "-n", "")
	out, err := new(Runner).Output(t.Context(), sh(Quote(argv)))
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.Join(argv[2:], "|") + "|"; want != string(out) {
		t.Error(cmp.Diff(want, string(out)))
	}
}

func TestTail(t *testing.T) {
	// The tail must hold the last bytes written and never more than its limit.
	tl := &tail{limit: 10}
	var all string
	for _, s := range []string{"", "abc", "defghij", "k", "0123456789", strings.Repeat("x", 25) + "end", "!"} {
		if n, err := tl.Write([]byte(s)); n != len(s) || err != nil {
			t.Errorf("Write(%q) = %d, %v", s, n, err)
		}
		all += s
		if want := all[max(0, len(all)-10):]; tl.String() != want {
			t.Errorf("after %q: %q, want %q", s, tl.String(), want)
		}
	}
	for range 1000 {
		_, _ = io.WriteString(tl, strings.Repeat("y", 1000))
	}
	if cap(tl.buf) > 4096 {
		t.Errorf("a tail of 10 bytes keeps %d", cap(tl.buf))
	}
}

func TestRunKeepsBoundedStderr(t *testing.T) {
	// A program that floods stderr must not make its error large.
	err := new(Runner).Run(context.Background(), sh("head -c 1000000 /dev/zero >&2; exit 1"))
	var exit *ExitError
	if !errors.As(err, &exit) || len(exit.Stderr) != keepStderr {
		t.Errorf("%T with %d bytes", err, len(exit.Stderr))
	}
}
