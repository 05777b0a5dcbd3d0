//go:build !linux

package process

import "syscall"

// endWithUs does nothing: no other kernel has the means.
func endWithUs(*syscall.SysProcAttr) {}
