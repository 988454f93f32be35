package barrier_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/barrier"
	"github.com/docent-go/docent/zktest"
)

const (
	path  = "/job/start"
	ready = path + "/ready"
)

// rig is a server in a bubble of virtual time, with what tests of this package need besides.
type rig struct{ *testrig.Rig }

func bubble(t *testing.T, f func(*rig), opts ...zktest.Option) {
	t.Helper()
	testrig.Bubble(t, func(r *testrig.Rig) { f(&rig{r}) }, opts...)
}

func (r *rig) double(c *client.Client, members int, opts ...barrier.Option) *barrier.DistributedDoubleBarrier {
	r.Helper()
	b, err := barrier.NewDistributedDoubleBarrier(c, path, members, opts...)
	r.Check(err)
	return b
}

// entered is what an Enter has returned.
type entered struct {
	m   *barrier.Member
	err error
}

// enter enters in another goroutine.
func (r *rig) enter(ctx context.Context, b *barrier.DistributedDoubleBarrier) <-chan entered {
	done := make(chan entered, 1)
	go func() { // ends with ctx
		m, err := b.Enter(ctx)
		done <- entered{m, err}
	}()
	return done
}

// leave leaves in another goroutine.
func (r *rig) leave(ctx context.Context, m *barrier.Member) <-chan error {
	done := make(chan error, 1)
	go func() { done <- m.Leave(ctx) }() // ends with ctx
	return done
}

// inside waits for members to have entered.
func (r *rig) inside(all ...<-chan entered) []*barrier.Member {
	r.Helper()
	var ms []*barrier.Member
	for _, one := range all {
		select {
		case e := <-one:
			r.Check(e.err)
			ms = append(ms, e.m)
		case <-time.After(time.Minute):
			r.Fatalf("not entered in a minute; there are %v", r.Srv.Children(path))
		}
	}
	return ms
}

// waiting checks that nothing comes for two session timeouts.
func waiting[T any](r *rig, one <-chan T) {
	r.Helper()
	select {
	case got := <-one:
		r.Fatalf("did not wait: %+v", got)
	case <-time.After(2 * testrig.SessionTimeout):
	}
}

// gone waits for calls that return errors.
func (r *rig) gone(all ...<-chan error) {
	r.Helper()
	for _, one := range all {
		select {
		case err := <-one:
			r.Check(err)
		case <-time.After(time.Minute):
			r.Fatalf("not left in a minute; there are %v", r.Srv.Children(path))
		}
	}
}

// ended waits for the end of a member's context.
func (r *rig) ended(m *barrier.Member) {
	r.Helper()
	select {
	case <-m.Context().Done():
	case <-time.After(time.Minute):
		r.Fatal("the member was not told in a minute")
	}
}

// clean checks that no node and no watch is left.
func (r *rig) clean() {
	r.Helper()
	time.Sleep(5 * time.Second)
	r.WantNoChild(path)
	r.WantNoWatch()
}

// standing waits until n members' nodes stand, and returns their names.
func (r *rig) standing(n int) []string {
	r.Helper()
	for range 1000 {
		all := slices.DeleteFunc(r.Srv.Children(path), func(name string) bool { return name == "ready" })
		if len(all) == n {
			slices.Sort(all)
			return all
		}
		time.Sleep(10 * time.Millisecond)
	}
	r.Fatalf("never %d members: %v", n, r.Srv.Children(path))
	return nil
}
