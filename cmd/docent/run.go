//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
)

// The exit codes of `docent run`, beside the child's own. Those of a child that a
// signal ended are 128 and the signal's number.
const (
	exitLost      = 123 // the lock was lost while the child ran
	exitConflict  = 124 // the lock was not obtained: busy, or the time was over (-E)
	exitOwn       = 125 // docent itself failed
	exitNotRun    = 126 // the command could not be run
	exitNotFound  = 127 // the command was not found
	exitSignalled = 128
)

// What becomes of the child when the lock is lost.
const (
	lossTerm = "term"
	lossKill = "kill"
	lossWarn = "warn"
)

// job is a `docent run`.
type job struct {
	to *target
	io streams

	try, shared, exclusive bool
	permits, conflict      int
	timeout, grace, margin time.Duration
	onLoss                 string
}

func newRun(to *target, io streams) *cobra.Command {
	j := &job{to: to, io: io}
	cmd := &cobra.Command{
		Use:   "run PATH -- COMMAND [ARGUMENT...]",
		Short: "Run a command while a lock is held",
		Long: `Run acquires the lock on PATH, runs the command, and releases the lock when the command
and what it left of its process group have ended.

The lock is a mutex (Curator: InterProcessMutex). With --shared and --exclusive it is the
read and the write half of a read/write lock, and with --permits one permit of a
semaphore with so many permits. All programs must use one kind on a path.

If the lock is lost, the command must end before another client can hold the lock:

  - If the servers do not answer, the end is known in advance. The command's process
    group gets SIGTERM, and --grace later SIGKILL, still before the lock can be granted
    to another client.
  - If an operator or a server has ended the lock (node deleted, session killed), docent
    learns it after the fact, and kills at once.

With --on-loss kill there is no SIGTERM. With --on-loss warn the command goes on, and must
itself do what keeps its late writes harmless (DOCENT_TOKEN).

SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 are passed to the command's process
group. While docent waits for the lock, such a signal makes it leave the queue and exit.

The command finds in its environment: DOCENT_PATH, DOCENT_NODE, DOCENT_SESSION,
DOCENT_TOKEN (it grows with every hold of the lock: let your storage refuse a smaller one
than the greatest it has seen) and DOCENT_DEADLINE_UNIX (seconds; no other client holds
before, as far as was known when the command began).

Exit codes: that of the command; 128+n if signal n ended it; 123 if the lock was lost
(unless the command had failed before docent ended it); 124 if the lock was not obtained (-E changes that);
125 if docent failed; 126 if the command cannot be run; 127 if it was not found; 2 for
mistakes in the command line.`,
		Example: `  docent run --try /locks/nightly -- /usr/local/bin/backup.sh
  docent run --permits 3 /locks/encoders -- ffmpeg ...`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch dash := cmd.ArgsLenAtDash(); {
			case dash != 1:
				return usageError("the arguments are PATH -- COMMAND [ARGUMENT...]; the two dashes are needed")
			case len(args) < 2:
				return usageError("missing argument COMMAND behind the dashes")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("permits") && j.permits < 1 {
				return usageError("--permits %d: give 1 or more, or leave it out for a mutex", j.permits)
			}
			return j.run(cmd, args[0], args[1:])
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&j.try, "try", false, "do not wait: exit with 124 if the lock is not free")
	flags.DurationVar(&j.timeout, "timeout", 0, "wait so long at most, then exit with 124; 0 is no limit")
	flags.BoolVar(&j.shared, "shared", false, "take the read half of a read/write lock")
	flags.BoolVar(&j.exclusive, "exclusive", false, "take the write half of a read/write lock")
	flags.IntVar(&j.permits, "permits", 0, "take a permit of a semaphore with so many")
	flags.DurationVar(&j.grace, "grace", 3*time.Second, "time between SIGTERM and SIGKILL")
	flags.DurationVar(&j.margin, "margin", time.Second, "how long before another client can hold the command is killed")
	flags.StringVar(&j.onLoss, "on-loss", lossTerm, "what becomes of the command if the lock is lost: `term|kill|warn`")
	flags.IntVarP(&j.conflict, "conflict-exit-code", "E", exitConflict, "exit code if the lock is not obtained")
	return cmd
}

// check refuses flags that do not go together.
func (j *job) check() error {
	kinds := 0
	for _, set := range []bool{j.shared, j.exclusive, j.permits != 0} {
		if set {
			kinds++
		}
	}
	switch {
	case kinds > 1:
		return usageError("--shared, --exclusive and --permits are different locks; take one")
	case j.try && j.timeout != 0:
		return usageError("--try does not wait; leave out --timeout")
	case j.timeout < 0 || j.grace < 0:
		return usageError("--timeout and --grace are not negative")
	case j.margin <= 0:
		return usageError("--margin %v is not positive", j.margin)
	case !slices.Contains([]string{lossTerm, lossKill, lossWarn}, j.onLoss):
		return usageError("--on-loss %s: take term, kill or warn", j.onLoss)
	case j.conflict < 0 || j.conflict > 255:
		return usageError("-E %d is no exit code", j.conflict)
	}
	return nil
}

func (j *job) run(cmd *cobra.Command, at string, command []string) error {
	if err := j.check(); err != nil {
		return err
	}
	program, err := exec.LookPath(command[0])
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, os.ErrNotExist):
		return &exitError{exitNotFound, err}
	case err != nil:
		return &exitError{exitNotRun, err}
	}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, passed...)
	defer signal.Stop(signals)
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(cmd.Context()))
	defer cancel(nil)
	c, hold, err := j.obtain(ctx, cancel, cmd, at, signals)
	if c != nil {
		defer c.Close() //nolint:errcheck // the lock was released before, or is lost
	}
	if err != nil {
		return err
	}
	s, err := c.Session(hold.Context())
	if err != nil {
		return &exitError{exitLost, fmt.Errorf("the lock was lost before the command began: %w", err)}
	}
	child, err := start(program, command, environment(hold, s.ID()), j.io)
	if err != nil {
		_ = hold.Close()
		return &exitError{exitNotRun, err}
	}
	lost := j.watch(hold, child, signals)
	child.finish(j.grace)
	err = hold.Close()
	return j.outcome(child, lost, err)
}

// passed are the signals that the command gets.
var passed = []os.Signal{
	syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
}

// signalled is the cause of a wait that a signal has ended.
type signalled struct{ syscall.Signal }

func (s signalled) Error() string { return "signal: " + s.String() }

// obtain connects and acquires the lock, until a signal comes.
func (j *job) obtain(ctx context.Context, cancel context.CancelCauseFunc, cmd *cobra.Command, at string, signals <-chan os.Signal) (*client.Client, *recipes.Hold, error) {
	type result struct {
		c    *client.Client
		hold *recipes.Hold
		err  error
	}
	done := make(chan result, 1)
	cmd.SetContext(ctx)
	go func() { // ends with ctx at the latest
		var r result
		if r.c, r.err = j.to.dial(cmd, client.WithLeasePolicy(client.LeasePolicy{SafetyMargin: j.safety()})); r.err == nil {
			r.hold, r.err = j.acquire(ctx, r.c, at)
		}
		done <- r
	}()
	var r result
	select {
	case r = <-done:
	case s := <-signals:
		cancel(signalled{s.(syscall.Signal)}) //nolint:forcetypeassert,errcheck // on Unix it is one
		r = <-done
	}
	if r.err == nil && ctx.Err() != nil {
		_ = r.hold.Close()
		r.err = ctx.Err()
	}
	if r.err == nil {
		return r.c, r.hold, nil
	}
	var stop signalled
	var usage *exitError
	switch {
	case errors.As(context.Cause(ctx), &stop):
		return r.c, nil, &exitError{exitSignalled + int(stop.Signal), fmt.Errorf("%w while waiting; the queue was left", stop)}
	case errors.As(r.err, &usage):
		return r.c, nil, r.err
	case r.c != nil && (errors.Is(r.err, recipes.ErrBusy) || errors.Is(r.err, context.DeadlineExceeded)):
		return r.c, nil, &exitError{j.conflict, r.err}
	}
	return r.c, nil, &exitError{exitOwn, r.err}
}

// safety is how long before its deadline a hold ends: then the grace begins.
func (j *job) safety() time.Duration {
	if j.onLoss == lossTerm {
		return j.margin + j.grace
	}
	return j.margin
}

func (j *job) acquire(ctx context.Context, c *client.Client, at string) (*recipes.Hold, error) {
	if j.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, j.timeout)
		defer cancel()
	}
	switch {
	case j.permits > 0:
		s, err := recipes.NewInterProcessSemaphoreV2(c, at, j.permits)
		if err != nil {
			return nil, err
		}
		take := s.Acquire
		if j.try {
			take = s.TryAcquire
		}
		lease, err := take(ctx, 1)
		if err != nil {
			return nil, err
		}
		return lease.Hold, nil
	case j.shared || j.exclusive:
		l, err := recipes.NewInterProcessReadWriteLock(c, at)
		if err != nil {
			return nil, err
		}
		if j.exclusive {
			take := l.WriteLock().Acquire
			if j.try {
				take = l.WriteLock().TryAcquire
			}
			hold, err := take(ctx)
			if err != nil {
				return nil, err
			}
			return hold.Hold, nil
		}
		if j.try {
			return l.ReadLock().TryAcquire(ctx)
		}
		return l.ReadLock().Acquire(ctx)
	}
	m, err := recipes.NewInterProcessMutex(c, at)
	if err != nil {
		return nil, err
	}
	if j.try {
		return m.TryAcquire(ctx)
	}
	return m.Acquire(ctx)
}

// environment is the command's: this process's, and what it may know of the hold.
func environment(hold *recipes.Hold, session int64) []string {
	own := map[string]string{
		"DOCENT_PATH":          hold.LockPath(),
		"DOCENT_NODE":          path.Base(hold.Path()),
		"DOCENT_SESSION":       fmt.Sprintf("%#x", session),
		"DOCENT_TOKEN":         strconv.FormatInt(hold.FencingToken(), 10),
		"DOCENT_DEADLINE_UNIX": strconv.FormatInt(hold.Deadline().Unix(), 10),
	}
	env := slices.DeleteFunc(os.Environ(), func(s string) bool {
		name, _, _ := strings.Cut(s, "=")
		_, ours := own[name]
		return ours
	})
	for name, value := range own {
		env = append(env, name+"="+value)
	}
	return env
}

// watch passes signals to the child until it has ended, and ends it if the lock is
// lost. It returns why the lock was lost, nil if it was not.
func (j *job) watch(hold *recipes.Hold, child *child, signals <-chan os.Signal) (lost error) {
	ended := hold.Context().Done()
	var kill <-chan time.Time
	for {
		select {
		case <-child.done:
			return lost
		case s := <-signals:
			child.signal(s.(syscall.Signal)) //nolint:forcetypeassert,errcheck // on Unix it is one
		case <-kill:
			say(j.io.err, "the command goes on; SIGKILL")
			child.end(syscall.SIGKILL)
		case <-ended:
			ended, lost = nil, context.Cause(hold.Context())
			kill = j.lose(lost, child)
		}
	}
}

// lose does to the child what a loss asks for. It returns when to kill the child.
func (j *job) lose(why error, child *child) <-chan time.Time {
	if j.onLoss == lossWarn {
		say(j.io.err, "the command goes on without the lock: %v", why)
		return nil
	}
	var lease *client.LeaseExpiredError
	if j.onLoss == lossKill || !errors.As(why, &lease) {
		say(j.io.err, "SIGKILL: %v", why)
		child.end(syscall.SIGKILL)
		return nil
	}
	left := max(time.Until(lease.Deadline)-j.margin, 0)
	say(j.io.err, "SIGTERM, and SIGKILL in %v: %v", left.Round(time.Millisecond), why)
	child.end(syscall.SIGTERM)
	return time.After(left)
}

// outcome is the exit code.
func (j *job) outcome(child *child, lost, release error) error {
	code := child.code()
	switch {
	case lost != nil && (code == 0 || child.killed):
		return &exitError{exitLost, fmt.Errorf("the lock was lost while the command ran: %w", lost)}
	case code != 0:
		return &exitError{code, nil}
	case release != nil && errors.Is(release, recipes.ErrLost):
		return &exitError{exitLost, release}
	case release != nil:
		say(j.io.err, "the command has ended; its lock is released with the session: %v", release)
	}
	return nil
}

func say(w io.Writer, text string, args ...any) {
	_, _ = fmt.Fprintf(w, "docent: "+text+"\n", args...)
}
