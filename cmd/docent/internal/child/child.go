//go:build unix

// Package child runs a command in a process group of its own, and tells when the command and
// what it has started have ended.
package child

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Child is a command that runs in a process group of its own.
type Child struct {
	Done <-chan struct{} // closed when the command has ended

	cmd    *exec.Cmd
	status syscall.WaitStatus // how it ended, once Done is closed
	tty    int                // the terminal that the group was given, or -1
}

// signalled is the exit code of a command that a signal has ended, less the signal's number.
const signalled = 128

// Start runs a program with its arguments, of which the first is its name, in a process group
// of its own. If in is a terminal, the group gets it, so that the command can read and Ctrl-C
// reaches it. After an error nothing runs, and this process has the terminal.
func Start(program string, command, env []string, in *os.File, terminal bool, out, errs io.Writer) (*Child, error) {
	adopt()
	done := make(chan struct{})
	c := &Child{Done: done, cmd: exec.Command(program), tty: -1}
	c.cmd.Args, c.cmd.Env = command, env
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = in, out, errs
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	withParent(c.cmd.SysProcAttr)
	if terminal {
		if owner, err := unix.IoctlGetInt(int(in.Fd()), unix.TIOCGPGRP); err == nil && owner == unix.Getpgrp() {
			c.tty = int(in.Fd())
			c.cmd.SysProcAttr.Foreground, c.cmd.SysProcAttr.Ctty = true, c.tty
		}
	}
	started := make(chan error)
	go func() { // ends when the command has
		runtime.LockOSThread() // the command is killed with the thread that started it
		err := c.cmd.Start()
		started <- err
		if err == nil {
			c.status = reap(c.cmd.Process.Pid)
			_ = c.cmd.Wait() // for its streams: the command itself is reaped
			close(done)
		}
	}()
	if err := <-started; err != nil {
		c.LeaveTerminal() // its group has it already
		return nil, err
	}
	return c, nil
}

// reap waits for the command, and for what it leaves behind meanwhile.
func reap(command int) (status syscall.WaitStatus) {
	for {
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		if pid == command || err != nil && !errors.Is(err, syscall.EINTR) {
			return status
		}
	}
}

// Signal signals the command's process group.
func (c *Child) Signal(s syscall.Signal) {
	_ = syscall.Kill(-c.cmd.Process.Pid, s)
}

// Running reports whether the command has not ended.
func (c *Child) Running() bool {
	select {
	case <-c.Done:
		return false
	default:
		return true
	}
}

// Empty reports whether no process of the group is left. It reaps those that have
// ended and whose parent is gone. It is for a command that has ended.
func (c *Child) Empty() bool {
	for {
		pid, err := syscall.Wait4(-c.cmd.Process.Pid, nil, syscall.WNOHANG, nil)
		if pid <= 0 || err != nil {
			break
		}
	}
	return errors.Is(syscall.Kill(-c.cmd.Process.Pid, 0), syscall.ESRCH)
}

// LeaveTerminal takes the terminal back from the group.
func (c *Child) LeaveTerminal() {
	if c.tty >= 0 {
		signal.Ignore(syscall.SIGTTOU) // a background group may not write to the terminal's settings
		_ = unix.IoctlSetPointerInt(c.tty, unix.TIOCSPGRP, unix.Getpgrp())
	}
}

// Code is the exit code of a command that has ended.
func (c *Child) Code() int {
	if c.status.Signaled() {
		return signalled + int(c.status.Signal())
	}
	return c.status.ExitStatus()
}
