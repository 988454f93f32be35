package caches

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/docent-go/docent/internal/zoodefs"
)

// Count is what clients have sent through a meter. Pings are not counted.
type Count struct {
	Sessions int   `json:"sessions"` // connections that asked for a session
	Requests int   `json:"requests"` // after that
	Bytes    int64 `json:"bytes"`    // of those requests
}

func (c Count) minus(o Count) Count {
	return Count{c.Sessions - o.Sessions, c.Requests - o.Requests, c.Bytes - o.Bytes}
}

const (
	mostBytes = 64 << 20 // of a request
	headBytes = 8        // the xid and the type
)

// Meter listens, passes connections on to a server, and counts their requests.
type Meter struct {
	target   string
	listener net.Listener
	group    sync.WaitGroup

	mu    sync.Mutex // guards the rest
	shut  bool
	conns map[net.Conn]struct{}
	count Count
	last  time.Time // when the count has changed
}

// StartMeter returns a meter before target, host:port.
func StartMeter(ctx context.Context, target string) (*Meter, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	m := &Meter{target: target, listener: listener, conns: map[net.Conn]struct{}{}}
	m.group.Go(func() { m.accept(ctx) })
	return m, nil
}

// Addr is where the meter listens, host:port.
func (m *Meter) Addr() string { return m.listener.Addr().String() }

// Count is what was counted so far.
func (m *Meter) Count() Count {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.count
}

// Cut ends all connections. New ones are accepted.
func (m *Meter) Cut() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for c := range m.conns {
		_ = c.Close()
	}
}

// Close ends the meter and waits for its goroutines.
func (m *Meter) Close() {
	m.mu.Lock()
	m.shut = true
	m.mu.Unlock()
	_ = m.listener.Close()
	m.Cut()
	m.group.Wait()
}

// Settle waits until nothing was sent for so long, and returns the count.
func (m *Meter) Settle(ctx context.Context, quiet time.Duration) (Count, error) {
	begun := time.Now()
	for {
		m.mu.Lock()
		count, last := m.count, m.last
		m.mu.Unlock()
		if last.Before(begun) {
			last = begun
		}
		left := quiet - time.Since(last)
		if left <= 0 {
			return count, nil
		}
		if err := sleep(ctx, left); err != nil {
			return count, err
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (m *Meter) accept(ctx context.Context) {
	for {
		from, err := m.listener.Accept()
		if err != nil {
			return
		}
		var d net.Dialer
		to, err := d.DialContext(ctx, "tcp", m.target)
		if err != nil {
			_ = from.Close()
			continue
		}
		m.mu.Lock()
		if m.shut {
			_, _ = from.Close(), to.Close()
		}
		m.conns[from], m.conns[to] = struct{}{}, struct{}{}
		m.mu.Unlock()
		m.group.Go(func() { m.pass(from, to, m.requests) })
		m.group.Go(func() {
			m.pass(to, from, func(r io.Reader, w io.Writer) error {
				_, err := io.Copy(w, r)
				return err
			})
		})
	}
}

// pass copies one direction until it ends, and then ends both.
func (m *Meter) pass(from, to net.Conn, how func(io.Reader, io.Writer) error) {
	_ = how(from, to) // how it ends does not matter: both ends are closed
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range []net.Conn{from, to} {
		_ = c.Close()
		delete(m.conns, c)
	}
}

// requests copies requests, each a length and so many bytes. The first asks for a
// session. What has come together is sent together.
func (m *Meter) requests(from io.Reader, to io.Writer) error {
	r, w := bufio.NewReaderSize(from, 64<<10), bufio.NewWriterSize(to, 64<<10)
	for first := true; ; first = false {
		var size [4]byte
		if _, err := io.ReadFull(r, size[:]); err != nil {
			return err
		}
		n := int64(binary.BigEndian.Uint32(size[:]))
		if n < headBytes || n > mostBytes {
			return errors.New("not a request")
		}
		frame := make([]byte, n)
		if _, err := io.ReadFull(r, frame); err != nil {
			return err
		}
		m.add(frame, first)
		_, _ = w.Write(size[:]) // the error stays for Flush
		_, _ = w.Write(frame)
		if r.Buffered() > 0 {
			continue
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
}

func (m *Meter) add(frame []byte, first bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case first:
		m.count.Sessions++
	case binary.BigEndian.Uint32(frame[4:headBytes]) == uint32(zoodefs.OpPing):
		return
	default:
		m.count.Requests++
		m.count.Bytes += int64(len(frame))
	}
	m.last = time.Now()
}
