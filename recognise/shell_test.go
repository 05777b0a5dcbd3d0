package recognise

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"mvdan.cc/sh/v3/syntax"
)

// tokens are what scripts are made of here: enough of the shell's grammar to go
// wrong in, nothing that reaches out of an empty directory with an empty PATH.
var tokens = []string{
	"claude", "claude", " ", " ", "\n", ";", "&", "|", "(", ")", "{", "}", "#", "'", `"`, `\`, "\\\n", "\t",
	"true", "echo", "x", "E", "cla", "ude", "A=", ">", "<<E", "<<-'E'", "\nE\n", "*",
	"&&", "||", "!", "if ", "then ", "elif ", "else ", "fi", "while ", "until ", "do ", "done", "for ", " in ", "case ", "esac", ";;", "false",
	"exec ", "command ", "()",
}

// conditional is the first token by which a command may be read and not run; of those
// behind it, ! and command change nothing about that.
const conditional = 30

const maxTokens = 60

func FuzzScriptAgainstShell(f *testing.F) {
	// A script that runs a claude on PATH must be recognised; and one that is recognised
	// must run it, unless it may by its own conditions do otherwise.
	sh := newShell(f)
	for _, script := range []string{
		"claude", "# x ' \" ;\nclaude", "# x \\\nclaude", "true;#claude", "cla\\\nude", `'cla'"ude"`, `\claude`,
		"echo x|claude", "(claude)", "((claude))", "{ claude;}", "A= claude", "A=claude", ">x claude", "> claude",
		"echo <<E\nclaude\nE\n", "echo <<-'E'\n\tclaude\nE\nclaude", "echo <<E;claude\nx\nE\n", "claude\n'x", "claude&&'x",
		"if true;then claude;fi", "for x in claude;do echo;done", "case claude in claude) echo;;esac", "case x in x) claude;;esac",
		"true&&claude", "false||claude", "! claude", "until claude;do true;done", "x(){ claude;}\nx", "claude(){ true;}\nclaude",
		"exec claude", "command claude", "echo 'x'claude", "echo x#claude", "echo x;#'\nclaude", "{ true;}|claude&",
	} {
		f.Add(spell(f, script))
	}
	f.Fuzz(func(t *testing.T, indices []byte) {
		script, conditions := scriptOf(indices)
		if strings.Contains(script, "\x00") {
			return
		}
		_, _, recognised := Recognise(in(script))
		if unread(script) {
			return
		}
		ran, ended := sh.runs(t, script)
		if ran && !recognised {
			t.Errorf("sh runs claude in %q, which is not recognised", script)
		}
		if recognised && !ran && ended && !conditions && sh.parses(t, script) {
			t.Errorf("%q is recognised, but sh runs no claude", script)
		}
	})
}

// scriptOf makes a script of at most maxTokens tokens, and says whether what it runs
// is on conditions.
func scriptOf(indices []byte) (script string, conditions bool) {
	var b strings.Builder
	for _, i := range indices[:min(maxTokens, len(indices))] {
		n := int(i) % len(tokens)
		conditions = conditions || n >= conditional && tokens[n] != "!" && tokens[n] != "command "
		b.WriteString(tokens[n])
	}
	return b.String(), conditions || onCondition.MatchString(b.String())
}

// onCondition finds && and || of two tokens, and redirections that fail, their command
// with them: \<<E is a word that ends in <, and one from a file that is not there; >&x is
// a file to bash alone; >"" has no name.
var onCondition = regexp.MustCompile(`&(\\\n)*&|\|(\\\n)*\||\\<|>(\\\n)*&|>[\s\\|]*(''|"")`)

// spell finds the longest tokens that make up script.
func spell(f *testing.F, script string) []byte {
	var indices []byte
	for script != "" {
		best := -1
		for i, token := range tokens {
			if strings.HasPrefix(script, token) && (best < 0 || len(token) > len(tokens[best])) {
				best = i
			}
		}
		if best < 0 {
			f.Fatalf("no token begins %q", script)
		}
		indices, script = append(indices, byte(best)), script[len(tokens[best]):]
	}
	return indices
}

// unread says whether this package, on purpose or for want of a better parser, does
// not read script as a shell does: it declares a function, which it may do or call on
// conditions that only running it tells; it leaves a here document open at its end,
// which a shell accepts; it has a reserved word behind a redirection, as in
// ">x fi;claude", where to a shell, and not to the parser, it is a command's name; it
// makes a file and has a pattern, as in ">claude;*", which may find that file; it has
// a comment that ends in a backslash behind a here document; or it has &>, after which
// another command begins to dash, and not to bash.
func unread(script string) bool {
	found := unreadable.MatchString(script) || strings.Contains(script, "*") && strings.Contains(script, ">")
	for _, err := range syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).StmtsSeq(strings.NewReader(script)) {
		var mistake syntax.ParseError
		if errors.As(err, &mistake) {
			found = found || strings.Contains(mistake.Text, "unclosed here-document") ||
				redirected.MatchString(script[:mistake.Pos.Offset()])
		}
	}
	return found
}

// unreadable finds empty brackets, which make a function; !( which is a pattern to the
// parser, and to most shells not; such a comment; and &>.
var unreadable = regexp.MustCompile(`(?s)\([\s\\]*\)|!\(|<<.*#[^\n]*\\\n|&(\\\n)*>`)

// redirected finds a redirection in the command that text ends in.
var redirected = regexp.MustCompile(`(?s)[<>][&|]?([^;&|()\n'"\\]|\\.|'[^']*'|"[^"]*")*$`)

// shell is a real sh with nothing on its PATH but a claude that leaves a mark.
type shell struct{ sh, bin, mark, dir string }

func newShell(f *testing.F) shell {
	sh, err := exec.LookPath("sh")
	if err != nil {
		f.Skipf("no shell to compare with: %v", err)
	}
	s := shell{sh: sh, bin: f.TempDir(), mark: filepath.Join(f.TempDir(), "mark"), dir: f.TempDir()}
	stub := "#!" + sh + "\n: >'" + s.mark + "'\n"
	if err := os.WriteFile(filepath.Join(s.bin, "claude"), []byte(stub), 0o755); err != nil {
		f.Fatal(err)
	}
	return s
}

// runs says whether script runs claude, and whether it came to its end in time. What
// it leaves behind holds its output open, so it is waited for too.
func (s shell) runs(t *testing.T, script string) (ran, ended bool) {
	s.sweep(t)
	err := s.start(t, "-c", script)
	var exit *exec.ExitError
	ended = err == nil || errors.As(err, &exit) && exit.Exited()
	_, err = os.Stat(s.mark)
	return err == nil, ended
}

// parses says whether sh can read script to its end.
func (s shell) parses(t *testing.T, script string) bool {
	return s.start(t, "-nc", script) == nil
}

func (s shell) sweep(t *testing.T) {
	for _, pattern := range []string{s.mark, filepath.Join(s.dir, "*"), filepath.Join(s.dir, ".?*")} {
		found, _ := filepath.Glob(pattern)
		for _, path := range found {
			if err := os.RemoveAll(path); err != nil && filepath.Base(path) != ".." {
				t.Fatal(err)
			}
		}
	}
}

// start runs sh for a second at most, and kills what that leaves in the background:
// a loop there would go on for ever, and mark what comes after it.
func (s shell) start(t *testing.T, args ...string) error {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.sh, args...)
	cmd.Dir, cmd.Env = s.dir, []string{"PATH=" + s.bin}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second / 2
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if cmd.Process != nil {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) && ctx.Err() == nil {
		t.Fatal(err)
	}
	return err
}
