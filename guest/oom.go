package main

import (
	"os"
	"strconv"
	"strings"
)

// oomFiles are where the kernel counts the processes of this container that it
// killed for memory: cgroup v2 and v1.
var oomFiles = []string{"/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"}

// oomKills returns that count, and false where the kernel keeps none.
func oomKills() (int64, bool) {
	for _, file := range oomFiles {
		content, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if n, ok := parseOOMKills(string(content)); ok {
			return n, true
		}
	}
	return 0, false
}

// parseOOMKills reads the line "oom_kill N", which both versions have.
func parseOOMKills(content string) (int64, bool) {
	for line := range strings.Lines(content) {
		if text, ok := strings.CutPrefix(line, "oom_kill "); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}
