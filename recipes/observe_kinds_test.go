package recipes_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
)

// Every kind of lock is observed by its own name, mode and path.
func TestLockHooksOfEveryKind(t *testing.T) {
	t.Parallel()
	const path = "/kind"
	locked := func(name string) []string {
		return []string{
			"w asks for " + name + " " + path, "w in " + path + ": 0 ahead", "w: acquired", "w holds as w",
			"w/hold works", "w held " + path + ": released",
		}
	}
	type work = func(context.Context) error
	for name, tt := range map[string]struct {
		do   func(ctx context.Context, c *client.Client, fn work) error
		want []string
	}{
		"mutex": {
			func(ctx context.Context, c *client.Client, fn work) error {
				m, err := recipes.NewInterProcessMutex(c, path)
				if err != nil {
					return err
				}
				return m.Do(ctx, works[*recipes.Hold](fn))
			},
			locked("InterProcessMutex exclusive"),
		},
		"read": {
			func(ctx context.Context, c *client.Client, fn work) error {
				l, err := recipes.NewInterProcessReadWriteLock(c, path)
				if err != nil {
					return err
				}
				return l.ReadLock().Do(ctx, works[*recipes.Hold](fn))
			},
			locked("InterProcessReadWriteLock read"),
		},
		"write": {
			func(ctx context.Context, c *client.Client, fn work) error {
				l, err := recipes.NewInterProcessReadWriteLock(c, path)
				if err != nil {
					return err
				}
				return l.WriteLock().Do(ctx, works[*recipes.WriteHold](fn))
			},
			locked("InterProcessReadWriteLock write"),
		},
		"semaphore": {
			func(ctx context.Context, c *client.Client, fn work) error {
				s, err := recipes.NewInterProcessSemaphoreV2(c, path, 3)
				if err != nil {
					return err
				}
				return s.Do(ctx, 2, works[*recipes.Lease](fn))
			},
			locked("InterProcessSemaphoreV2 lease"),
		},
		"semaphore mutex": {
			func(ctx context.Context, c *client.Client, fn work) error {
				m, err := recipes.NewInterProcessSemaphoreMutex(c, path)
				if err != nil {
					return err
				}
				return m.Do(ctx, works[*recipes.Hold](fn))
			},
			locked("InterProcessSemaphoreMutex lease"),
		},
		"multi-lock": {
			func(ctx context.Context, c *client.Client, fn work) error {
				a, err := recipes.NewInterProcessMutex(c, path)
				if err != nil {
					return err
				}
				b, err := recipes.NewInterProcessSemaphoreV2(c, "/permits", 1)
				if err != nil {
					return err
				}
				m, err := recipes.NewInterProcessMultiLock(a, b.Permits(1))
				if err != nil {
					return err
				}
				return m.Do(ctx, works[*recipes.MultiHold](fn))
			},
			[]string{
				"w asks for InterProcessMultiLock multi " + path + "+/permits", "w in " + path + ": 0 ahead", "w in /permits: 0 ahead",
				"w: acquired", "w holds as w", "w/hold works", "w held " + path + "+/permits: released",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				var d diary
				c := r.Connect("a", client.WithObserver(d.hooks(false)))
				r.Check(tt.do(r.as("w"), c, func(ctx context.Context) error {
					d.add("%s works", spanOf(ctx))
					return nil
				}))
				d.want(t, tt.want...)
			})
		})
	}
}

// What has to leave before a reader is its turn is the nearest writer and all before
// that, and no other reader.
func TestQueuePlacesOfReaders(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		var d diary
		c := r.Connect("a", client.WithObserver(d.hooks(false)))
		other := r.rw(r.Connect("b"))
		one, two := r.reads(r.Ctx, other), r.reads(r.Ctx, other)
		three, err := r.rw(c).ReadLock().Acquire(r.as("r"))
		r.Check(err)
		const reads, in = "InterProcessReadWriteLock read " + dir, " in " + dir
		d.want(t, "r asks for "+reads, "r"+in+": 0 ahead", "r: acquired", "r holds as r")
		writer := rwWaits(r.Ctx, other, true)
		time.Sleep(time.Second)
		rwWaits(r.Ctx, other, false) // another reader behind the writer
		time.Sleep(time.Second)
		waiting := rwWaits(r.as("w"), r.rw(c), false)
		time.Sleep(time.Second)
		d.want(t, "w asks for "+reads, "w"+in+": 4 ahead")
		r.Check(three.Close())
		d.want(t, "r held "+dir+": released")
		r.Check(one.Close())
		r.Check(two.Close())
		w := r.rwGranted(writer, "the writer")
		d.want(t)
		r.Check(w.Close())
		r.rwGranted(waiting, "the reader")
		d.want(t, "w"+in+": 0 ahead", "w: acquired", "w holds as w")
	})
}

// A downgrade is an acquire of the read lock and the end of the write hold. So is
// the read lock that is taken within a write hold.
func TestLockHooksOfADowngrade(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		var d diary
		l := r.rw(r.Connect("a", client.WithObserver(d.hooks(false))))
		const rw = "InterProcessReadWriteLock "
		w := r.writes(r.as("w"), l)
		d.want(t, "w asks for "+rw+"write "+dir, "w in "+dir+": 0 ahead", "w: acquired", "w holds as w")
		under := r.reads(context.WithValue(w.Context(), spanKey{}, "u"), l)
		d.want(t, "u asks for "+rw+"read "+dir, "u: acquired", "u holds as u")
		if span := spanOf(under.Context()); span != "u/hold" {
			t.Errorf("the read hold within is in the span %q", span)
		}
		r.Check(under.Close())
		d.want(t, "u held "+dir+": released")
		read := r.downgrades(r.as("d"), w)
		d.want(t, "d asks for "+rw+"read "+dir, "d: acquired", "d holds as d", "w held "+dir+": released")
		r.Check(read.Close())
		d.want(t, "d held "+dir+": released")
	})
}

// Permits that are not free make a TryAcquire busy, and an Acquire wait as the first
// in line.
func TestLockHooksOfPermits(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		var d diary
		c := r.Connect("a", client.WithObserver(d.hooks(false)))
		s, err := recipes.NewInterProcessSemaphoreV2(c, "/s", 2)
		r.Check(err)
		lease, err := s.Acquire(r.as("h"), 2)
		r.Check(err)
		d.take()
		const asks = " asks for InterProcessSemaphoreV2 lease /s"
		_, err = s.TryAcquire(r.as("t"), 1)
		testrig.WantErr(t, err, recipes.ErrBusy)
		d.want(t, "t"+asks, "t: busy")
		_, err = s.Acquire(r.as("m"), 3)
		testrig.WantErr(t, err, recipes.ErrTooManyPermits)
		d.want(t, "m"+asks, "m: error")
		done := make(chan error, 1)
		go func() {
			_, err := s.Acquire(r.as("w"), 1)
			done <- err
		}()
		time.Sleep(time.Second)
		d.want(t, "w"+asks, "w in /s: 0 ahead")
		r.Check(lease.Close())
		r.Check(<-done)
		// One answer ends the one and begins the other, on two goroutines.
		const ended = "h held /s: released"
		got := d.take()
		begun := slices.DeleteFunc(slices.Clone(got), func(line string) bool { return line == ended })
		if len(got) != 3 || !slices.Equal(begun, []string{"w: acquired", "w holds as w"}) {
			t.Errorf("the hooks were told %q", got)
		}
	})
}

// A multi-lock is one acquire and one hold, whose loss names the lock that was lost.
func TestLockHooksOfAMultiLock(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		var d diary
		c := r.Connect("a", client.WithObserver(d.hooks(false)))
		m := r.multi(c, "/x", "/y", "/z")
		y, err := recipes.NewInterProcessMutex(r.Connect("b"), "/y")
		r.Check(err)
		busy := r.held(y)
		_, err = m.TryAcquire(r.as("t"))
		testrig.WantErr(t, err, recipes.ErrBusy)
		const asks = " asks for InterProcessMultiLock multi /x+/y+/z"
		d.want(t, "t"+asks, "t: busy")
		time.AfterFunc(time.Minute, func() { r.Check(busy.Close()) })
		h, err := m.Acquire(r.as("w"))
		r.Check(err)
		d.want(t, "w"+asks, "w in /x: 0 ahead", "w in /y: 1 ahead", "w in /y: 0 ahead", "w in /z: 0 ahead", "w: acquired", "w holds as w")
		if got := d.got[1]; got.FencingToken != h.FencingToken() || got.Duration < time.Minute {
			t.Errorf("acquired: %+v", got)
		}
		spans := []string{spanOf(h.Context())}
		for _, one := range h.Holds() {
			spans = append(spans, spanOf(one.Context()))
		}
		if got := spans[0] + spans[1] + spans[2] + spans[3]; got != "w/holdwww" {
			t.Errorf("the contexts of the holds are in the spans %q", spans)
		}
		for _, path := range []string{"/x", "/y", "/z"} { // each is re-entered with the context
			one, err := recipes.NewInterProcessMutex(c, path)
			r.Check(err)
			again, err := one.TryAcquire(h.Context())
			r.Check(err)
			r.Check(again.Close())
			again, err = one.TryAcquire(h.Holds()[2].Context())
			r.Check(err)
			r.Check(again.Close())
		}
		d.want(t)
		time.Sleep(time.Minute)
		r.Check(r.Srv.Delete(h.Holds()[1].Path()))
		<-h.Context().Done()
		d.want(t, "w held /y: deleted")
		testrig.WantErr(t, h.Close(), recipes.ErrLost)
		d.want(t)
	})
}

// works makes work under any lock of fn.
func works[H any](fn func(context.Context) error) func(context.Context, H) error {
	return func(ctx context.Context, _ H) error { return fn(ctx) }
}
