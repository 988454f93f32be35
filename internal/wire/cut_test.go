package wire_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"

	"github.com/docent-go/docent/internal/wire"
)

// A connection is lost in the middle of a write. Requests whose end did not leave
// were never sent; the others may have been run.
func TestWriteCutByALostConnection(t *testing.T) {
	t.Parallel()
	xs := func() []*wire.Exchange {
		return []*wire.Exchange{asked(wire.OpDelete, "/a"), checks("/b"), asked(wire.OpSync, "/c")}
	}
	var all []byte
	var ends []int
	for i, x := range xs() {
		all = append(all, request(i+1, x)...)
		ends = append(ends, len(all))
	}
	for cut := range len(all) + 1 {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			_, p := r.establish() // without a reader, which could notice first
			xs := xs()
			xs[1].Keep = true
			done := r.do(t.Context(), xs...)
			got := make([]byte, cut)
			if _, err := io.ReadFull(p.conn, got); err != nil || !bytes.Equal(got, all[:cut]) {
				t.Fatalf("server received %x, %v", got, err)
			}
			synctest.Wait()
			_ = p.conn.Close()
			if cut == len(all) {
				r.link.DropLive(farFuture, io.EOF)
			}
			if err := <-done; err == nil || errors.Is(err, wire.ErrNotConnected) {
				t.Errorf("Do = %v", err)
			}
			for i, x := range xs {
				wantFate(t, "cut", x, cut >= ends[i], false)
			}
			xs[1].AwaitAnswer(t.Context())
			synctest.Wait() // the callback may come a moment later
			r.wantCalls("up", "down")
			r.link.End(nil)
			r.link.Wait()
		})
	}
}

// Reader or writer may notice the loss first. A request that the server has in
// full never counts as not sent.
func TestWriteCutWhileReading(t *testing.T) {
	t.Parallel()
	for cut := range 60 {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			c, p := r.establish()
			r.view(c)
			xs := []*wire.Exchange{asked(wire.OpDelete, "/a"), asked(wire.OpDelete, "/b"), asked(wire.OpDelete, "/c")}
			done := r.do(t.Context(), xs...)
			size := len(request(1, xs[0]))
			_, _ = io.ReadFull(p.conn, make([]byte, cut))
			_ = p.conn.Close()
			if err := <-done; err == nil {
				t.Error("Do succeeded")
			}
			for i, x := range xs {
				if cut >= (i+1)*size && !x.Sent() {
					t.Errorf("after %d bytes: request %d was sent", cut, i)
				}
			}
		})
	}
}

// short is a connection that fails within a write, after so many bytes.
type short struct {
	net.Conn
	left int
}

var errShort = errors.New("no more")

func (s *short) Write(p []byte) (int, error) {
	if len(p) <= s.left {
		s.left -= len(p)
		return s.Conn.Write(p)
	}
	n, err := s.Conn.Write(p[:s.left])
	if err == nil {
		err = errShort
	}
	return n, err
}

// Requests of several callers in one write are told apart as well, and one that
// was answered before the write failed stays answered.
func TestFailedWriteOfSeveralCallers(t *testing.T) {
	t.Parallel()
	for cut := range 3 {
		synctest.Test(t, func(t *testing.T) {
			var nc *short
			r := newRig(t, func(cfg *wire.Config) {
				dial := cfg.Dial
				cfg.Dial = func(ctx context.Context, server string) (net.Conn, error) {
					pipe, err := dial(ctx, server)
					nc = &short{pipe, 1 << 20}
					return nc, err
				}
			})
			c, p := r.establish()
			r.view(c)
			go func() { _, _ = c.Write(frame(1, 9, "/raw")) }()
			synctest.Wait()
			var xs []*wire.Exchange
			var dones []<-chan error
			for _, path := range []string{"/a", "/b", "/c"} {
				x := asked(wire.OpSync, path)
				xs, dones = append(xs, x), append(dones, r.do(t.Context(), x))
				synctest.Wait()
			}
			nc.left = len(request(1, xs[0]))*cut + 1
			p.expect(frame(1, 9, "/raw"))
			for i, x := range xs[:cut] {
				p.expect(request(i+1, x))
			}
			if cut == 2 {
				p.write(reply(ownXid(1), 1, 0, "/a"))
				synctest.Wait()
				go p.swallowAll() // the byte that is left; the write fails behind it
			} else {
				_, _ = p.conn.Read(make([]byte, 1))
			}
			for i, done := range dones {
				err := <-done
				if answered := cut == 2 && i == 0; answered != (err == nil) {
					t.Errorf("cut in request %d: Do of %d = %v", cut, i, err)
				}
				if xs[i].Sent() != (i < cut) {
					t.Errorf("cut in request %d: request %d sent: %v", cut, i, xs[i].Sent())
				}
			}
		})
	}
}

// A reply that is cut off is no answer: its request has an unknown outcome.
// Requests that were answered before stay so.
func TestReplyCutByALostConnection(t *testing.T) {
	t.Parallel()
	const limit = 100 << 10
	for _, size := range []int{0, 100, 20 << 10, 200 << 10} { // in the buffer, larger, over the limit
		whole := reply(ownXid(2), 5, 0, make([]byte, size), make([]byte, 68))
		for _, cut := range []int{0, 3, 4, 19, 20, len(whole) / 2, len(whole) - 1} {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, func(cfg *wire.Config) { cfg.MaxReply = limit })
				c, p := r.establish()
				seen := r.view(c)
				xs := []*wire.Exchange{asked(wire.OpSync, "/a"), asked(wire.OpGetData, "/b"), asked(wire.OpSync, "/c")}
				done := r.do(t.Context(), xs...)
				for i, x := range xs {
					p.expect(request(i+1, x))
				}
				p.write(reply(ownXid(1), 5, 0, "/a"))
				p.write(whole[:cut])
				_ = p.conn.Close()
				err := <-done
				if want := map[bool]error{true: io.EOF, false: io.ErrUnexpectedEOF}[cut == 0]; !errors.Is(err, want) && size <= limit {
					t.Errorf("%d of %d bytes: Do = %v, want %v", cut, len(whole), err, want)
				}
				for i, x := range xs {
					wantFate(t, "cut", x, true, i == 0)
				}
				if xs[0].Reply.Path != "/a" || xs[1].Reply.Zxid != 0 {
					t.Errorf("replies %+v, %+v", xs[0].Reply, xs[1].Reply)
				}
				seen.want(t)
				r.wantCalls("up", "down")
				r.wantAlive()
			})
		}
	}
}
