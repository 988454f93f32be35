package recipes_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// waitsForLine waits until the queue has n contenders, and until all that follows from that has happened.
func (r *rig) waitsForLine(n int) {
	r.Helper()
	for len(r.rwLine()) != n {
		if r.ctx.Err() != nil {
			r.Fatalf("the line is %v, want %d contenders", r.rwLine(), n)
		}
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(100 * time.Millisecond)
}

// A reader holds. Behind it wait a writer, a reader and a writer of the same client. The
// first writer gives up, so the second reader is let in, and it releases. The last writer
// waits for the first reader.
func TestNoWriterBesideAReaderAfterAWriterGaveUp(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		rwBubble(t, seed, func(r *rig) {
			l := r.rw(r.connect("a"))
			reader := r.reads(r.ctx, l)
			ctx, giveUp := context.WithCancel(r.ctx)
			first := rwWaits(ctx, l, true)
			r.waitsForLine(2)
			second := rwWaits(r.ctx, l, false)
			r.waitsForLine(3)
			last := rwWaits(r.ctx, l, true)
			r.waitsForLine(4)
			giveUp()
			wantErr(t, (<-first).err, context.Canceled)
			r.check(r.rwGranted(second, "the second reader").Release(r.ctx))
			r.rwWaiting(last, "a writer beside a reader")
			r.check(reader.Err())
			r.check(reader.Release(r.ctx))
			r.check(r.rwGranted(last, "the last writer").Release(r.ctx))
			r.rwEmpty()
		})
	}
}

// A writer holds. Behind it wait a reader and a writer of the same client. The holder takes
// a read hold in one of the two ways, so the reader is let in, and it releases. The writer
// waits for the read hold of the downgrade.
func TestNoWriterBesideADowngradedReader(t *testing.T) {
	t.Parallel()
	ways := map[string]func(*rig, *recipes.InterProcessReadWriteLock, *recipes.WriteHold) *recipes.Hold{
		"Downgrade": func(r *rig, _ *recipes.InterProcessReadWriteLock, w *recipes.WriteHold) *recipes.Hold {
			return r.downgrades(r.ctx, w)
		},
		"nested": func(r *rig, l *recipes.InterProcessReadWriteLock, w *recipes.WriteHold) *recipes.Hold {
			h := r.reads(w.Context(), l)
			r.check(w.Release(r.ctx))
			return h
		},
	}
	for how, downgrade := range ways {
		for seed := range uint64(25) {
			t.Run(fmt.Sprint(how, seed), func(t *testing.T) {
				t.Parallel()
				rwBubble(t, seed, func(r *rig) {
					l := r.rw(r.connect("a"))
					w := r.writes(r.ctx, l)
					reader := rwWaits(r.ctx, l, false)
					r.waitsForLine(2)
					writer := rwWaits(r.ctx, l, true)
					r.waitsForLine(3)
					held := downgrade(r, l, w)
					r.check(r.rwGranted(reader, "the reader").Release(r.ctx))
					r.rwWaiting(writer, "a writer beside a reader")
					r.check(held.Err())
					r.check(held.Release(r.ctx))
					r.check(r.rwGranted(writer, "the writer").Release(r.ctx))
					r.rwEmpty()
				})
			})
		}
	}
}

// rwBubble is bubble with a seed.
func rwBubble(t *testing.T, seed uint64, f func(*rig)) {
	t.Helper()
	bubbleWith(t, f, zktest.WithSeed(seed))
}

// A write of Guard is not answered: its context ends, or Guard has not returned yet. Then
// the holder releases. While the next contender of the same client holds, the write is
// not applied.
func TestNoGuardedWriteUnderTheNextHold(t *testing.T) {
	t.Parallel()
	for _, given := range []string{"its context has ended", "it is under way"} {
		for seed := range uint64(10) {
			t.Run(fmt.Sprint(given, seed), func(t *testing.T) {
				t.Parallel()
				rwBubble(t, seed, func(r *rig) {
					a, other := r.connect("a"), r.connect("other")
					_, err := other.Create(r.ctx, "/x", []byte("old"))
					r.check(err)
					m := r.mutex(a)
					h := r.held(m)
					next := acquire(r.ctx, m)
					time.Sleep(100 * time.Millisecond)
					r.srv.Client("a").Partition()
					ctx := r.ctx
					if given == "its context has ended" {
						ctx = r.within(50 * time.Millisecond)
					}
					guarded := make(chan error, 1)
					go func() {
						_, err := h.Guard(ctx, client.SetOp("/x", []byte("late"), client.AnyVersion))
						guarded <- err
					}()
					time.Sleep(100 * time.Millisecond)
					_ = h.Release(r.within(50 * time.Millisecond)) // not answered either
					wantErr(t, h.Err(), recipes.ErrReleased)
					time.AfterFunc(time.Second, r.srv.Client("a").Heal)
					got := <-next
					r.check(got.err)
					before, _, err := other.Get(r.ctx, "/x")
					r.check(err)
					time.Sleep(5 * time.Second)
					after, _, err := other.Get(r.ctx, "/x")
					r.check(err)
					r.check(got.hold.Err())
					if string(before) != string(after) {
						t.Errorf("%q became %q under the next hold", before, after)
					}
					<-guarded
					r.check(got.hold.Release(r.ctx))
					r.empty()
				})
			})
		}
	}
}

// Release of a nil Hold is a panic like any other, and does not end the process.
func TestReleaseOfANilHold(t *testing.T) {
	t.Parallel()
	for name, release := range map[string]func(h *recipes.Hold){
		"Release": func(h *recipes.Hold) { _ = h.Release(t.Context()) },
		"Close":   func(h *recipes.Hold) { _ = h.Close() },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			release(nil)
		}()
	}
}
