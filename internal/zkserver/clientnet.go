package zkserver

import (
	"context"
	"time"
)

// Partition holds both directions of the client's connections and keeps its
// dials waiting. Its sessions expire in time. Heal undoes it.
func (cl *ClientLink) Partition() {
	cl.s.mu.Lock()
	cl.partitioned = true
	cl.s.mu.Unlock()
	cl.holdLinks(holdPartition)
}

// PartitionReplies holds only what the server sends: the client's requests,
// pings too, arrive and keep its session alive while it hears nothing. New
// dials wait. Heal undoes it.
func (cl *ClientLink) PartitionReplies() {
	cl.partitionHalf(func(k *link) *half { return k.down })
}

// PartitionRequests holds only what the client sends: it still hears of events,
// but its session expires. New dials wait. Heal undoes it.
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

// Heal undoes Partition, PartitionReplies, PartitionRequests and every
// StallReply. Held frames flow, and waiting dials go on.
func (cl *ClientLink) Heal() {
	cl.s.mu.Lock()
	cl.partitioned = false
	cl.s.networkChanged()
	cl.s.mu.Unlock()
	cl.releaseLinks(holdPartition | holdStalled)
}

// Freeze holds both directions of the client's connections, later ones too;
// dials succeed. Thaw undoes it.
func (cl *ClientLink) Freeze() { cl.holdLinks(holdFrozen) }

// Thaw undoes Freeze.
func (cl *ClientLink) Thaw() { cl.releaseLinks(holdFrozen) }

// Refuse makes the client's dials fail. Connections that exist go on.
func (cl *ClientLink) Refuse() { cl.setRefusing(true) }

// Accept undoes Refuse.
func (cl *ClientLink) Accept() { cl.setRefusing(false) }

func (cl *ClientLink) setRefusing(on bool) {
	cl.s.mu.Lock()
	cl.refusing = on
	cl.s.networkChanged()
	cl.s.mu.Unlock()
}

// Cut closes the client's connections and returns how many there were. The
// client may come back at once.
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

// Pause models a client that stands still, in a garbage collection or in a
// stopped virtual machine: both directions are held and the deadlines of its
// connections do not run. The client's own goroutines cannot be stopped from
// here; those that should stand still too call [ClientLink.Gate].
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

// Resume undoes Pause. What is held flows, deadlines have as long to go as
// they had.
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

// Gate returns at once, or, while the client is paused, when it is resumed or
// ctx ends; then with ctx's error.
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

// SetLatency changes the latency of the client's connections, later ones too.
// The range must not be negative or empty; see [WithLatency].
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
