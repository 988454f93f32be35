package proxy

import "sync"

// gate lets frames of one direction pass, unless a caller holds it.
type gate struct {
	mu      sync.Mutex
	holders map[any]bool
	opened  chan struct{} // closed when the last holder lets go
}

// hold shuts the gate for this holder; to hold twice is to hold once.
func (g *gate) hold(by any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.holders) == 0 {
		g.holders = map[any]bool{}
		g.opened = make(chan struct{})
	}
	g.holders[by] = true
}

func (g *gate) release(by any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.holders[by] {
		return
	}
	delete(g.holders, by)
	if len(g.holders) == 0 {
		close(g.opened)
	}
}

func (g *gate) releaseAll() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.holders) > 0 {
		g.holders = nil
		close(g.opened)
	}
}

// pass waits until no caller holds the gate; false when done closed first.
func (g *gate) pass(done <-chan struct{}) bool {
	for {
		g.mu.Lock()
		held, opened := len(g.holders) > 0, g.opened
		g.mu.Unlock()
		if !held {
			return true
		}
		select {
		case <-opened:
		case <-done:
			return false
		}
	}
}

func (g *gate) open() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.holders) == 0
}
