//go:build unix

package main

import (
	"errors"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// child is the command that runs under the lock, in a process group of its own.
type child struct {
	cmd    *exec.Cmd
	done   chan struct{}      // closed when the command has ended
	status syscall.WaitStatus // how, once done is closed
	tty    int                // the terminal that the group was given, or -1
}

// start runs the command in a process group of its own. If standard input is a
// terminal, the group gets it, so that the command can read and Ctrl-C reaches it.
func start(program string, command, env []string, io streams) (*child, error) {
	adopt()
	c := &child{cmd: exec.Command(program), done: make(chan struct{}), tty: -1}
	c.cmd.Args, c.cmd.Env = command, env
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = io.in, io.out, io.err
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	withParent(c.cmd.SysProcAttr)
	if terminal(io.in) {
		if owner, err := unix.IoctlGetInt(int(io.in.Fd()), unix.TIOCGPGRP); err == nil && owner == unix.Getpgrp() {
			c.tty = int(io.in.Fd())
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
			close(c.done)
		}
	}()
	if err := <-started; err != nil {
		c.leaveTerminal() // its group has it already
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

// signal signals the command's process group.
func (c *child) signal(s syscall.Signal) {
	_ = syscall.Kill(-c.cmd.Process.Pid, s)
}

// running reports whether the command has not ended.
func (c *child) running() bool {
	select {
	case <-c.done:
		return false
	default:
		return true
	}
}

// empty reports whether no process of the group is left. It reaps those that have
// ended and whose parent is gone. It is for a command that has ended.
func (c *child) empty() bool {
	for {
		pid, err := syscall.Wait4(-c.cmd.Process.Pid, nil, syscall.WNOHANG, nil)
		if pid <= 0 || err != nil {
			break
		}
	}
	return errors.Is(syscall.Kill(-c.cmd.Process.Pid, 0), syscall.ESRCH)
}

// leaveTerminal takes the terminal back from the group.
func (c *child) leaveTerminal() {
	if c.tty >= 0 {
		signal.Ignore(syscall.SIGTTOU) // a background group may not write to the terminal's settings
		_ = unix.IoctlSetPointerInt(c.tty, unix.TIOCSPGRP, unix.Getpgrp())
	}
}

// code is the exit code of a command that has ended.
func (c *child) code() int {
	if c.status.Signaled() {
		return exitSignalled + int(c.status.Signal())
	}
	return c.status.ExitStatus()
}
