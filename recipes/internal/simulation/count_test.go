package simulation_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/shared"
)

// countPermits lets operators change how many permits the semaphores of some
// schedules have. ClickHouse Keeper keeps a watch until it fires, so there the
// watches on a count that stays as it is would count as left behind.
func (w *world) countPermits() {
	if !w.k.counts || w.game.together || w.game.kinds[0] != semaphores || generator(w.seed, "counted").IntN(2) == 0 {
		return
	}
	w.menu = append(slices.Clone(w.menu), countFault, countFault, countFault)
	for _, l := range w.locks {
		l.count = "/count" + strings.ReplaceAll(l.path, "/", "-")
		if err := w.alone.Create(l.count, permitCount(l.of)); err != nil {
			w.t.Fatal(err)
		}
		w.h.Counted(l.path, l.of, w.now, func() bool { return true })
	}
}

// countFault gives a semaphore another number of permits for a while.
var countFault = fault{"count", func(p *plan, w *world, _ *node, at, to time.Duration) {
	l := w.locks[p.r.IntN(len(w.locks))]
	n := 1 + p.r.IntN(l.of)
	p.during(at, to, fmt.Sprintf("%d permits of %s", n, l.path),
		func() { w.setCount(l, n) },
		func() { w.setCount(l, l.of) })
}}

// setCount changes the number of permits, unless the server is stopped.
func (w *world) setCount(l *resource, n int) {
	if l.count != "" {
		w.h.Counted(l.path, n, w.now, func() bool { return w.alone.SetData(l.count, permitCount(n)) == nil })
	}
}

// permitCount is n as a SharedCount keeps it.
func permitCount(n int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(n)) }

// semaphore returns the semaphore on the path, as the actor sees it.
func (l *resource) semaphore(a *actor, opts ...recipes.SemaphoreOption) (*recipes.InterProcessSemaphoreV2, error) {
	if l.count == "" {
		return say(a.w.words, recipes.NewInterProcessSemaphoreV2)(a.c, a.path(l.path), l.of, opts...)
	}
	count, err := say(a.w.words, shared.NewSharedCount)(a.n.c.Load(), l.count, int32(l.of))
	if err != nil {
		return nil, err
	}
	return say(a.w.words, recipes.NewInterProcessSemaphoreV2FromCount)(a.c, a.path(l.path), count, opts...)
}
