package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/google/renameio/v2"

	"github.com/agent-container/agent-container/spec"
)

// setupSSH lets in who may attach, where that was asked for: the container's own
// host key, made once on its volume; the keys that were filled; and sshd.
func (g *guest) setupSSH() error {
	keys, err := os.ReadFile(g.fill(spec.FillAccess))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // nobody attaches over ssh
	}
	if err != nil {
		return err
	}
	if err := g.setupHostKey(); err != nil {
		return wrap("host key", err)
	}
	if err := g.authorize(keys); err != nil {
		return wrap("authorized_keys", err)
	}
	if err := g.keepEnvironment(); err != nil {
		return err
	}
	return wrap("sshd", g.startSSHD())
}

func (g *guest) ssh(elem ...string) string {
	return filepath.Join(append([]string{g.home, ".ssh"}, elem...)...)
}

// hostKey is the path of the host key's private half.
func (g *guest) hostKey() string { return g.ssh(spec.HostKeyDir, spec.HostKeyFile) }

// setupHostKey makes the host key unless there is one. A key that is there and
// cannot be read is an error: clients have pinned it, and a new one would look
// like an attack.
func (g *guest) setupHostKey() error {
	key := g.hostKey()
	if exists(key) {
		return publishKey(key)
	}
	return g.newKey(key)
}

// newKey makes an ed25519 key, in place of one that may be there.
func (g *guest) newKey(key string) error {
	if err := os.MkdirAll(filepath.Dir(key), 0o700); err != nil {
		return err
	}
	scratch, err := os.MkdirTemp(filepath.Dir(key), "new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	made := filepath.Join(scratch, "key")
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "agent-container "+g.name, "-f", made).CombinedOutput(); err != nil {
		return fmt.Errorf("ssh-keygen: %w: %s", err, out)
	}
	if err := os.Rename(made, key); err != nil {
		return err
	}
	return publishKey(key)
}

// publishKey writes the public half of a key beside it.
func publishKey(key string) error {
	public, err := exec.Command("ssh-keygen", "-y", "-P", "", "-f", key).Output()
	if err != nil {
		return fmt.Errorf("%s is not a private key; move it away to have a new one made: %w", key, err)
	}
	return renameio.WriteFile(key+".pub", public, 0o644)
}

// authorize puts the filled keys between our marks.
func (g *guest) authorize(keys []byte) error {
	path := g.ssh("authorized_keys")
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	content, err := replaceRegion(string(old), string(keys))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return renameio.WriteFile(path, []byte(content), 0o600)
}

// replaceRegion returns text with what stands between our marks replaced by
// keys. Marks that are broken are an error: what is the user's is not clear then.
func replaceRegion(text, keys string) (string, error) {
	var before, after []string
	state := 0 // before, inside, after our region
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case strings.HasPrefix(line, spec.AccessBegin) && state == 0:
			state = 1
		case line == spec.AccessEnd && state == 1:
			state = 2
		case strings.HasPrefix(line, spec.AccessBegin), line == spec.AccessEnd:
			return "", errors.New("its agent-container marks are broken; remove those lines")
		case state == 0:
			before = append(before, line)
		case state == 2:
			after = append(after, line)
		}
	}
	if state == 1 {
		return "", errors.New("its agent-container region has no end; remove its first line")
	}
	lines := append(before, spec.AccessBegin+": rewritten at every start")
	if keys = strings.TrimRight(keys, "\n"); keys != "" {
		lines = append(lines, keys)
	}
	return strings.Join(append(append(lines, spec.AccessEnd), after...), "\n") + "\n", nil
}

// access add|remove changes the lines outside our region: add appends the lines
// on stdin that are not there yet, remove takes out those that hold the key on
// stdin.
func (g *guest) access(args []string) error {
	if len(args) != 1 || args[0] != "add" && args[0] != "remove" {
		return errors.New("usage: access add | remove")
	}
	input, err := io.ReadAll(io.LimitReader(os.Stdin, 1<<20))
	if err != nil {
		return err
	}
	path := g.ssh("authorized_keys")
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	content := string(old)
	if args[0] == "remove" {
		content = withoutKey(content, strings.TrimSpace(string(input)))
	} else {
		for line := range strings.Lines(string(input)) {
			if line = strings.TrimSpace(line); line != "" && !strings.Contains(content, line) {
				content += line + "\n"
			}
		}
	}
	return renameio.WriteFile(path, []byte(content), 0o600)
}

// withoutKey drops the lines outside our region that hold key.
func withoutKey(text, key string) string {
	var kept strings.Builder
	ours := false
	for line := range strings.Lines(text) {
		ours = ours && strings.TrimSpace(line) != spec.AccessEnd || strings.HasPrefix(line, spec.AccessBegin)
		if ours || key == "" || !slices.Contains(strings.Fields(line), key) {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

// keepEnvironment keeps the container's environment for logins: sshd starts
// them with none of it.
func (g *guest) keepEnvironment() error {
	var b bytes.Buffer
	for _, e := range os.Environ() {
		b.WriteString(e + "\x00")
	}
	return renameio.WriteFile(g.fill(spec.FileEnviron), b.Bytes(), 0o600)
}

// sshdAnswerTime is how long sshd may take until it listens.
const sshdAnswerTime = 10 * time.Second

// startSSHD starts sshd beside us and waits until it listens. Its words go to
// the container's log.
func (g *guest) startSSHD() error {
	args := []string{"-f", g.sshdConfig, "-h", g.hostKey()}
	// Every client comes from the engine's bridge, so a penalty for one would be
	// one for all. Before 9.8 there are none, and the word is refused.
	if penalties := []string{"-o", "PerSourcePenalties=no"}; exec.Command(g.sshd, append(append([]string{"-t"}, args...), penalties...)...).Run() == nil {
		args = append(args, penalties...)
	}
	if out, err := exec.Command(g.sshd, append([]string{"-t"}, args...)...).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
	}
	cmd := exec.Command(g.sshd, append([]string{"-D", "-e"}, args...)...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for deadline := time.Now().Add(sshdAnswerTime); time.Now().Before(deadline); {
		select {
		case err := <-ended:
			return fmt.Errorf("it ended at once: %w", err)
		case <-time.After(5 * time.Millisecond):
		}
		if conn, err := net.DialTimeout("tcp", g.sshAddress, time.Second); err == nil {
			conn.Close()
			return nil
		}
	}
	_ = cmd.Process.Kill()
	return fmt.Errorf("it does not listen on %s", g.sshAddress)
}

// login is what sshd runs for every session: the session's command or a shell,
// with the environment that a job has, and where an exec begins.
func (g *guest) login([]string) error {
	os.Unsetenv("MAIL")       // sshd's idea; there is none
	_ = os.Chdir(g.workspace) // without it, in the home
	argv := []string{"bash"}  // no login shell: /etc/profile would set PATH anew, over the user's own
	if command := os.Getenv("SSH_ORIGINAL_COMMAND"); command != "" {
		return g.runCommand(command)
	}
	return g.runWithEnvironment(argv)
}

// runCommand runs a session's command and ends as it does. One that a signal ends
// gives 128 and its number, as a shell says it: sshd would pass the signal on, and
// ssh knows no other word for that than 255, its own trouble.
func (g *guest) runCommand(command string) error {
	cmd := exec.Command("/proc/self/exe", "env", "bash", "-c", command)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	// The terminal's signals are the command's; caught, not ignored, which it would
	// inherit.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT, syscall.SIGQUIT)
	err := cmd.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return err
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return exitStatus(128 + int(status.Signal()))
	}
	return exitStatus(exit.ExitCode())
}

// restoreEnvironment sets what the container's environment had when sshd was
// started, and a session has not got by itself.
func restoreEnvironment(path string) {
	b, err := os.ReadFile(path)
	if err != nil {
		return // fromEnvironment will say what is missing
	}
	for _, e := range bytes.Split(b, []byte{0}) {
		name, value, ok := strings.Cut(string(e), "=")
		_, set := os.LookupEnv(name)
		if ok && (!set || name == "PATH") {
			os.Setenv(name, value)
		}
	}
}
