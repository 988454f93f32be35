//go:build unix

package main

import (
	"errors"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// child is the command that runs under the lock, in a process group of its own.
type child struct {
	cmd    *exec.Cmd
	done   chan struct{} // closed when the command has ended
	killed bool          // this process has sent a signal because of a loss
	tty    int           // the terminal that the group was given, or -1
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
			_ = c.cmd.Wait()
			close(c.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return c, nil
}

// signal signals the command's process group.
func (c *child) signal(s syscall.Signal) {
	_ = syscall.Kill(-c.cmd.Process.Pid, s)
}

// end signals the group because the lock was lost.
func (c *child) end(s syscall.Signal) {
	c.killed = true
	c.signal(s)
}

// empty reports whether no process of the group is left. It buries those that have
// ended and whose parent is gone.
func (c *child) empty() bool {
	for {
		pid, err := syscall.Wait4(-c.cmd.Process.Pid, nil, syscall.WNOHANG, nil)
		if pid <= 0 || err != nil {
			break
		}
	}
	return errors.Is(syscall.Kill(-c.cmd.Process.Pid, 0), syscall.ESRCH)
}

// finish ends what the command has left of its process group: SIGTERM, and after the
// grace SIGKILL. It returns when no process is left.
func (c *child) finish(grace time.Duration) {
	if c.tty >= 0 {
		signal.Ignore(syscall.SIGTTOU) // a background group may not write to the terminal's settings
		_ = unix.IoctlSetPointerInt(c.tty, unix.TIOCSPGRP, unix.Getpgrp())
	}
	if c.empty() {
		return
	}
	c.signal(syscall.SIGTERM)
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	kill := time.After(grace)
	for !c.empty() {
		select {
		case <-again.C:
		case <-kill:
			c.signal(syscall.SIGKILL)
		}
	}
}

// code is the exit code of a command that has ended.
func (c *child) code() int {
	if status, ok := c.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return exitSignalled + int(status.Signal())
	}
	return c.cmd.ProcessState.ExitCode()
}
