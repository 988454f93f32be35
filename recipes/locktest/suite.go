package locktest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/inside"
	"github.com/docent-go/docent/recipes"
)

// patience is for what is certain to happen, on a machine under load too.
const patience = 2 * time.Minute

// begin bounds what comes next by patience.
func (s *suite) begin() {
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	s.Cleanup(cancel)
	s.ctx = ctx
}

type suite struct {
	*testing.T
	World
	kind Kind
	ctx  context.Context //nolint:containedctx // bounds the test, or what it is at
}

func (s *suite) check(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *suite) want(err error, targets ...error) {
	s.Helper()
	for _, target := range targets {
		if !errors.Is(err, target) {
			s.Errorf("error %v does not match %v", err, target)
		}
	}
}

// eventually polls what no event tells, less and less often.
func (s *suite) eventually(check func() error) {
	s.Helper()
	for pause := time.Millisecond; ; pause = min(2*pause, time.Second) {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-time.After(pause):
		case <-s.ctx.Done():
			s.Fatalf("never: %v", err)
		}
	}
}

// lock and rival make the two sides of the kind.
func (s *suite) lock(c *client.Client, path string) Lock {
	s.Helper()
	l, err := s.kind.Make(c, path)
	s.check(err)
	return l
}

func (s *suite) rival(c *client.Client, path string) Lock {
	s.Helper()
	l, err := s.kind.Rival(c, path)
	s.check(err)
	return l
}

func (s *suite) held(l Lock) recipes.AnyHold {
	s.Helper()
	h, err := l.Acquire(s.ctx)
	s.check(err)
	return h
}

type result struct {
	hold recipes.AnyHold
	err  error
}

// acquire acquires by itself.
func acquire(ctx context.Context, l Lock) <-chan result {
	done := make(chan result, 1)
	go func() {
		h, err := l.Acquire(ctx)
		done <- result{h, err}
	}()
	return done
}

// granted waits for an acquire to succeed.
func (s *suite) granted(done <-chan result) recipes.AnyHold {
	s.Helper()
	r := s.returned(done)
	s.check(r.err)
	return r.hold
}

func (s *suite) returned(done <-chan result) result {
	s.Helper()
	select {
	case r := <-done:
		return r
	case <-s.ctx.Done():
		s.Fatal("an acquire never came back")
		return result{}
	}
}

// session is the id of c's session, which serves.
func (s *suite) session(c *client.Client) int64 {
	s.Helper()
	_, _, err := c.Exists(s.ctx, "/")
	s.check(err)
	in, err := c.Session(s.ctx)
	s.check(err)
	return in.ID()
}

// waiters are the contenders of a queue that wait.
func (s *suite) waiters(l Lock) []recipes.Contender {
	s.Helper()
	all, err := l.Queue(s.ctx)
	s.check(err)
	return slices.DeleteFunc(all, func(c recipes.Contender) bool { return c.Holder })
}

// waiting waits until n wait.
func (s *suite) waiting(l Lock, n int) {
	s.Helper()
	s.eventually(func() error {
		if got := s.waiters(l); len(got) != n {
			return fmt.Errorf("%d wait, want %d: %v", len(got), n, got)
		}
		return nil
	})
}

// ended waits until a hold has ended.
func (s *suite) ended(h recipes.AnyHold, what string) {
	s.Helper()
	select {
	case <-h.Context().Done():
	case <-s.ctx.Done():
		s.Fatalf("%s: the holder was never told", what)
	}
}

// nodes waits until so many nodes stand below path.
func (s *suite) nodes(path string, n int) {
	s.Helper()
	s.eventually(func() error {
		if got := s.Ephemerals(path); len(got) != n {
			return fmt.Errorf("%d nodes, want %d: %v", len(got), n, got)
		}
		return nil
	})
}

// nothingLeft waits until no node and no watch is left of what was done below
// path. Then it takes and releases the lock by way of proof. A watch on a
// directory, which a client cannot take back, may stay; it is one for all.
func (s *suite) nothingLeft(path string, free Lock) {
	s.Helper()
	s.nodes(path, 0)
	s.check(s.held(free).Release(s.ctx))
	s.eventually(func() error {
		for _, on := range s.Watched(path) {
			if strings.Contains(on, "/"+inside.ProtectedPrefix) {
				return fmt.Errorf("a watch is left on %s", on)
			}
		}
		return nil
	})
}
