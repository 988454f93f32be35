//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/cmd/docent/internal/child"
	"github.com/docent-go/docent/recipes"
)

// The exit codes of `docent run` and `docent elect`, beside the child's own. Those of a
// child that a signal ended are 128 and the signal's number.
const (
	exitLost      = 123 // the lock was lost while the child ran
	exitConflict  = 124 // the lock was not obtained: busy, or the time was over (-E)
	exitOwn       = 125 // docent itself failed
	exitNotRun    = 126 // the command could not be run
	exitNotFound  = 127 // the command was not found
	exitSignalled = 128
)

// What becomes of the child when the lock is lost, or its release is asked for.
const (
	doTerm   = "term"
	doKill   = "kill"
	doWarn   = "warn"
	doIgnore = "ignore"
)

// job is a command that runs while something is held: `docent run` and `docent elect`
// differ in what that is.
type job struct {
	to      *target
	io      streams
	signals chan os.Signal

	try, again             bool
	conflict               int
	timeout, grace, margin time.Duration
	settle, tick           time.Duration
	onLoss, onAsk          string
	mark                   string // the node that says that the work is done; empty: none
}

// opener prepares what is taken. It does no I/O.
type opener func(*client.Client) (taker, error)

// taker takes it. Without wait it fails with recipes.ErrBusy instead of waiting.
type taker func(ctx context.Context, wait bool) (*recipes.Hold, error)

// either returns a taker of two methods of a recipe.
func either[H any](acquire, try func(context.Context) (H, error), hold func(H) *recipes.Hold) taker {
	return func(ctx context.Context, wait bool) (*recipes.Hold, error) {
		take := try
		if wait {
			take = acquire
		}
		h, err := take(ctx)
		if err != nil {
			return nil, err
		}
		return hold(h), nil
	}
}

// addFlags adds the flags that all jobs have.
func (j *job) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&j.try, "try", false, "do not wait: exit with 124 if another client holds")
	flags.DurationVar(&j.timeout, "timeout", 0, "wait so long at most, then exit with 124; 0 is no limit")
	flags.DurationVar(&j.grace, "grace", defaultGrace, "time between SIGTERM and SIGKILL")
	flags.DurationVar(&j.margin, "margin", defaultMargin, "how long before another client can hold the command is killed")
	flags.DurationVar(&j.settle, "settle", defaultSettle, "if docent had to wait: how long after the other holder has gone the command begins")
	flags.DurationVar(&j.tick, "tick-time", 0, "the servers' tickTime, if it is more than 2s (docent check)")
	flags.StringVar(&j.onLoss, "on-loss", doTerm, "what becomes of the command if the lock is lost: `term|kill|warn`")
	flags.StringVar(&j.onAsk, "on-ask", doIgnore, "what becomes of the command if its release is asked for (docent ask): `ignore|term`")
	flags.IntVarP(&j.conflict, "conflict-exit-code", "E", exitConflict, "exit code if the lock is not obtained")
	choices(cmd, "on-loss", doTerm, doKill, doWarn)
	choices(cmd, "on-ask", doIgnore, doTerm)
}

// defaultSettle is ten times what the slowest of 40 holders took to kill its command on a
// busy machine (integration/command). The holders were evicted, or their sessions were
// killed.
const defaultSettle = 500 * time.Millisecond

// pathAndCommand checks the arguments PATH -- COMMAND [ARGUMENT...].
func pathAndCommand(cmd *cobra.Command, args []string) error {
	switch dash := cmd.ArgsLenAtDash(); {
	case dash != 1:
		return usageError("the arguments are PATH -- COMMAND [ARGUMENT...]; the two dashes are needed")
	case len(args) < 2:
		return usageError("missing argument COMMAND behind the dashes")
	}
	return validPath(args[0])
}

// check refuses flags that do not go together.
func (j *job) check() error {
	switch {
	case j.try && j.timeout != 0:
		return usageError("--try does not wait; leave out --timeout")
	case j.try && j.again:
		return usageError("--again waits for its next turn; leave out --try")
	case j.timeout < 0 || j.grace < 0 || j.settle < 0 || j.tick < 0:
		return usageError("--timeout, --grace, --settle and --tick-time are not negative")
	case j.margin <= 0:
		return usageError("--margin %v is not positive", j.margin)
	case !slices.Contains([]string{doTerm, doKill, doWarn}, j.onLoss):
		return usageError("--on-loss %s: take term, kill or warn", j.onLoss)
	case !slices.Contains([]string{doIgnore, doTerm}, j.onAsk):
		return usageError("--on-ask %s: take ignore or term", j.onAsk)
	case j.conflict < 0 || j.conflict > 255:
		return usageError("-E %d is no exit code", j.conflict)
	}
	return nil
}

// run runs the command while what open prepares is held.
func (j *job) run(cmd *cobra.Command, open opener, command []string) error {
	if err := j.check(); err != nil {
		return err
	}
	program, err := lookup(command[0])
	if err != nil {
		return err
	}
	j.signals = make(chan os.Signal, 16)
	signal.Notify(j.signals, passed...)
	defer signal.Stop(j.signals)
	ctx := cmd.Context() // a signal ends it that came before those of the line above
	var c *client.Client
	var take taker
	err = j.interruptible(ctx, func(ctx context.Context) (err error) {
		cmd.SetContext(ctx)
		if c, err = j.to.dial(cmd, client.WithLeasePolicy(client.LeasePolicy{SafetyMargin: j.safety(), TickTime: j.tick})); err == nil {
			take, err = open(c)
		}
		return err
	})
	if c != nil {
		defer c.Close() //nolint:errcheck // what was held is released before, or lost
	}
	if errors.Is(err, client.ErrUnsafeTimeout) {
		err = fmt.Errorf("%w (raise --session-timeout, or lower --grace or --margin)", err)
	}
	if err != nil {
		return ownFailure(err)
	}
	for {
		begun := time.Now()
		more, err := j.turn(ctx, take, program, command, c)
		if !more {
			return err
		}
		if err != nil {
			say(j.io.err, "%v; waiting for the next turn", err)
		}
		// A command that ends at once must not keep the servers busy.
		if err := j.interruptible(ctx, func(ctx context.Context) error { return sleep(ctx, time.Until(begun.Add(leastTurn))) }); err != nil {
			return err
		}
	}
}

// leastTurn is the time from the beginning of one turn to that of the next, at least.
const leastTurn = time.Second

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// lookup finds the program of a command.
func lookup(name string) (string, error) {
	program, err := exec.LookPath(name)
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, os.ErrNotExist):
		return "", &exitError{exitNotFound, err}
	case err != nil:
		return "", &exitError{exitNotRun, err}
	}
	return program, nil
}

// turn takes, runs the command and releases. more says whether another turn shall follow.
func (j *job) turn(ctx context.Context, take taker, program string, command []string, c *client.Client) (more bool, err error) {
	hold, err := j.obtain(ctx, take)
	if err != nil {
		return j.mark != "" && passing(err), err
	}
	s, err := c.Session(hold.Context())
	if err != nil {
		return j.again || j.mark != "", &exitError{exitLost, fmt.Errorf("the lock was lost before the command began: %w", err)}
	}
	if j.mark != "" {
		if done, err := j.looked(ctx, c); err != nil || done {
			_ = hold.Close()
			return err != nil && passing(err), err
		}
	}
	running, err := child.Start(program, command, environment(hold, s.ID()), j.io.in, terminal(j.io.in), j.io.out, j.io.err)
	if err != nil {
		_ = hold.Close()
		return false, &exitError{exitNotRun, err}
	}
	w := &warden{job: j, hold: hold, child: running}
	w.supervise()
	var mark error
	if j.mark != "" && w.lost == nil && w.child.Code() == 0 {
		mark = j.leaveMark(ctx, hold)
	}
	if err = w.outcome(hold.Close()); err == nil {
		err = mark
	}
	var exit *exitError
	lost := errors.As(err, &exit) && exit.code == exitLost
	failed := exit != nil && !lost
	return !w.stopped && (j.again && !failed || j.mark != "" && lost), err
}

// passed are the signals that the command gets.
var passed = []os.Signal{
	syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
}

// ownFailure gives an error without an exit code that of docent's own failures.
func ownFailure(err error) error {
	var exit *exitError
	if errors.As(err, &exit) {
		return err
	}
	return &exitError{exitOwn, err}
}

// safety is how long before its deadline a hold ends: then the grace begins.
func (j *job) safety() time.Duration {
	if j.onLoss == doTerm {
		return j.margin + j.grace
	}
	return j.margin
}

// environment is the command's: this process's, and what it may know of the hold. Of two
// values for a name the last one counts.
func environment(hold *recipes.Hold, session int64) []string {
	return append(os.Environ(),
		"DOCENT_PATH="+hold.LockPath(),
		"DOCENT_NODE="+path.Base(hold.Path()),
		outerSession+"="+hex(session),
		"DOCENT_TOKEN="+strconv.FormatInt(hold.FencingToken(), 10),
		"DOCENT_DEADLINE_UNIX="+strconv.FormatInt(hold.Deadline().Unix(), 10),
	)
}
