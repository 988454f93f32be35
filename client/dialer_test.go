package client_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/zktest"
)

// noDeadline is a connection as golang.org/x/crypto/ssh gives it.
type noDeadline struct{ net.Conn }

var errNoDeadline = errors.New("deadline not supported")

func (noDeadline) SetDeadline(time.Time) error      { return errNoDeadline }
func (noDeadline) SetReadDeadline(time.Time) error  { return errNoDeadline }
func (noDeadline) SetWriteDeadline(time.Time) error { return errNoDeadline }

// The connections of a dialer need no deadlines. A silent server is found out all the same.
func TestDialerWithoutDeadlines(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		link := r.Srv.Client("a")
		var dials atomic.Int32
		c := r.Connect("a", client.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
			dial := link.DialContext
			if dials.Add(1) == 1 { // a handshake without an answer
				dial = func(ctx context.Context, _, _ string) (net.Conn, error) { return silent(ctx) }
			}
			nc, err := dial(ctx, network, address)
			return noDeadline{nc}, err
		}))
		if n := dials.Load(); n != 2 {
			t.Errorf("%d dials", n)
		}
		h := r.hold(c, "/e")
		time.Sleep(time.Minute)
		r.Check(h.Err())
		link.Freeze()
		testrig.WantErr(t, r.loss(h), client.ErrLeaseExpired)
		link.Thaw()
		time.Sleep(30 * time.Second)
		_, _, err := c.Exists(r.Within(time.Second), "/")
		r.Check(err)
	})
}

// A dialer that returns nothing is an error of Connect.
func TestDialerThatReturnsNothing(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c, err := r.Open("zk", "a", client.WithDialer(func(context.Context, string, string) (net.Conn, error) { return nil, nil }))
		r.failed(c, err, "WithDialer", "neither a connection nor an error")
	})
}

// Many servers leave each dial time enough for a far region.
func TestSlowDialsToManyServers(t *testing.T) {
	t.Parallel()
	for _, servers := range []int{9, 29, 99} {
		for _, delay := range []time.Duration{800 * time.Millisecond, 3 * time.Second} {
			t.Run(fmt.Sprint(servers, " ", delay), func(t *testing.T) {
				t.Parallel()
				bubble(t, func(r *rig) {
					list := make([]string, servers)
					for i := range list {
						list[i] = fmt.Sprint("zk", i)
					}
					link := r.Srv.Client("a")
					c, err := r.Open(strings.Join(list, ","), "a", client.WithConnectTimeout(15*time.Minute),
						client.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
							select {
							case <-time.After(delay):
								return link.DialContext(ctx, network, address)
							case <-ctx.Done():
								return nil, ctx.Err()
							}
						}))
					r.Check(err)
					if delay > time.Second {
						return
					}
					s := r.Session(c)
					link.Cut()
					time.Sleep(2 * delay)
					if c.State() != client.Connected || s.Err() != nil {
						t.Errorf("after the loss of the connection: %v, %v", c.State(), s.Err())
					}
				})
			})
		}
	}
}

// A server that refuses to close the session, and keeps the connection, is asked again after
// a pause.
func TestCloseThatIsRefused(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		var asked atomic.Int32
		serve := func(nc net.Conn) {
			var head [4]byte
			for first := true; ; first = false {
				if _, err := io.ReadFull(nc, head[:]); err != nil {
					return
				}
				b := make([]byte, binary.BigEndian.Uint32(head[:]))
				if _, err := io.ReadFull(nc, b); err != nil {
					return
				}
				time.Sleep(time.Millisecond)
				answer := make([]byte, 36) // of the handshake: version, timeout, id, password
				binary.BigEndian.PutUint32(answer[4:], 10000)
				binary.BigEndian.PutUint64(answer[8:], 77)
				binary.BigEndian.PutUint32(answer[16:], 16)
				if !first {
					code := int32(zktest.CodeNoNode)
					switch zktest.Op(binary.BigEndian.Uint32(b[4:])) {
					case zktest.OpPing:
						code = 0
					case zktest.OpCloseSession:
						asked.Add(1)
						code = int32(zktest.CodeThrottledOp)
					}
					answer = make([]byte, 16) // xid, zxid, code
					copy(answer, b[:4])
					binary.BigEndian.PutUint32(answer[12:], uint32(code))
				}
				if _, err := nc.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(answer))), answer...)); err != nil {
					return
				}
			}
		}
		c, err := r.Open("zk", "a", client.WithDialer(func(context.Context, string, string) (net.Conn, error) {
			a, b := net.Pipe()
			go serve(b) // ends when the client closes a
			return a, nil
		}))
		r.Check(err)
		if err := c.Close(); err == nil {
			t.Error("Close says that it has ended the session")
		}
		time.Sleep(time.Minute)
		if n := asked.Load(); n < 2 || n > 50 {
			t.Errorf("asked %d times", n)
		}
	})
}
