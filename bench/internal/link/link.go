// Package link is a link of a given round trip: it passes TCP connections on, each
// direction late by half of it.
package link

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	chunkSize = 64 << 10
	inFlight  = 1024 // chunks of one direction
)

// Link listens and passes connections on to one server until it is closed.
type Link struct {
	target   string
	late     time.Duration // one way
	listener net.Listener

	mu    sync.Mutex // guards the rest
	shut  bool
	conns map[net.Conn]struct{}
	group sync.WaitGroup
}

// Start returns a link to target, host:port, with this round trip.
func Start(ctx context.Context, target string, roundTrip time.Duration) (*Link, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &Link{target: target, late: roundTrip / 2, listener: listener, conns: map[net.Conn]struct{}{}}
	l.group.Go(func() { l.accept(ctx) })
	return l, nil
}

// Addr is where the link listens, host:port.
func (l *Link) Addr() string { return l.listener.Addr().String() }

// Close cuts every connection and waits until nothing of the link is left.
func (l *Link) Close() {
	l.mu.Lock()
	l.shut = true
	_ = l.listener.Close()
	for c := range l.conns {
		_ = c.Close()
	}
	l.mu.Unlock()
	l.group.Wait()
}

func (l *Link) accept(ctx context.Context) {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return
		}
		var d net.Dialer
		server, err := d.DialContext(ctx, "tcp", l.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		if l.admit(client, server) {
			l.pass(client, server)
			l.pass(server, client)
		}
	}
}

// admit makes sure that Close closes the connections.
func (l *Link) admit(conns ...net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range conns {
		if l.shut {
			_ = c.Close()
			continue
		}
		l.conns[c] = struct{}{}
	}
	return !l.shut
}

// chunk is some bytes and when they are due.
type chunk struct {
	due   time.Time
	bytes []byte
}

// pass copies one direction until one of the two is closed, and then closes both.
func (l *Link) pass(from, to net.Conn) {
	chunks := make(chan chunk, inFlight)
	l.group.Go(func() {
		defer close(chunks)
		for {
			b := make([]byte, chunkSize)
			n, err := from.Read(b)
			if n > 0 {
				chunks <- chunk{time.Now().Add(l.late), b[:n]}
			}
			if err != nil {
				return
			}
		}
	})
	l.group.Go(func() {
		for c := range chunks {
			sleepUntil(c.due)
			if _, err := to.Write(c.bytes); err != nil {
				break
			}
		}
		l.end(from, to)
		for range chunks { // the reader must not block
		}
	})
}

func (l *Link) end(conns ...net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
		delete(l.conns, c)
	}
}

// sleepUntil sleeps in the kernel: a timer of Go's may be late by a millisecond, since
// its poller counts in those.
func sleepUntil(due time.Time) {
	for {
		left := time.Until(due)
		if left <= 0 {
			return
		}
		ts := unix.NsecToTimespec(int64(left))
		if err := unix.Nanosleep(&ts, nil); err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
	}
}
