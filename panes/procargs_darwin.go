package panes

import "golang.org/x/sys/unix"

// exactArguments asks the system for the arguments of a process of the same user. It has
// been compiled, and never been run: there was no macOS to try it on.
func exactArguments(pid int) ([]string, error) {
	b, err := unix.SysctlRaw("kern.procargs2", pid)
	if err != nil {
		return nil, err
	}
	return parseProcargs(b)
}
