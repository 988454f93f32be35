package simulation_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"sync"
	"time"
)

// nic is a client's end of a connection. It takes out of a run what no seed
// controls, without taking away any fault:
//
//   - What several goroutines write at one instant comes in any order. The
//     frames are kept until the instant is over and sent in an order that
//     depends on what they say.
//   - Which of several equal requests is answered first is anybody's guess.
//     Their answers are handed over together.
//   - Names come from crypto/rand. On the wire they are those of names.
type nic struct {
	net.Conn
	names *names

	mu     sync.Mutex // guards the rest; never held across I/O
	frames [][]byte   // to be sent
	groups map[int32]*group

	// Owned by the reading goroutine.
	greeted bool
	open    int    // groups of which some answers have come
	kept    []byte // frames that wait for the rest of a group
	ready   []byte
}

// settle is how long frames are kept: more than the nanosecond by which three
// pings come before the end of a lease.
const settle = 7 * time.Nanosecond

// group is a number of equal requests.
type group struct{ size, left int }

func (n *node) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := n.link.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &nic{Conn: c, names: n.names, groups: map[int32]*group{}}, nil
}

// Write takes one frame.
func (c *nic) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.frames) == 0 {
		time.AfterFunc(settle, c.flush)
	}
	c.frames = append(c.frames, bytes.Clone(p))
	return len(p), nil
}

// Close drops what has just been written: the order of the two is as little
// decided as that of the writes.
func (c *nic) Close() error {
	c.mu.Lock()
	c.frames = nil
	c.mu.Unlock()
	return c.Conn.Close()
}

func (c *nic) flush() {
	c.mu.Lock()
	frames := c.frames
	c.frames = nil
	slices.SortStableFunc(frames, func(a, b []byte) int { return bytes.Compare(meaning(a), meaning(b)) })
	for i := 0; i < len(frames); {
		n := 1
		for i+n < len(frames) && bytes.Equal(meaning(frames[i]), meaning(frames[i+n])) {
			n++
		}
		for g := (&group{n, n}); n > 0; n-- {
			if g.size > 1 {
				c.groups[xid(frames[i])] = g
			}
			i++
		}
	}
	c.mu.Unlock()
	for _, f := range frames {
		if _, err := c.Conn.Write(c.names.outward(f)); err != nil {
			_ = c.Close() // the reader hears of it
			return
		}
	}
}

// meaning is a frame without its length, its xid and its own names. It starts
// with the type, so a create comes before the list that is sent with it, and the
// end of a session last.
func meaning(frame []byte) []byte {
	if len(frame) < 8 {
		return frame
	}
	b := bytes.Clone(frame[8:])
	eachName(b, func(name []byte) { clear(name) })
	return b
}

func xid(frame []byte) int32 { return int32(binary.BigEndian.Uint32(frame[4:])) }

// Read hands over whole frames.
func (c *nic) Read(p []byte) (int, error) {
	for len(c.ready) == 0 {
		frame, err := c.receive()
		if err != nil {
			return 0, err
		}
		c.kept = append(c.kept, c.names.inward(frame)...)
		if c.greeted {
			c.count(xid(frame))
		}
		c.greeted = true
		if c.open == 0 {
			c.ready, c.kept = c.kept, nil
		}
	}
	n := copy(p, c.ready)
	c.ready = c.ready[n:]
	return n, nil
}

func (c *nic) receive() ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(c.Conn, head[:]); err != nil {
		return nil, err
	}
	frame := make([]byte, 4+binary.BigEndian.Uint32(head[:]))
	copy(frame, head[:])
	_, err := io.ReadFull(c.Conn, frame[4:])
	return frame, err
}

// count notes an answer.
func (c *nic) count(xid int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.groups[xid]
	if g == nil {
		return
	}
	delete(c.groups, xid)
	if g.left == g.size {
		c.open++
	}
	if g.left--; g.left == 0 {
		c.open--
	}
}
