package e2e

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// browser is a real headless browser, driven through its own pipe.
type browser struct {
	t       *testing.T
	to      io.Writer
	from    <-chan []byte
	session string
	asked   int
	events  []browserEvent // since the last visit
}

type browserEvent struct {
	Method string
	Params json.RawMessage
}

// newBrowser starts a browser for one test, or skips it where there is none.
func newBrowser(t *testing.T) *browser {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("skipped: chromium is not installed")
	}
	home := t.TempDir()
	theirIn, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	// No sandbox: it refuses to have one as root.
	cmd := exec.Command(program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
		"--no-first-run", "--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe", "--user-data-dir="+home, "about:blank")
	cmd.Env = append(outerEnvironment(), "HOME="+home)
	cmd.ExtraFiles = []*os.File{theirIn, theirOut} // 3 and 4
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirIn.Close()
	theirOut.Close()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // its helpers too
		_ = cmd.Wait()
		in.Close()
		out.Close()
	})
	b := &browser{t: t, to: in, from: messages(out)}
	b.open()
	return b
}

// messages are the documents that the browser sends, each ended by NUL.
func messages(r io.Reader) <-chan []byte {
	c := make(chan []byte, 100)
	go func() {
		defer close(c)
		for in := bufio.NewReader(r); ; {
			m, err := in.ReadBytes(0)
			if err != nil {
				return
			}
			c <- bytes.TrimSuffix(m, []byte{0})
		}
	}()
	return c
}

// open makes a page and has it tell of everything that goes wrong in it.
func (b *browser) open() {
	b.t.Helper()
	var target struct{ TargetID string }
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network", "Audits"} {
		b.call(domain+".enable", nil, nil)
	}
}

// read returns the next message.
func (b *browser) read() (m struct {
	ID     int
	Result json.RawMessage
	Error  *struct{ Message string }
	browserEvent
}) {
	b.t.Helper()
	select {
	case content, open := <-b.from:
		if !open {
			b.t.Fatal("the browser has ended")
		}
		if err := json.Unmarshal(content, &m); err != nil {
			b.t.Fatalf("%v: %.200s", err, content)
		}
	case <-time.After(time.Minute):
		b.t.Fatal("the browser does not answer")
	}
	if m.Method != "" {
		b.events = append(b.events, m.browserEvent)
	}
	return m
}

// call asks the browser and decodes its answer into result.
func (b *browser) call(method string, params map[string]any, result any) {
	b.t.Helper()
	b.asked++
	if params == nil {
		params = map[string]any{}
	}
	m := map[string]any{"id": b.asked, "method": method, "params": params}
	if b.session != "" {
		m["sessionId"] = b.session
	}
	content, err := json.Marshal(m)
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.to.Write(append(content, 0)); err != nil {
		b.t.Fatal(err)
	}
	for {
		answer := b.read()
		if answer.ID != b.asked {
			continue
		}
		if answer.Error != nil {
			b.t.Fatalf("%s: %s", method, answer.Error.Message)
		}
		if result != nil {
			if err := json.Unmarshal(answer.Result, result); err != nil {
				b.t.Fatalf("%s: %v: %.300s", method, err, answer.Result)
			}
		}
		return
	}
}

// visit loads a file in a window of that width and colour scheme, "light",
// "dark" or "print", and waits until it is there.
func (b *browser) visit(path string, width int, scheme string) {
	b.t.Helper()
	media := map[string]any{"media": "", "features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}
	if scheme == "print" {
		media = map[string]any{"media": "print"}
	}
	b.call("Emulation.setEmulatedMedia", media, nil)
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}, nil)
	b.events = nil
	b.call("Page.navigate", map[string]any{"url": "file://" + path}, nil)
	for loaded := false; !loaded; {
		for _, e := range b.events {
			loaded = loaded || e.Method == "Page.loadEventFired"
		}
		if !loaded {
			b.read()
		}
	}
}

// eval computes an expression in the page, whatever the page's policy says.
func (b *browser) eval(expression string, result any) {
	b.t.Helper()
	var r struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	b.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true}, &r)
	if r.ExceptionDetails != nil {
		b.t.Fatalf("%s: %s %s", expression, r.ExceptionDetails.Text, r.ExceptionDetails.Exception.Description)
	}
	if err := json.Unmarshal(r.Result.Value, result); err != nil {
		b.t.Fatalf("%s: %v: %.300s", expression, err, r.Result.Value)
	}
}

// problems are what the page has complained of since it was visited: console,
// exceptions, what its policy forbade, and requests beside its own.
func (b *browser) problems() []string {
	b.t.Helper()
	var list []string
	requests := 0
	for _, e := range b.events {
		switch e.Method {
		case "Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Audits.issueAdded", "Page.javascriptDialogOpening":
			list = append(list, fmt.Sprintf("%s: %.400s", e.Method, e.Params))
		case "Network.requestWillBeSent":
			if requests++; requests > 1 && !bytes.Contains(e.Params, []byte(`"url":"data:,"`)) {
				list = append(list, fmt.Sprintf("it asks for more: %.300s", e.Params))
			}
		}
	}
	return list
}

// picture keeps a picture of the whole page, for people, in the directory that
// AGENT_CONTAINER_PICTURES names.
func (b *browser) picture(name string) {
	b.t.Helper()
	dir := os.Getenv("AGENT_CONTAINER_PICTURES")
	if dir == "" {
		return
	}
	var width, height float64
	b.eval("document.documentElement.clientWidth", &width)
	b.eval("document.documentElement.scrollHeight", &height)
	var shot struct{ Data string }
	b.call("Page.captureScreenshot", map[string]any{
		"captureBeyondViewport": true, "format": "png", "clip": map[string]any{"x": 0, "y": 0, "width": width, "height": min(height, 5000), "scale": 1},
	}, &shot)
	content, err := base64.StdEncoding.DecodeString(shot.Data)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, strings.ReplaceAll(name, " ", "-")+".png"), content, 0o600)
	}
	if err != nil {
		b.t.Error(err)
	}
}
