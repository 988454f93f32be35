package wire_test

import (
	"bytes"
	"context"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/internal/wire"
)

// ownXid is the xid of the n-th exchange on a connection, counted from 1.
func ownXid(n int) int { return -0x10000000 - n }

// asked is an exchange without more than a path.
func asked(op wire.Op, path string) *wire.Exchange {
	return &wire.Exchange{Request: wire.Request{Op: op, Path: path}}
}

// request is what leaves for the n-th exchange on a connection.
func request(n int, x *wire.Exchange) []byte {
	body := wire.Encode(x.Request)
	return frame(ownXid(n), int(x.Request.Op), body)
}

// do sends exchanges in the background. The channel yields what Do returned.
func (r *rig) do(ctx context.Context, xs ...*wire.Exchange) <-chan error {
	done := make(chan error, 1)
	go func() { done <- r.link.Do(ctx, xs...) }()
	return done
}

// view is what go-zookeeper gets to see on a connection.
type view struct {
	mu  sync.Mutex
	got []byte
	err error
}

// view reads c, as go-zookeeper does all the time, until it fails.
func (r *rig) view(c net.Conn) *view {
	v := &view{}
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := c.Read(buf)
			v.mu.Lock()
			v.got, v.err = append(v.got, buf[:n]...), err
			v.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return v
}

// want compares what was seen so far, once everything stands still.
func (v *view) want(t testing.TB, frames ...[]byte) {
	t.Helper()
	synctest.Wait()
	v.mu.Lock()
	defer v.mu.Unlock()
	if want := bytes.Join(frames, nil); !bytes.Equal(v.got, want) {
		t.Errorf("go-zookeeper saw %x, want %x", v.got, want)
	}
}

// wantFate checks what is known of a request that Do has given up.
func wantFate(t testing.TB, when string, x *wire.Exchange, sent, answered bool) {
	t.Helper()
	if x.Sent() != sent || x.Answered() != answered {
		t.Errorf("%s: sent %v, answered %v; want %v, %v", when, x.Sent(), x.Answered(), sent, answered)
	}
}

// wantPending checks what the live connection remembers.
func (r *rig) wantPending(when string, sent, queued int) {
	r.t.Helper()
	if s, q := wire.Pending(r.link); s != sent || q != queued {
		r.t.Errorf("%s: %d sent and %d queued are remembered, want %d, %d", when, s, q, sent, queued)
	}
}

// farFuture is later than anything in a test.
var farFuture = time.Unix(1<<40, 0)
