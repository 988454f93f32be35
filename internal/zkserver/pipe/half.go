// Package pipe is the network in memory: a connection of two halves, of which each
// delivers with a latency of its own. The chunks of one direction arrive at instants at
// which no other direction of a timetable delivers.
package pipe

import (
	"io"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"sync"
	"time"
)

// HoldCause is a set of reasons why a direction of a link delivers nothing.
type HoldCause uint8

// Causes.
const (
	HoldFrozen HoldCause = 1 << iota
	HoldPartition
	HoldPaused
	HoldStalled
	HoldHalted
)

// chunk is what one Write put in. It is delivered as a whole, at its time or
// together with the chunk before it, whichever is later.
type chunk struct {
	b   []byte
	at  time.Time // zero: at once
	eof bool
}

// Half is one direction of a link: an unbounded buffer whose contents become
// readable after a seeded delay. Writing never blocks, as on a network with deep
// buffers, so no caller waits for a reader while it holds a mutex. All waiting is
// on a condition, which lets the clock of a synctest bubble advance.
type Half struct {
	mu     sync.Mutex // guards the rest; no other mutex is taken under it
	cond   sync.Cond
	queue  []chunk
	room   []chunk // the same memory from its begin, for when queue is empty
	unread int

	ended      bool // the writer closed; the last chunk says so to the reader
	readerGone bool
	aborted    bool
	held       HoldCause

	latency Latency
	rng     *rand.Rand
	Lane    Lane
	last    time.Time // when the newest chunk will be delivered

	deadline time.Time // of the reader
	paused   time.Time // since when deadlines stand still; zero while they run
	timer    *time.Timer
}

// NewHalf returns a direction that delivers in the lane t.
func NewHalf(rng *rand.Rand, l Latency, t Lane) *Half {
	h := &Half{rng: rng, latency: l, Lane: t}
	h.cond.L = &h.mu
	return h
}

// Write queues p and keeps it. extra is added to the latency. What is written later
// is not delivered earlier.
func (h *Half) Write(p []byte, extra time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended || h.readerGone || h.aborted {
		return // the bytes are lost on the way, as on a network
	}
	h.push(chunk{b: p}, extra)
}

// CloseWrite queues the end of the stream behind everything that was written.
func (h *Half) CloseWrite() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended {
		return
	}
	h.push(chunk{eof: true}, 0)
	h.ended = true
}

func (h *Half) push(c chunk, extra time.Duration) {
	if d := h.latency.Draw(h.rng) + extra; d > 0 {
		c.at = h.after(time.Now().Add(d))
	}
	if len(h.queue) == 0 {
		h.queue = h.room
	}
	if len(h.queue) == cap(h.queue) {
		h.queue = slices.Grow(h.queue, 1)
		h.room = h.queue[:0]
	}
	h.queue = append(h.queue, c)
	h.unread += len(c.b)
	h.cond.Broadcast()
}

// after returns when a chunk is delivered that is due at t. It comes later than the
// chunks before it, because the reader must not get several at one instant.
func (h *Half) after(t time.Time) time.Time {
	if next := h.last.Add(1); t.Before(next) {
		t = next
	}
	h.last = h.Lane.From(t)
	return h.last
}

// Again returns a delay of one more latency; zero without latency.
func (h *Half) Again() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	d := h.latency.Draw(h.rng)
	if d <= 0 {
		return 0
	}
	return time.Until(h.Lane.From(time.Now().Add(d)))
}

// read copies the bytes that have arrived, or waits until some arrive.
func (h *Half) read(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		switch {
		case h.readerGone:
			return 0, net.ErrClosed
		case h.aborted:
			return 0, io.EOF
		}
		now := time.Now()
		if h.expired(now) {
			return 0, os.ErrDeadlineExceeded
		}
		if len(h.queue) > 0 && h.held == 0 && !h.queue[0].at.After(now) {
			return h.take(p)
		}
		h.arm(now)
		h.cond.Wait()
	}
}

func (h *Half) expired(now time.Time) bool {
	return h.paused.IsZero() && !h.deadline.IsZero() && !now.Before(h.deadline)
}

func (h *Half) take(p []byte) (int, error) {
	c := &h.queue[0]
	if c.eof {
		return 0, io.EOF
	}
	n := copy(p, c.b)
	c.b = c.b[n:]
	h.unread -= n
	if len(c.b) == 0 {
		*c = chunk{} // frees the bytes
		h.queue = h.queue[1:]
	}
	h.cond.Broadcast() // awaitRoom may wait for this
	return n, nil
}

// arm sets the timer to the next instant at which a waiting reader has something to
// do.
func (h *Half) arm(now time.Time) {
	var at time.Time
	if h.paused.IsZero() {
		at = h.deadline
	}
	if len(h.queue) > 0 && h.held == 0 && (at.IsZero() || h.queue[0].at.Before(at)) {
		at = h.queue[0].at
	}
	if at.IsZero() {
		return
	}
	if h.timer == nil {
		h.timer = time.AfterFunc(at.Sub(now), h.wake)
		return
	}
	h.timer.Reset(at.Sub(now))
}

func (h *Half) wake() {
	h.mu.Lock()
	h.cond.Broadcast()
	h.mu.Unlock()
}

func (h *Half) setDeadline(t time.Time) {
	h.mu.Lock()
	h.deadline = t
	h.cond.Broadcast()
	h.mu.Unlock()
}

// closeRead makes readers fail. What is queued or written later is lost.
func (h *Half) closeRead() {
	h.mu.Lock()
	h.readerGone = true
	h.clear()
	h.mu.Unlock()
}

// Abort ends the direction at once, even if it is held.
func (h *Half) Abort() {
	h.mu.Lock()
	h.aborted = true
	h.clear()
	h.mu.Unlock()
}

func (h *Half) clear() {
	h.queue, h.room, h.unread = nil, nil, 0
	if h.timer != nil {
		h.timer.Stop()
	}
	h.cond.Broadcast()
}

// Hold stops delivery for a cause.
func (h *Half) Hold(c HoldCause) {
	h.mu.Lock()
	h.held |= c
	h.mu.Unlock()
}

// Release ends a cause. When no cause is left, delivery goes on after one more
// latency. So links that are released together do not deliver at one instant.
func (h *Half) Release(c HoldCause) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.held&c == 0 {
		return
	}
	h.held &^= c
	if h.held != 0 {
		return
	}
	if d := h.latency.Draw(h.rng); d > 0 {
		at := time.Now().Add(d)
		h.last = time.Time{}
		for i := range h.queue {
			c := &h.queue[i]
			if c.at.Before(at) {
				c.at = at
			}
			c.at = h.after(c.at)
		}
	}
	h.cond.Broadcast()
}

// Pause makes the reader's deadline stand still.
func (h *Half) Pause() {
	h.mu.Lock()
	if h.paused.IsZero() {
		h.paused = time.Now()
	}
	h.mu.Unlock()
}

// Resume lets the deadline run again, later by the time in between.
func (h *Half) Resume() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.paused.IsZero() {
		return
	}
	if !h.deadline.IsZero() {
		h.deadline = h.deadline.Add(time.Since(h.paused))
	}
	h.paused = time.Time{}
	h.cond.Broadcast()
}

// SetLatency changes the latency of what is written from now on.
func (h *Half) SetLatency(lo, hi time.Duration) {
	h.mu.Lock()
	h.latency = Latency{Min: lo, Max: hi}
	h.mu.Unlock()
}

// AwaitRoom waits until fewer than limit bytes are unread, or until no reader will
// read them.
func (h *Half) AwaitRoom(limit int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for h.unread >= limit && !h.readerGone && !h.aborted && !h.ended {
		h.cond.Wait()
	}
}
