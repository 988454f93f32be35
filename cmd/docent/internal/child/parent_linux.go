package child

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// withParent has the kernel kill the command if this process is killed.
func withParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// adopt makes this process the parent of the processes that the command leaves behind.
// So this process can tell when the last one has ended, also where there is no init
// process.
func adopt() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }
