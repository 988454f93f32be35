package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

const dir = "/locks/orders"

// rig is a server in a bubble of virtual time, with what tests of this package need besides.
type rig struct{ *testrig.Rig }

func bubble(t *testing.T, f func(*rig)) {
	t.Helper()
	bubbleWith(t, f)
}

func bubbleWith(t *testing.T, f func(*rig), opts ...zktest.Option) {
	t.Helper()
	testrig.Bubble(t, func(r *testrig.Rig) { f(&rig{r}) }, opts...)
}

func (r *rig) mutex(c *client.Client, opts ...recipes.LockOption) *recipes.InterProcessMutex {
	r.Helper()
	m, err := recipes.NewInterProcessMutex(c, dir, opts...)
	r.Check(err)
	return m
}

func (r *rig) held(m *recipes.InterProcessMutex) *recipes.Hold {
	r.Helper()
	h, err := m.Acquire(r.Ctx)
	r.Check(err)
	return h
}

var contender = regexp.MustCompile(`^_c_[0-9a-f-]{36}-lock-\d{10}$`)

// line is the nodes of the contenders in the queue.
func (r *rig) line() (in []string) {
	for _, name := range r.Srv.Children(dir) {
		if contender.MatchString(name) {
			in = append(in, name)
		}
	}
	return in
}

// empty checks that no contender is left once removals have had their time, and
// that the lock is free.
func (r *rig) empty() {
	r.Helper()
	time.Sleep(5 * time.Second)
	if left := r.line(); len(left) != 0 {
		r.Errorf("left behind: %v", left)
	}
}

type result struct {
	hold *recipes.Hold
	err  error
}

// acquire acquires by itself.
func acquire(ctx context.Context, m *recipes.InterProcessMutex) <-chan result {
	done := make(chan result, 1)
	go func() {
		h, err := m.Acquire(ctx)
		done <- result{h, err}
	}()
	return done
}

var ourFrames = regexp.MustCompile(`docent/(recipes|recipes/internal/seqqueue)\.`)

func name(i int) string { return fmt.Sprintf("c%d", i) }

// refused reports whether a server answered the operation that failed with err.
func refused(err error) bool {
	var op *client.OpError
	return errors.As(err, &op) && op.Outcome == client.OutcomeRefused
}
