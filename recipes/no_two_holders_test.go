package recipes_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// waitsForLine waits until the queue has n contenders, and until all that follows from that has happened.
func (r *rig) waitsForLine(n int) {
	r.Helper()
	for len(r.rwLine()) != n {
		if r.Ctx.Err() != nil {
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
			l := r.rw(r.Connect("a"))
			reader := r.reads(r.Ctx, l)
			ctx, giveUp := context.WithCancel(r.Ctx)
			first := rwWaits(ctx, l, true)
			r.waitsForLine(2)
			second := rwWaits(r.Ctx, l, false)
			r.waitsForLine(3)
			last := rwWaits(r.Ctx, l, true)
			r.waitsForLine(4)
			giveUp()
			testrig.WantErr(t, (<-first).err, context.Canceled)
			r.Check(r.rwGranted(second, "the second reader").Release(r.Ctx))
			r.rwWaiting(last, "a writer beside a reader")
			r.Check(reader.Err())
			r.Check(reader.Release(r.Ctx))
			r.Check(r.rwGranted(last, "the last writer").Release(r.Ctx))
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
			return r.downgrades(r.Ctx, w)
		},
		"nested": func(r *rig, l *recipes.InterProcessReadWriteLock, w *recipes.WriteHold) *recipes.Hold {
			h := r.reads(w.Context(), l)
			r.Check(w.Release(r.Ctx))
			return h
		},
	}
	for how, downgrade := range ways {
		for seed := range uint64(25) {
			t.Run(fmt.Sprint(how, seed), func(t *testing.T) {
				t.Parallel()
				rwBubble(t, seed, func(r *rig) {
					l := r.rw(r.Connect("a"))
					w := r.writes(r.Ctx, l)
					reader := rwWaits(r.Ctx, l, false)
					r.waitsForLine(2)
					writer := rwWaits(r.Ctx, l, true)
					r.waitsForLine(3)
					held := downgrade(r, l, w)
					r.Check(r.rwGranted(reader, "the reader").Release(r.Ctx))
					r.rwWaiting(writer, "a writer beside a reader")
					r.Check(held.Err())
					r.Check(held.Release(r.Ctx))
					r.Check(r.rwGranted(writer, "the writer").Release(r.Ctx))
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
					a, other := r.Connect("a"), r.Connect("other")
					_, err := other.Create(r.Ctx, "/x", []byte("old"))
					r.Check(err)
					m := r.mutex(a)
					h := r.held(m)
					next := acquire(r.Ctx, m)
					time.Sleep(100 * time.Millisecond)
					r.Srv.Client("a").Partition()
					ctx := r.Ctx
					if given == "its context has ended" {
						ctx = r.Within(50 * time.Millisecond)
					}
					guarded := make(chan error, 1)
					go func() {
						_, err := h.Guard(ctx, client.SetOp("/x", []byte("late"), client.AnyVersion))
						guarded <- err
					}()
					time.Sleep(100 * time.Millisecond)
					_ = h.Release(r.Within(50 * time.Millisecond)) // not answered either
					testrig.WantErr(t, h.Err(), recipes.ErrReleased)
					time.AfterFunc(time.Second, r.Srv.Client("a").Heal)
					got := <-next
					r.Check(got.err)
					before, _, err := other.Get(r.Ctx, "/x")
					r.Check(err)
					time.Sleep(5 * time.Second)
					after, _, err := other.Get(r.Ctx, "/x")
					r.Check(err)
					r.Check(got.hold.Err())
					if string(before) != string(after) {
						t.Errorf("%q became %q under the next hold", before, after)
					}
					<-guarded
					r.Check(got.hold.Release(r.Ctx))
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
