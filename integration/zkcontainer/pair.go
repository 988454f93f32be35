package zkcontainer

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"sync"
	"time"
)

const (
	chunk     = 32 << 10
	chunks    = 64 // on their way in one direction
	dialLimit = 5 * time.Second

	// The answer to a handshake: length, version, timeout, session, length of the password,
	// password.
	answerHead = 24
	maxSecret  = 64
)

// pair is a client's connection and the one to the server that belongs to it.
type pair struct {
	front  *front
	client net.Conn
	ctx    context.Context //nolint:containedctx // the life of the pair
	cancel context.CancelFunc

	mu     sync.Mutex // guards the rest
	server net.Conn
	first  []byte // what the server has said first, until there is enough
}

func newPair(f *front, client net.Conn) *pair {
	p := &pair{front: f, client: client}
	p.ctx, p.cancel = context.WithCancel(f.ctx)
	return p
}

// serve passes on until one side ends.
func (p *pair) serve() {
	defer p.front.drop(p)
	defer p.close()
	if p.front.requests.pass(p.ctx) != nil { // in a partition no connection reaches the server
		return
	}
	server, err := (&net.Dialer{Timeout: dialLimit}).DialContext(p.ctx, "tcp", p.front.target)
	if err != nil {
		return
	}
	if !p.join(server) {
		_ = server.Close()
		return
	}
	var group sync.WaitGroup
	group.Go(func() { p.copy(server, p.client, &p.front.requests, nil) })
	group.Go(func() { p.copy(p.client, server, &p.front.replies, p.listen) })
	group.Wait()
}

// join notes the server's connection, unless the pair has been closed.
func (p *pair) join(server net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.server = server
	return p.ctx.Err() == nil
}

func (p *pair) close() {
	p.cancel()
	p.mu.Lock()
	server := p.server
	p.mu.Unlock()
	_ = p.client.Close()
	if server != nil {
		_ = server.Close()
	}
}

// piece is what has been read at once, and when it may go on. Without data the sender has
// finished.
type piece struct {
	data []byte
	due  time.Time
}

// copy passes one direction on. The end of the connection passes like data.
func (p *pair) copy(to, from net.Conn, g *gate, listen func([]byte)) {
	pieces := make(chan piece, chunks)
	p.front.group.Go(func() { p.read(from, pieces, listen) })
	for piece := range pieces {
		if p.wait(piece.due) != nil || g.pass(p.ctx) != nil {
			return
		}
		if piece.data == nil {
			finish(to)
			return
		}
		if _, err := to.Write(piece.data); err != nil {
			p.close()
			return
		}
	}
}

// read fills pieces until the connection ends.
func (p *pair) read(from net.Conn, pieces chan<- piece, listen func([]byte)) {
	defer close(pieces)
	for {
		data := make([]byte, chunk)
		n, err := from.Read(data)
		if n > 0 && listen != nil {
			listen(data[:n])
		}
		due := time.Now().Add(p.front.currentDelay())
		for _, next := range []piece{{data[:n], due}, {nil, due}} {
			if next.data != nil && n == 0 || next.data == nil && err == nil {
				continue
			}
			select {
			case pieces <- next:
			case <-p.ctx.Done():
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// wait returns at the time, or with an error when the pair ends.
func (p *pair) wait(due time.Time) error {
	left := time.Until(due)
	if left <= 0 {
		return nil
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-p.ctx.Done():
		return context.Cause(p.ctx)
	}
}

// finish tells the receiver that no more comes.
func finish(to net.Conn) {
	if half, ok := to.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		return
	}
	_ = to.Close()
}

// listen keeps the beginning of what the server says.
func (p *pair) listen(data []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if room := answerHead + maxSecret - len(p.first); room > 0 {
		p.first = append(p.first, data[:min(room, len(data))]...)
	}
}

// session reads the session out of the answer to the handshake.
func (p *pair) session() (Session, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, err := parseSession(p.first)
	return s, err == nil
}

var errNoHandshake = errors.New("not the answer to a handshake")

func parseSession(b []byte) (Session, error) {
	if len(b) < answerHead {
		return Session{}, errNoHandshake
	}
	length, secret := binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[20:])
	timeout := binary.BigEndian.Uint32(b[8:])
	if secret > maxSecret || length < 20+secret || length > 20+secret+1 || timeout == 0 || len(b) < answerHead+int(secret) {
		return Session{}, errNoHandshake
	}
	return Session{
		ID:       int64(binary.BigEndian.Uint64(b[12:])),
		Password: append([]byte(nil), b[answerHead:answerHead+int(secret)]...),
		Timeout:  time.Duration(timeout) * time.Millisecond,
	}, nil
}
