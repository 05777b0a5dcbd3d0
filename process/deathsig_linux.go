package process

import "syscall"

// endWithUs makes the kernel end a program when we are killed ourselves: a
// Compose that goes on without us would work against the command that is run
// next, an ssh that does would hold the terminal. The signal comes when the thread that started the program ends; Go ends
// no thread of its own while the process lives.
func endWithUs(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGTERM }
