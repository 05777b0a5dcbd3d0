package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/google/renameio/v2"

	"github.com/agent-container/agent-container/spec"
)

// answerTime is how much longer than a phase may take its end is waited for: the
// phase itself says that it took too long, unless the agent user keeps it from
// doing so.
const answerTime = 5 * time.Second

// waitTime is how long status wait keeps silent.
const waitTime = 5 * time.Second

// status keeps or tells how far the container has come:
//
//	status ready
//	status check   for the engine's health check: prints it, fails when it failed
//	status wait    prints it once it is final, has not changed for too long, or
//	               after waitTime, so that whoever asks hears how far it is
func (g *guest) status(args []string) error {
	switch {
	case len(args) == 1 && args[0] == "ready":
		return g.setStatus(spec.Status{State: spec.Ready})
	case len(args) == 1 && args[0] == "check":
		return g.checkStatus()
	case len(args) == 1 && args[0] == "wait":
		return g.waitStatus()
	}
	return errors.New("usage: status ready | check | wait")
}

func (g *guest) setStatus(s spec.Status) error {
	if s.State == spec.Ready && s.Reason == "" {
		note, _ := os.ReadFile(g.fill(spec.FileNote)) // none, mostly
		s.Reason = string(note)
	}
	return wrap("status", renameio.WriteFile(g.fill(spec.FileStatus), []byte(s.String()+"\n"), 0o600))
}

// setNote keeps what the user should know once the set-up is over.
func (g *guest) setNote(text string) error {
	say("NOTE: %s", text)
	return renameio.WriteFile(g.fill(spec.FileNote), []byte(text), 0o600)
}

func (g *guest) readStatus() (spec.Status, error) {
	// The agent may put anything here; a FIFO would hold up whoever asks.
	info, err := os.Lstat(g.fill(spec.FileStatus))
	if err != nil {
		return spec.Status{}, err
	}
	if !info.Mode().IsRegular() || info.Size() > 4096 {
		return spec.Status{}, errors.New("the status is not a small regular file")
	}
	b, err := os.ReadFile(g.fill(spec.FileStatus))
	if err != nil {
		return spec.Status{}, err
	}
	return spec.ParseStatus(string(b))
}

func (g *guest) checkStatus() error {
	s, err := g.readStatus()
	if err != nil {
		return err
	}
	fmt.Println(s)
	if s.State != spec.Ready {
		return exitStatus(1)
	}
	return nil
}

// waitStatus polls: the file changes a few times in a second and then never.
func (g *guest) waitStatus() error {
	var last spec.Status
	began, limit := time.Now(), g.startLimit()
	for {
		s, err := g.readStatus()
		if err == nil && s.State != spec.Starting {
			fmt.Println(s)
			return nil
		}
		if err == nil {
			last = s
		}
		if g.statusAge(last, began) > limit+answerTime {
			fmt.Println(spec.Status{State: spec.Failed, Phase: phaseOr(last.Phase), Reason: fmt.Sprintf("no progress for %s", limit)})
			return nil
		}
		if err == nil && time.Since(began) > waitTime {
			fmt.Println(s)
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// statusAge is how long ago the status was last written; a phase writes it again
// while it makes progress. Without one, or before the first phase, whose status
// the host has filled by its own clock, it is the time since began.
func (g *guest) statusAge(s spec.Status, began time.Time) time.Duration {
	info, err := os.Lstat(g.fill(spec.FileStatus))
	if err != nil || s.Phase == spec.PhaseContainer {
		return time.Since(began)
	}
	return time.Since(info.ModTime())
}

func phaseOr(phase string) string {
	if phase == "" {
		return "start"
	}
	return phase
}
