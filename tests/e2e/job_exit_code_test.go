package e2e

import (
	"fmt"
	"testing"
)

// The exit code of an agent must come back unchanged from a followed job, also
// where it is one of ours, and stay what the record and later commands say.
func TestAgentsExitCodeComesBack(t *testing.T) {
	codes := [][]int{{0, 1, 2, 3}, {42, 124, 125, 126}, {127, 137, 143, 255}}
	for _, some := range codes {
		t.Run(fmt.Sprint(some), func(t *testing.T) {
			u := newUser(t)
			u.withStub()
			for i, code := range some {
				deploy := u.job
				if i > 0 {
					deploy = u.again
				}
				deploy(code, fmt.Sprintf("echo said by the agent; exit %d", code), "--foreground")
				outcome := "failed"
				if code == 0 {
					outcome = "finished"
				}
				wantEnd(t, u.record(), outcome, "exit", code)
			}
			last := some[len(some)-1]
			same := u.unchanged()
			r := u.must("up", u.name)
			if want := fmt.Sprintf("exit code %d", last); !contains(r.stdout, want) || !contains(r.stdout, u.record()["id"].(string)) {
				t.Errorf("up on a finished job does not report %q and its record: %s", want, r)
			}
			u.want(last, "up", u.name, "--foreground")
			same()
		})
	}
}

// An agent that is killed by a signal must be told from one that exits with
// the same code.
func TestAgentKilledByItsOwnSignal(t *testing.T) {
	u := newUser(t)
	u.withStub()
	u.job(137, "kill -s KILL $$", "--foreground")
	wantEnd(t, u.record(), "failed", "signal", 137)
	u.again(143, "kill -s TERM $$", "--foreground")
	wantEnd(t, u.record(), "failed", "signal", 143)
}

// What an agent leaves running must not keep its job from ending.
func TestChildOfTheAgentDoesNotHoldTheJob(t *testing.T) {
	u := newUser(t)
	u.withStub()
	u.job(5, `sh -c 'trap "" TERM HUP; echo child; while :; do sleep 1; done' & until [ -e /proc/$!/fd/1 ]; do :; done; exit 5`, "--foreground")
	wantEnd(t, u.record(), "failed", "exit", 5)
}
