package zkserver

import (
	"context"
	"time"

	"github.com/docent-go/docent/internal/zkserver/pipe"
)

// Partition holds both directions of the client's connections and keeps its dials
// waiting.
func (cl *ClientLink) Partition() {
	cl.s.mu.Lock()
	cl.partitioned = true
	cl.s.mu.Unlock()
	cl.holdLinks(pipe.HoldPartition)
}

// PartitionReplies holds only what the server sends. New dials wait.
func (cl *ClientLink) PartitionReplies() {
	cl.partitionHalf(func(k *link) *pipe.Half { return k.down })
}

// PartitionRequests holds only what the client sends. New dials wait.
func (cl *ClientLink) PartitionRequests() {
	cl.partitionHalf(func(k *link) *pipe.Half { return k.up })
}

func (cl *ClientLink) partitionHalf(pick func(*link) *pipe.Half) {
	cl.s.mu.Lock()
	defer cl.s.mu.Unlock()
	cl.partitioned = true
	for k := range cl.s.links {
		if k.owner == cl {
			pick(k).Hold(pipe.HoldPartition)
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
	cl.releaseLinks(pipe.HoldPartition | pipe.HoldStalled)
}

// Freeze holds both directions of the client's connections, including later ones.
// Dials succeed.
func (cl *ClientLink) Freeze() { cl.holdLinks(pipe.HoldFrozen) }

// Thaw undoes Freeze.
func (cl *ClientLink) Thaw() { cl.releaseLinks(pipe.HoldFrozen) }

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
			k.down.Pause()
		}
	}
	cl.s.mu.Unlock()
	cl.holdLinks(pipe.HoldPaused)
}

// Resume undoes Pause. Deadlines have as much time left as they had.
func (cl *ClientLink) Resume() {
	cl.releaseLinks(pipe.HoldPaused)
	cl.s.mu.Lock()
	defer cl.s.mu.Unlock()
	if cl.paused != nil {
		close(cl.paused)
		cl.paused = nil
	}
	for k := range cl.s.links {
		if k.owner == cl {
			k.down.Resume()
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
	cl.latency = pipe.Latency{Min: lo, Max: hi}
	for k := range cl.s.links {
		if k.owner == cl {
			k.up.SetLatency(lo, hi)
			k.down.SetLatency(lo, hi)
		}
	}
}

func (cl *ClientLink) holdLinks(c pipe.HoldCause) {
	cl.s.mu.Lock()
	defer cl.s.mu.Unlock()
	cl.held |= c
	for k := range cl.s.links {
		if k.owner == cl {
			k.hold(c)
		}
	}
}

func (cl *ClientLink) releaseLinks(c pipe.HoldCause) {
	cl.s.mu.Lock()
	defer cl.s.mu.Unlock()
	cl.held &^= c
	for k := range cl.s.links {
		if k.owner == cl {
			k.release(c &^ cl.s.held)
		}
	}
}
