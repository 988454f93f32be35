package wire_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/wire"
)

const (
	sessionID = int64(0x1000000abcdef01)
	timeout   = 6 * time.Second
	password  = "0123456789abcdef"
)

// frame builds a frame from int32, int64, string, []byte and bool, as jute does.
func frame(parts ...any) []byte {
	b := make([]byte, 4)
	for _, p := range parts {
		switch v := p.(type) {
		case int:
			b = binary.BigEndian.AppendUint32(b, uint32(int32(v)))
		case int64:
			b = binary.BigEndian.AppendUint64(b, uint64(v))
		case string:
			b = append(binary.BigEndian.AppendUint32(b, uint32(len(v))), v...)
		case []byte:
			b = append(b, v...)
		case bool:
			if v {
				b = append(b, 1)
			} else {
				b = append(b, 0)
			}
		default:
			panic(fmt.Sprintf("frame: %T", p))
		}
	}
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b
}

func connectRequest(id int64) []byte {
	return frame(0, int64(0), int(timeout.Milliseconds()), id, password)
}

func connectResponse(id int64, t time.Duration) []byte {
	return frame(0, int(t.Milliseconds()), id, password)
}

func reply(xid int, zxid int64, code int, body ...any) []byte {
	return frame(append([]any{xid, zxid, code}, body...)...)
}

// peer is the server's end of one connection.
type peer struct {
	t    testing.TB
	conn net.Conn
}

// next returns the next frame that the client sent, with its length bytes.
func (p *peer) next() ([]byte, error) {
	b := make([]byte, 4)
	if _, err := io.ReadFull(p.conn, b); err != nil {
		return nil, err
	}
	b = append(b, make([]byte, binary.BigEndian.Uint32(b))...)
	_, err := io.ReadFull(p.conn, b[4:])
	return b, err
}

func (p *peer) expect(want []byte) {
	p.t.Helper()
	got, err := p.next()
	if err != nil || string(got) != string(want) {
		p.t.Errorf("server received %x, %v; want %x", got, err, want)
	}
}

func (p *peer) write(b []byte) {
	p.t.Helper()
	if _, err := p.conn.Write(b); err != nil {
		p.t.Errorf("server writes %x: %v", b, err)
	}
}

// swallowAll reads whatever comes until the connection ends.
func (p *peer) swallowAll() { _, _ = io.Copy(io.Discard, p.conn) }

// rig is a Link whose dials end at peers, and the record of its callbacks.
type rig struct {
	t     testing.TB
	link  *wire.Link
	peers chan *peer
	dials atomic.Int32

	mu    sync.Mutex
	last  *peer
	calls []string
	ups   []wire.Handshake
	downs []error
	overs []error
}

func newRig(t testing.TB, change ...func(*wire.Config)) *rig {
	r := &rig{t: t, peers: make(chan *peer, 64)}
	cfg := wire.Config{
		SessionTimeout: timeout,
		Dial: func(context.Context, string) (net.Conn, error) {
			near, far := net.Pipe()
			p := &peer{t: t, conn: far}
			r.dials.Add(1)
			r.mu.Lock()
			r.last = p
			r.mu.Unlock()
			r.peers <- p
			return near, nil
		},
		OnUp: func(h wire.Handshake) {
			r.note("up")
			r.mu.Lock()
			defer r.mu.Unlock()
			r.ups = append(r.ups, h)
		},
		OnDown: func(_ string, err error) {
			r.note("down")
			r.mu.Lock()
			defer r.mu.Unlock()
			r.downs = append(r.downs, err)
		},
		OnOver: func(err error) {
			r.note("over")
			r.mu.Lock()
			defer r.mu.Unlock()
			r.overs = append(r.overs, err)
		},
	}
	for _, f := range change {
		f(&cfg)
	}
	r.link = wire.NewLink(cfg)
	t.Cleanup(func() { r.link.End(errors.New("test over")) })
	return r
}

func (r *rig) note(call string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, call)
}

// cut ends the newest connection at the server's end.
func (r *rig) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = r.last.conn.Close()
}

// wantCalls compares the callbacks so far.
func (r *rig) wantCalls(want ...string) {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if fmt.Sprint(r.calls) != fmt.Sprint(want) {
		r.t.Errorf("callbacks %v, want %v", r.calls, want)
	}
}

// wantOver checks that the Link ended because of want, said so once, and does
// not dial any more.
func (r *rig) wantOver(want error) {
	r.t.Helper()
	select {
	case <-r.link.Over():
	default:
		r.t.Fatalf("Link is not over, want %v", want)
	}
	if err := r.link.Cause(); !errors.Is(err, want) {
		r.t.Errorf("Cause = %v, want %v", err, want)
	}
	r.mu.Lock()
	overs, dials := len(r.overs), r.dials.Load()
	r.mu.Unlock()
	if overs != 1 {
		r.t.Errorf("OnOver called %d times", overs)
	}
	if _, err := r.link.Dial("tcp", "s:1", time.Second); !errors.Is(err, wire.ErrOver) || !errors.Is(err, want) {
		r.t.Errorf("Dial after the end = %v, want ErrOver and %v", err, want)
	}
	if r.dials.Load() != dials {
		r.t.Error("a Link that is over dialed")
	}
}

func (r *rig) wantAlive() {
	r.t.Helper()
	if err := r.link.Cause(); err != nil {
		r.t.Errorf("Link is over: %v", err)
	}
}

// dial returns both ends of a new connection.
func (r *rig) dial() (net.Conn, *peer) {
	r.t.Helper()
	c, err := r.link.Dial("tcp", "s:1", time.Second)
	if err != nil {
		r.t.Fatalf("Dial: %v", err)
	}
	return c, <-r.peers
}

// establish dials and shakes hands.
func (r *rig) establish() (net.Conn, *peer) {
	r.t.Helper()
	c, p := r.dial()
	r.shake(c, p, sessionID, timeout)
	return c, p
}

// shake does an accepted handshake on a fresh connection. The server does not
// care what the client has seen.
func (r *rig) shake(c net.Conn, p *peer, id int64, negotiated time.Duration) {
	r.t.Helper()
	ask, answer := connectRequest(r.link.SessionID()), connectResponse(id, negotiated)
	done := make(chan struct{})
	go func() {
		defer close(done)
		got, err := p.next()
		if err == nil {
			clear(got[8:16])
		}
		if want := withReadOnly(ask); err != nil || string(got) != string(want) {
			p.t.Errorf("server received %x, %v; want %x", got, err, want)
		}
		p.write(answer)
	}()
	if _, err := c.Write(ask); err != nil {
		r.t.Fatalf("handshake: %v", err)
	}
	r.wantRead(c, answer)
	<-done
}

// withReadOnly is a ConnectRequest with the byte that go-zookeeper leaves out.
func withReadOnly(ask []byte) []byte {
	b := append(slices.Clone(ask), 0)
	b[3]++
	return b
}

// wantRead reads as many bytes as want has.
func (r *rig) wantRead(c net.Conn, want []byte) {
	r.t.Helper()
	got := make([]byte, len(want))
	if n, err := io.ReadFull(c, got); err != nil || string(got) != string(want) {
		r.t.Fatalf("read %x, %v; want %x", got[:n], err, want)
	}
}

// exchange sends one request and delivers one answer to it.
func (r *rig) exchange(c net.Conn, p *peer, request, answer []byte) {
	r.t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.expect(request)
		p.write(answer)
	}()
	if _, err := c.Write(request); err != nil {
		r.t.Fatalf("write: %v", err)
	}
	r.wantRead(c, answer)
	<-done
}
