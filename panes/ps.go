package panes

import (
	"context"
	"errors"
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
	found     map[int]Found // the arguments themselves are not kept from one round to the next
}

// psArgv asks for what parsePS reads. The start is five words.
var psArgv = []string{"ps", "-A", "-ww", "-o", "pid=,ppid=,pgid=,tpgid=,stat=,lstart=,args="}

func (s *psSource) refresh(ctx context.Context) error {
	out, err := s.runner.Output(ctx, process.Command{Argv: psArgv})
	if err != nil {
		return fmt.Errorf("cannot list the processes: %w", err)
	}
	s.table, s.below, s.found = map[int]proc{}, map[int][]int{}, map[int]Found{}
	for line := range strings.Lines(string(out)) {
		if p, parent, found, ok := parsePS(line); ok {
			s.table[p.pid], s.found[p.pid] = p, found
			s.below[parent] = append(s.below[parent], p.pid)
		}
	}
	return nil
}

// parsePS reads one line of ps.
func parsePS(line string) (p proc, parent int, found Found, ok bool) {
	f := strings.Fields(line)
	if len(f) < 11 {
		return proc{}, 0, Found{}, false
	}
	var numbers [4]int
	for i := range numbers {
		n, err := strconv.Atoi(f[i])
		if err != nil {
			return proc{}, 0, Found{}, false
		}
		numbers[i] = n
	}
	p = proc{pid: numbers[0], pgrp: numbers[2], foreground: numbers[3], gone: f[4][0] == 'Z'}
	p.start, p.comm = strings.Join(f[5:10], " "), f[10][strings.LastIndexByte(f[10], '/')+1:]
	args := f[10:]
	var in bool
	if found.Agent, found.Runtime, in = recognise.RecogniseLine(strings.Join(args, " ")); !in {
		found.Agent, _ = recognise.Host(args)
	}
	return p, numbers[1], found, true
}

func (s *psSource) process(pid int) (proc, error) {
	p, ok := s.table[pid]
	if !ok {
		return proc{}, errors.New("there is no such process")
	}
	return p, nil
}

func (s *psSource) children(pid int) []int { return s.below[pid] }

func (s *psSource) agent(p proc) (Found, error) {
	if argv, err := s.arguments(p.pid); err == nil {
		return foundIn(argv), nil
	}
	return s.found[p.pid], nil // the next best
}

func (s *psSource) pids() ([]int, error) {
	var pids []int
	for pid := range s.table {
		pids = append(pids, pid)
	}
	slices.Sort(pids)
	return pids, nil
}
