//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/cmd/docent/internal/child"
	"github.com/docent-go/docent/recipes"
)

// warden stands between a hold and the command that runs under it.
type warden struct {
	*job

	hold  *recipes.Hold // nil if the command runs under none
	child *child.Child
	end   <-chan struct{} // closed when the command must end for another reason; nil if there is none

	lost    error // why the hold was lost, nil if it was not
	ended   bool  // the command was ended because of the loss
	stopped bool  // a signal to end has come, or the release was asked for

	killAt time.Time        // when the group gets SIGKILL, zero if it does not
	kill   <-chan time.Time // fires then
}

// pollGroup is the time between two looks at what the command has left of its group. No
// event tells that a group is empty.
const pollGroup = 5 * time.Millisecond

// supervise passes signals to the command's process group until no process of the group is
// left. It ends the group if the hold is lost. It also ends what the command leaves of the
// group.
func (w *warden) supervise() {
	done, end := w.child.Done, w.end
	var lost, asked <-chan struct{}
	if w.hold != nil {
		lost, asked = w.hold.Context().Done(), w.hold.Revoked()
	}
	look := time.NewTicker(pollGroup)
	defer look.Stop()
	for {
		select {
		case <-done:
			done = nil
			w.child.LeaveTerminal()
			if w.child.Empty() {
				return
			}
			w.endWithin(w.grace)
		case <-look.C:
			if done == nil && w.child.Empty() {
				return
			}
		case s := <-w.signals:
			sig := s.(syscall.Signal) //nolint:forcetypeassert,errcheck // on Unix it is one
			w.stopped = w.stopped || sig != syscall.SIGUSR1 && sig != syscall.SIGUSR2
			w.child.Signal(sig)
		case <-end:
			end = nil
			w.endWithin(w.grace)
		case <-asked:
			asked = nil
			w.ask()
		case <-w.kill:
			if w.ended || w.end != nil && end == nil && done != nil {
				say(w.io.err, "the command goes on; SIGKILL")
			}
			w.child.Signal(syscall.SIGKILL)
		case <-lost:
			lost, w.lost = nil, context.Cause(w.hold.Context())
			w.lose()
		}
	}
}

// endWithin sends SIGTERM to the group, and after d SIGKILL, unless SIGKILL comes earlier
// already.
func (w *warden) endWithin(d time.Duration) {
	w.child.Signal(syscall.SIGTERM)
	if at := time.Now().Add(d); w.killAt.IsZero() || at.Before(w.killAt) {
		w.killAt, w.kill = at, time.After(d)
	}
}

// lose does to the child what a loss asks for.
func (w *warden) lose() {
	if w.onLoss == doWarn {
		say(w.io.err, "the command goes on without the lock: %v", w.lost)
		return
	}
	w.ended = w.child.Running()
	var lease *client.LeaseExpiredError
	if w.onLoss == doKill || !errors.As(w.lost, &lease) {
		say(w.io.err, "SIGKILL: %v", w.lost)
		w.child.Signal(syscall.SIGKILL)
		return
	}
	left := max(time.Until(lease.Deadline)-w.margin, 0)
	say(w.io.err, "SIGTERM, and SIGKILL in %v: %v", left.Round(time.Millisecond), w.lost)
	w.endWithin(left)
}

// ask does to the child what a request to release asks for.
func (w *warden) ask() {
	if w.onAsk == doIgnore {
		say(w.io.err, "the release of the lock was asked for; the command goes on (--on-ask)")
		return
	}
	say(w.io.err, "the release of the lock was asked for; SIGTERM")
	w.stopped = true
	w.child.Signal(syscall.SIGTERM)
}

// outcome is the exit code, after a release that ended with an error or nil.
func (w *warden) outcome(release error) error {
	code := w.child.Code()
	switch {
	case w.lost != nil && (code == 0 || w.ended):
		return &exitError{exitLost, fmt.Errorf("the lock was lost while the command ran: %w", w.lost)}
	case code != 0:
		return &exitError{code, nil}
	case release != nil && errors.Is(release, recipes.ErrLost):
		return &exitError{exitLost, release}
	case release != nil:
		say(w.io.err, "the command has ended; its lock is released with the session: %v", release)
	}
	return nil
}
