package panes

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-container/agent-container/process"
	"github.com/agent-container/agent-container/recognise"
)

// psSource is the source where there is no /proc: one ps a round. It joins arguments
// with blanks, so that a flag's value with a blank in it can hide an agent; where the
// system tells the arguments themselves, those are read.
type psSource struct {
	runner    *process.Runner
	arguments func(pid int) ([]string, error)
	table     map[int]proc
	below     map[int][]int
	said      map[int]said // the arguments themselves are not kept
}

// psArgv asks for what parsePS reads. The start is five words. FreeBSD takes what stands
// behind the first "=" of a list for a heading.
var psArgv = []string{"ps", "-A", "-ww", "-o", "pid=", "-o", "ppid=", "-o", "pgid=", "-o", "tpgid=", "-o", "stat=", "-o", "lstart=", "-o", "args="}

func (s *psSource) refresh(ctx context.Context) error {
	r := s.runner.With("LC_ALL=C") // elsewhere the start may be six words
	out, err := r.Output(ctx, process.Command{Argv: psArgv})
	if err != nil {
		return fmt.Errorf("cannot list the processes: %w", err)
	}
	s.table, s.below, s.said = map[int]proc{}, map[int][]int{}, map[int]said{}
	for line := range strings.Lines(string(out)) {
		if p, parent, says, ok := parsePS(line); ok {
			s.table[p.pid], s.said[p.pid] = p, says
			s.below[parent] = append(s.below[parent], p.pid)
		}
	}
	return nil
}

// parsePS reads one line of ps.
func parsePS(line string) (p proc, parent int, says said, ok bool) {
	f := strings.Fields(line)
	if len(f) < 11 {
		return proc{}, 0, said{}, false
	}
	var numbers [4]int
	for i := range numbers {
		n, err := strconv.Atoi(f[i])
		if err != nil {
			return proc{}, 0, said{}, false
		}
		numbers[i] = n
	}
	p = proc{pid: numbers[0], pgrp: numbers[2], foreground: numbers[3], gone: f[4][0] == 'Z'}
	p.start, p.comm = strings.Join(f[5:10], " "), f[10][strings.LastIndexByte(f[10], '/')+1:]
	args := f[10:]
	says.script = givenScript(args)
	var in bool
	if says.Agent, says.Runtime, in = recognise.RecogniseLine(strings.Join(args, " ")); !in {
		says.Agent, _ = recognise.Host(args)
	}
	return p, numbers[1], says, true
}

func (s *psSource) process(pid int) (proc, error) {
	p, ok := s.table[pid]
	if !ok {
		return proc{}, ErrNoProcess
	}
	return p, nil
}

func (s *psSource) children(p proc) []int { return s.below[p.pid] }

func (s *psSource) read(p proc) (said, error) {
	if argv, err := s.arguments(p.pid); err == nil {
		return saidBy(argv), nil
	}
	return s.said[p.pid], nil // the next best
}

func (s *psSource) pids() ([]int, error) {
	var pids []int
	for pid := range s.table {
		pids = append(pids, pid)
	}
	slices.Sort(pids)
	return pids, nil
}
