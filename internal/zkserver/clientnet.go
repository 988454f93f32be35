package zkserver

import (
	"context"
	"time"
)

// Partition holds both directions of the client's connections and keeps its dials
// waiting.
func (cl *ClientLink) Partition() {
	cl.s.mu.Lock()
	cl.partitioned = true
	cl.s.mu.Unlock()
	cl.holdLinks(holdPartition)
}

// PartitionReplies holds only what the server sends. New dials wait.
func (cl *ClientLink) PartitionReplies() {
	cl.partitionHalf(func(k *link) *half { return k.down })
}

// PartitionRequests holds only what the client sends. New dials wait.
func (cl *ClientLink) PartitionRequests() {
	cl.partitionHalf(func(k *link) *half { return k.up })
}

func (cl *ClientLink) partitionHalf(pick func(*link) *half) {
	cl.s.mu.Lock()
	defer cl.s.mu.Unlock()
	cl.partitioned = true
	for k := range cl.s.links {
		if k.owner == cl {
			pick(k).hold(holdPartition)
		}
	}
}

// Heal undoes Partition, PartitionReplies, PartitionRequests and every stalled
// reply.
func (cl *ClientLink) Heal() {
	cl.s.mu.Lock()
	cl.partitioned = false
	cl.s.networkChanged()
	cl.s.mu.Unlock()
	cl.releaseLinks(holdPartition | holdStalled)
}

// Freeze holds both directions of the client's connections, including later ones.
// Dials succeed.
func (cl *ClientLink) Freeze() { cl.holdLinks(holdFrozen) }

// Thaw undoes Freeze.
func (cl *ClientLink) Thaw() { cl.releaseLinks(holdFrozen) }

// Refuse makes the client's dials fail with ECONNREFUSED.
func (cl *ClientLink) Refuse() { cl.setRefusing(true) }

// Accept undoes Refuse.
func (cl *ClientLink) Accept() { cl.setRefusing(false) }

func (cl *ClientLink) setRefusing(on bool) {
	cl.s.mu.Lock()
	cl.refusing = on
	cl.s.networkChanged()
	cl.s.mu.Unlock()
}

// Cut closes the client's connections and returns how many there were.
func (cl *ClientLink) Cut() int {
	cl.s.mu.Lock()
	defer cl.s.mu.Unlock()
	n := 0
	for c := range cl.s.conns {
		if c.owner == cl {
			c.close()
			n++
		}
	}
	return n
}

// Pause holds both directions and stops the deadlines of the connections.
func (cl *ClientLink) Pause() {
	cl.s.mu.Lock()
	if cl.paused == nil {
		cl.paused = make(chan struct{})
	}
	for k := range cl.s.links {
		if k.owner == cl {
			k.down.pause()
		}
	}
	cl.s.mu.Unlock()
	cl.holdLinks(holdPaused)
}

// Resume undoes Pause. Deadlines have as much time left as they had.
func (cl *ClientLink) Resume() {
	cl.releaseLinks(holdPaused)
	cl.s.mu.Lock()
	defer cl.s.mu.Unlock()
	if cl.paused != nil {
		close(cl.paused)
		cl.paused = nil
	}
	for k := range cl.s.links {
		if k.owner == cl {
			k.down.resume()
		}
	}
}

// Gate returns at once if the client is not paused. Otherwise it waits until the
// client is resumed, or until ctx ends; it returns the cause of ctx then.
func (cl *ClientLink) Gate(ctx context.Context) error {
	for {
		cl.s.mu.Lock()
		paused := cl.paused
		cl.s.mu.Unlock()
		if paused == nil {
			return nil
		}
		select {
		case <-paused:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// SetLatency changes the latency of the client's connections, including later ones.
func (cl *ClientLink) SetLatency(lo, hi time.Duration) {
	cl.s.mu.Lock()
	defer cl.s.mu.Unlock()
	cl.latency = latency{lo, hi}
	for k := range cl.s.links {
		if k.owner == cl {
			k.up.setLatency(lo, hi)
			k.down.setLatency(lo, hi)
		}
	}
}

func (cl *ClientLink) holdLinks(c holdCause) {
	cl.s.mu.Lock()
	defer cl.s.mu.Unlock()
	cl.held |= c
	for k := range cl.s.links {
		if k.owner == cl {
			k.hold(c)
		}
	}
}

func (cl *ClientLink) releaseLinks(c holdCause) {
	cl.s.mu.Lock()
	defer cl.s.mu.Unlock()
	cl.held &^= c
	for k := range cl.s.links {
		if k.owner == cl {
			k.release(c &^ cl.s.held)
		}
	}
}
