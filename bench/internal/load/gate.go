package load

import (
	"context"
	"sync"
	"time"
)

// gate stops contenders, and its clock with them.
type gate struct {
	life context.Context //nolint:containedctx // of the engine
	base time.Time

	mu     sync.RWMutex // guards the rest
	shut   bool
	lost   time.Duration // how long it was closed before it opened last
	since  time.Time     // closed since
	opened chan struct{}
	round  context.Context //nolint:containedctx // ends when the gate is closed
	end    context.CancelFunc
	parked int // contenders that stand at it
}

// newGate returns a closed gate.
func newGate(ctx context.Context) *gate {
	g := &gate{life: ctx, base: time.Now(), shut: true, opened: make(chan struct{}), since: time.Now()}
	g.round, g.end = context.WithCancel(ctx)
	return g
}

// now is the time in nanoseconds that the gate has been open.
func (g *gate) now() int64 {
	g.mu.RLock()
	defer g.mu.RUnlock()
	at := g.since
	if !g.shut {
		at = time.Now()
	}
	return int64(at.Sub(g.base) - g.lost)
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut {
		g.lost += time.Since(g.since)
		g.round, g.end = context.WithCancel(g.life)
		g.shut, g.parked = false, 0
		close(g.opened)
	}
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.shut {
		g.opened = make(chan struct{})
		g.since = time.Now()
		g.shut = true
		g.end()
	}
}

// current is a context that ends when the gate is closed.
func (g *gate) current() context.Context {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.round
}

// pass waits until the gate is open.
func (g *gate) pass() {
	g.mu.RLock()
	shut := g.shut
	g.mu.RUnlock()
	if !shut {
		return
	}
	g.mu.Lock()
	if !g.shut {
		g.mu.Unlock()
		return
	}
	opened := g.opened
	g.parked++
	g.mu.Unlock()
	<-opened
}

// waiting is how many contenders wait for the gate to open.
func (g *gate) waiting() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.parked
}
