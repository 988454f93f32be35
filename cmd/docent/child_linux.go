package main

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// withParent has the kernel kill the command if this process is killed.
func withParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// adopt makes this process the parent of what the command leaves behind, so that it can
// tell when the last one has ended, also where no init process buries them.
func adopt() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }
