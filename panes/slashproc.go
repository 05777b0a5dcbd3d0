package panes

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// slashProc is the source on Linux.
type slashProc struct{ dir string }

func (s slashProc) refresh(context.Context) error { return nil }

// process reads /proc/PID/stat, in which the program's name may hold anything.
func (s slashProc) process(pid int) (proc, error) {
	var room [1024]byte
	b, err := readOnce(s.path(pid, "stat"), room[:])
	if err != nil {
		return proc{}, cause(err)
	}
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 0 || end < open {
		return proc{}, errors.New("its stat is not understood")
	}
	f := strings.Fields(string(b[end+1:])) // the state is the third field of stat
	if len(f) < 20 {
		return proc{}, errors.New("its stat is not understood")
	}
	p := proc{pid: pid, comm: string(b[open+1 : end]), start: f[19], gone: f[0] == "Z" || f[0] == "X"}
	p.pgrp, _ = strconv.Atoi(f[2])
	p.foreground, _ = strconv.Atoi(f[5])
	p.threads, _ = strconv.Atoi(f[17])
	if len(f) > 25 && f[25] != "0" { // which it is of a process of another user
		p.stack = f[25] // where its stack begins: at random
	}
	return p, nil
}

// readOnce reads what one read of a file gives. There are a hundred at every look, and
// os.ReadFile takes twice as many calls of the system.
func readOnce(path string, room []byte) ([]byte, error) {
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	n, err := syscall.Read(fd, room)
	_ = syscall.Close(fd)
	return room[:max(n, 0)], err
}

// maxThreads bounds what a look reads of a program with hundreds of threads.
const maxThreads = 32

// children are those of its first threads; none where the kernel does not list them.
func (s slashProc) children(p proc) []int {
	if p.threads <= 1 {
		return s.childrenOf(p.pid, strconv.Itoa(p.pid))
	}
	threads, _ := os.ReadDir(s.path(p.pid, "task")) // of one that has ended there are none
	var list []int
	for _, thread := range threads[:min(len(threads), maxThreads)] {
		list = append(list, s.childrenOf(p.pid, thread.Name())...)
	}
	return list
}

func (s slashProc) childrenOf(pid int, thread string) []int {
	var room [4096]byte
	path := s.path(pid, "task/"+thread+"/children")
	b, _ := readOnce(path, room[:])
	if len(b) == len(room) {
		b, _ = os.ReadFile(path)
	}
	var list []int
	for _, f := range strings.Fields(string(b)) {
		if n, err := strconv.Atoi(f); err == nil {
			list = append(list, n)
		}
	}
	return list
}

// read reads the arguments exactly as the process was given them; none are those of
// the kernel's own, and of one that has ended.
func (s slashProc) read(p proc) (said, error) {
	b, err := os.ReadFile(s.path(p.pid, "cmdline"))
	if err != nil || len(b) == 0 {
		return said{}, cause(err)
	}
	return saidBy(strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00")), nil
}

func (s slashProc) pids() ([]int, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return pids, nil
}

func (s slashProc) path(pid int, name string) string {
	return s.dir + "/" + strconv.Itoa(pid) + "/" + name
}

// cause is what a read of /proc failed with, without the path.
func cause(err error) error {
	var path *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ErrNoProcess
	case errors.As(err, &path):
		return path.Err
	}
	return err
}
