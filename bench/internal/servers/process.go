// Package servers runs the servers of the peers on this machine. Their data are
// private, they listen on the loopback only, and they end when the program does,
// whatever ends it.
package servers

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Process is a child of this program. The kernel kills it when this program dies.
type Process struct {
	cmd  *exec.Cmd
	log  string // path of what it said
	done chan struct{}
}

// StartProcess starts cmd. What it says on its error output goes to a file in dir, and
// so does its standard output unless the caller has taken that.
func StartProcess(cmd *exec.Cmd, dir, name string) (*Process, error) {
	p := &Process{cmd: cmd, log: filepath.Join(dir, name+".log"), done: make(chan struct{})}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	cmd.Stderr = log
	if cmd.Stdout == nil {
		cmd.Stdout = log
	}
	// A group of its own: a signal of the terminal ends this program first, which then
	// ends its children.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return p, nil
}

// Watch notices when the process ends. Call it once, when nothing more is read of its
// standard output by a pipe of package exec, or when that is an own pipe.
func (p *Process) Watch() {
	go func() {
		_ = p.cmd.Wait() // how it ended is told by its log
		close(p.done)
	}()
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Kill ends the process and waits until it is gone.
func (p *Process) Kill() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // it may be gone
	<-p.done
}

// CPU is the processor time that the process has used so far, to the nanosecond. The
// ticks of /proc/<pid>/stat are too coarse for a window of a second.
func (p *Process) CPU() (time.Duration, error) {
	// This is clock_getcpuclockid of the C library, for the clock of the scheduler.
	const shift, scheduler = 3, 2
	clock := int32(^p.cmd.Process.Pid)<<shift | scheduler //nolint:gosec // Linux has no greater ids than 2^22
	var ts unix.Timespec
	if err := unix.ClockGettime(clock, &ts); err != nil {
		return 0, fmt.Errorf("the process has ended; %s", p.Tail())
	}
	return time.Duration(ts.Nano()), nil
}

// Tail is the end of what the process said.
func (p *Process) Tail() string {
	const enough = 1500
	said, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("the end of its log: %s", said[max(0, len(said)-enough):])
}

// await asks ready again and again until it returns nil.
func (p *Process) await(ctx context.Context, ready func() error) error {
	const patience, pause = time.Minute, 50 * time.Millisecond
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		err := ready()
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("%s ended; %s", filepath.Base(p.cmd.Path), p.Tail())
		case <-ctx.Done():
			return fmt.Errorf("%s does not answer: %w; %s", filepath.Base(p.cmd.Path), err, p.Tail())
		case <-tick.C:
		}
	}
}
