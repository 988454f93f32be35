package barrier_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/barrier"
	"github.com/docent-go/docent/zktest"
)

const (
	sessionTimeout = 10 * time.Second
	path           = "/job/start"
	ready          = path + "/ready"
)

// rig is a server in a bubble of virtual time.
type rig struct {
	*testing.T
	srv *zktest.Server
	ctx context.Context
}

func bubble(t *testing.T, f func(*rig), opts ...zktest.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		f(&rig{T: t, ctx: ctx, srv: zktest.NewServer(t, append([]zktest.Option{
			zktest.WithTick(time.Second), zktest.WithLatency(50*time.Microsecond, time.Millisecond),
		}, opts...)...)})
	})
}

func (r *rig) connect(name string, opts ...client.Option) *client.Client {
	r.Helper()
	c, err := client.Connect(r.ctx, "zk", append([]client.Option{
		client.WithSessionTimeout(sessionTimeout),
		client.WithDialer(r.srv.Client(name).DialContext),
		client.WithLogger(slog.New(slog.DiscardHandler)),
	}, opts...)...)
	r.check(err)
	r.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), time.Minute)
		defer cancel()
		_ = c.CloseContext(ctx) // the test looks at what matters to it
	})
	return c
}

func (r *rig) check(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

func (r *rig) within(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(r.ctx, d)
	r.Cleanup(cancel)
	return ctx
}

func (r *rig) double(c *client.Client, members int, opts ...barrier.Option) *barrier.DistributedDoubleBarrier {
	r.Helper()
	b, err := barrier.NewDistributedDoubleBarrier(c, path, members, opts...)
	r.check(err)
	return b
}

func wantErr(t *testing.T, err error, targets ...error) {
	t.Helper()
	for _, target := range targets {
		if !errors.Is(err, target) {
			t.Errorf("error %v does not match %v", err, target)
		}
	}
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
			r.check(e.err)
			ms = append(ms, e.m)
		case <-time.After(time.Minute):
			r.Fatalf("not entered in a minute; there are %v", r.srv.Children(path))
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
	case <-time.After(2 * sessionTimeout):
	}
}

// gone waits for calls that return errors.
func (r *rig) gone(all ...<-chan error) {
	r.Helper()
	for _, one := range all {
		select {
		case err := <-one:
			r.check(err)
		case <-time.After(time.Minute):
			r.Fatalf("not left in a minute; there are %v", r.srv.Children(path))
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
	if left := r.srv.Children(path); len(left) != 0 {
		r.Errorf("left behind: %v", left)
	}
	if n := r.srv.WatchCount(); n != 0 {
		r.Errorf("%d watches left: %v", n, r.srv.Watches())
	}
}

// standing waits until n members' nodes stand, and returns their names.
func (r *rig) standing(n int) []string {
	r.Helper()
	for range 1000 {
		all := slices.DeleteFunc(r.srv.Children(path), func(name string) bool { return name == "ready" })
		if len(all) == n {
			slices.Sort(all)
			return all
		}
		time.Sleep(10 * time.Millisecond)
	}
	r.Fatalf("never %d members: %v", n, r.srv.Children(path))
	return nil
}
