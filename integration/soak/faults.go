package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/docent-go/docent/zktest"
)

// link is the way of one client to the servers. It can be cut, and be closed for a time.
type link struct {
	connect func(ctx context.Context, network, address string) (net.Conn, error)

	mu     sync.Mutex
	conns  map[net.Conn]bool
	closed bool
}

type tracked struct {
	net.Conn
	l *link
}

func (t tracked) Close() error {
	t.l.mu.Lock()
	delete(t.l.conns, t.Conn)
	t.l.mu.Unlock()
	return t.Conn.Close()
}

func (l *link) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := l.connect(ctx, network, address)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		_ = conn.Close()
		return nil, errors.New("soak: the link is closed")
	}
	if l.conns == nil {
		l.conns = map[net.Conn]bool{}
	}
	l.conns[conn] = true
	return tracked{conn, l}, nil
}

// cut ends the open connections. With closed no new one is made until the next cut.
func (l *link) cut(closed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = closed
	for conn := range l.conns {
		_ = conn.Close()
	}
}

// disturb makes a fault every few seconds, on one client at a time: a broken connection, an
// outage that ends before the session does, one that ends it, or a lost answer.
func disturb(ctx context.Context, links []*link, srv *zktest.Server, free turns) {
	for pause(ctx, 2*time.Second+rand.N(4*time.Second)) && free.take(ctx) {
		l := links[rand.IntN(len(links))]
		switch rand.IntN(4) {
		case 0:
			l.cut(false)
		case 1:
			l.cut(true)
			pause(ctx, sessionTimeout/4)
			l.cut(false)
		case 2:
			l.cut(true)
			pause(ctx, 2*sessionTimeout)
			l.cut(false)
		case 3:
			if srv != nil {
				rule := srv.LoseReply(zktest.Match{PathPrefix: root})
				_ = rule.Wait(ctx, 1) // or the run ends
				rule.Remove()
			}
		}
		free.give()
	}
	for _, l := range links {
		l.cut(false)
	}
}

// pause waits, and reports whether ctx goes on.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
