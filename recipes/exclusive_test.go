package recipes_test

import (
	"slices"
	"testing"
)

// Exclusive is true of holds beside which no other can be, whichever way they
// were taken.
func TestHoldExclusive(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		want := func(what string, exclusive bool, h interface {
			Exclusive() bool
			Close() error
		},
		) {
			t.Helper()
			if got := h.Exclusive(); got != exclusive {
				t.Errorf("%s: Exclusive = %v", what, got)
			}
			r.Check(h.Close())
		}
		mutex := r.held(r.mutex(c))
		again, err := r.mutex(c).Acquire(mutex.Context())
		r.Check(err)
		want("a mutex, re-entered", true, again)
		want("a mutex", true, mutex)

		rw := r.rw(c)
		want("a reader", false, r.reads(r.Ctx, rw))
		write := r.writes(r.Ctx, rw)
		within := r.reads(write.Context(), rw)
		want("a reader in the writer's place", false, within)
		want("a downgraded writer", false, r.downgrades(r.Ctx, write))
		want("a writer", true, r.writes(r.Ctx, rw))

		semaphore := r.semaphore(c, 3)
		want("a permit", false, r.lease(semaphore, 1))
		want("all permits, which may become more", false, r.lease(semaphore, 3))
		alone, err := r.semaphoreMutex(c).Acquire(r.Ctx)
		r.Check(err)
		want("a semaphore's mutex", true, alone)

		// Of a multi-lock, each hold says so by itself.
		multi := r.multiHeld(r.everyKind(c))
		var got []bool
		for _, h := range multi.Holds() {
			got = append(got, h.Exclusive())
		}
		if want := []bool{true, false, true, false, true}; !slices.Equal(got, want) {
			t.Errorf("a multi-lock of a mutex, a reader, a writer, permits and a semaphore's mutex: %v, want %v", got, want)
		}
		r.Check(multi.Close())
	})
}
