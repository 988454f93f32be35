package crowd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Processes are the workers.
type Processes []*exec.Cmd

// Start runs this program again, n times, with the arguments of each; what
// they print goes to out.
func Start(ctx context.Context, n int, out io.Writer, args func(worker int) []string) (Processes, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var all Processes
	for i := range n {
		p := exec.CommandContext(ctx, self, args(i+1)...)
		p.Stdout, p.Stderr = out, os.Stderr
		p.Cancel = func() error { return p.Process.Signal(syscall.SIGTERM) } // it says why and closes its session
		p.WaitDelay = 10 * time.Second
		if err := p.Start(); err != nil {
			return all, err
		}
		all = append(all, p)
	}
	return all, nil
}

// Wait waits for all.
func (all Processes) Wait() error {
	var errs []error
	for i, p := range all {
		if err := p.Wait(); err != nil {
			errs = append(errs, fmt.Errorf("worker %d: %w", i+1, err))
		}
	}
	return errors.Join(errs...)
}
