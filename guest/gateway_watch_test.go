package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/agent-container/agent-container/spec"
)

func TestNothingBeforeTheGateway(t *testing.T) {
	// Where egress is declared and the gateway has not proved itself, the set-up must fail and no phase behind it, nor the agent, may run.
	b := newBox(t, "claude", spec.Headless)
	b.p.Egress = string(spec.Strict)
	b.stub("claude", `touch "$HOME/ran"`)
	r := b.enter()
	if code := r.wait(); code != 1 {
		t.Errorf("exit %d, want 1\n%s", code, r.err.String())
	}
	if !strings.HasPrefix(b.status(), "failed gateway: ") || exitOf(b.record()) != "failed set-up 1" {
		t.Errorf("status %q, record %s", b.status(), exitOf(b.record()))
	}
	if exists(b.home("ran")) || exists(b.home(".gitconfig")) {
		t.Error("something ran without a proved gateway")
	}
}

func TestCutOffIsNoSuccess(t *testing.T) {
	// A job whose gateway is lost must be ended, not be tried again, and never count as done: its code is the forced stop's, and the record says why.
	b := newBox(t, "claude", spec.Headless)
	b.fill(spec.FillJob, `{"restart":"on-failure:3"}`)
	b.stub("claude", "exec sleep 20")
	if code, _, said := b.guest("phase", "record"); code != 0 {
		t.Fatal(said)
	}
	b.p.Egress = string(spec.Strict) // its key is gone, and so the gateway for whoever watches it
	code, _, said := b.guest("headless")
	r := b.record()
	if code != 143 || exitOf(r) != "failed egress 143" || len(r.Notes) != 1 || !strings.Contains(said, "error: "+r.Notes[0]) {
		t.Errorf("exit %d, record %s, notes %q, said %q", code, exitOf(r), r.Notes, said)
	}
	for script, want := range map[string]int{"exit 0": 143, "exit 7": 7, "kill -KILL $$": 137} {
		over := ending{outcome: spec.OutcomeFailed, cause: spec.CauseEgress, code: 143}
		end, err := endingOf(exec.Command("bash", "-c", script).Run(), &over, 0)
		if err != nil || end.code != want || end.cause != spec.CauseEgress || !end.final() {
			t.Errorf("an agent that is cut off and ends with %s: %+v, %v", script, end, err)
		}
	}
}

func TestEndWithoutAGateway(t *testing.T) {
	// Where an agent ends by itself and its gateway is lost by then, the record must say so, with the agent's own code, and no attempt may follow.
	for code, outcome := range map[string]string{"0": "finished exit 0", "7": "failed exit 7"} {
		b := newBox(t, "claude", spec.Headless)
		b.fill(spec.FillJob, `{"restart":"on-failure:3"}`)
		b.fill(spec.FillKey, strings.Repeat("k", 32))
		b.stub("claude", "echo ran >>\"$HOME/ran\"; rm "+b.p.RunDir+"/"+spec.FillKey+"; exit "+code)
		if code, _, said := b.guest("phase", "record"); code != 0 {
			t.Fatal(said)
		}
		b.p.Egress = string(spec.Strict)
		_, _, said := b.guest("headless")
		r := b.record()
		if exitOf(r) != outcome || len(r.Notes) != 1 || !strings.HasPrefix(r.Notes[0], "the gateway was lost before the agent ended") || !strings.Contains(said, r.Notes[0]) {
			t.Errorf("record %s, notes %q, said %q", exitOf(r), r.Notes, said)
		}
		if ran, err := os.ReadFile(b.home("ran")); err != nil || string(ran) != "ran\n" {
			t.Errorf("exit %s: it ran %q, %v", code, ran, err)
		}
	}
}

func TestSessionIsCutOff(t *testing.T) {
	// A session whose gateway is lost must end, with its record.
	b := newBox(t, "claude", spec.Interactive)
	if code, _, said := b.guest("phase", "record"); code != 0 {
		t.Fatal(said)
	}
	b.p.Egress = string(spec.Strict)
	code, _, said := b.guest("hold")
	if r := b.record(); code != 143 || exitOf(r) != "failed egress 143" || len(r.Notes) != 1 {
		t.Errorf("exit %d, record %s, notes %q\n%s", code, exitOf(r), r.Notes, said)
	}
}
