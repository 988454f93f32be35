package load

import (
	"sync"
	"sync/atomic"
	"time"
)

// gate stops contenders, and its clock with them.
type gate struct {
	base time.Time
	shut atomic.Bool
	lost atomic.Int64 // nanoseconds that it was closed before now

	mu     sync.Mutex // guards the rest
	opened chan struct{}
	since  time.Time // closed since
	parked int       // contenders that stand at it
}

// newGate returns a closed gate.
func newGate() *gate {
	g := &gate{base: time.Now(), opened: make(chan struct{}), since: time.Now()}
	g.shut.Store(true)
	return g
}

// now is the time in nanoseconds that the gate has been open.
func (g *gate) now() int64 { return int64(time.Since(g.base)) - g.lost.Load() }

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut.Load() {
		g.lost.Add(int64(time.Since(g.since)))
		g.shut.Store(false)
		close(g.opened)
	}
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.shut.Load() {
		g.opened = make(chan struct{})
		g.since = time.Now()
		g.shut.Store(true)
	}
}

// pass waits until the gate is open.
func (g *gate) pass() {
	if !g.shut.Load() {
		return
	}
	g.mu.Lock()
	opened := g.opened
	g.parked++
	g.mu.Unlock()
	<-opened
	g.mu.Lock()
	g.parked--
	g.mu.Unlock()
}

// standing is how many contenders wait for the gate to open.
func (g *gate) standing() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.parked
}
