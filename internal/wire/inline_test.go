package wire_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/wire"
)

// sockets are both ends of a connection through the kernel.
func sockets(t testing.TB, network, address string) (near, far net.Conn) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), network, address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	near, err = new(net.Dialer).DialContext(t.Context(), network, l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	far, err = l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = near.Close()
		_ = far.Close()
	})
	return near, far
}

// wrapped is a connection around another one, which its NetConn returns.
type wrapped struct{ net.Conn }

func (w wrapped) NetConn() net.Conn { return w.Conn }

// Callers write by themselves only where a kernel takes the bytes at once.
func TestWritesInline(t *testing.T) {
	t.Parallel()
	tcp, _ := sockets(t, "tcp", "127.0.0.1:0")
	unix, _ := sockets(t, "unix", filepath.Join(t.TempDir(), "s"))
	pipe, _ := net.Pipe()
	for name, tt := range map[string]struct {
		nc   net.Conn
		want bool
	}{
		"tcp":           {tcp, true},
		"unix":          {unix, false},
		"tls over tcp":  {tls.Client(tcp, &tls.Config{ServerName: "s"}), true},
		"pipe":          {pipe, false},
		"tls over pipe": {tls.Client(pipe, &tls.Config{ServerName: "s"}), false},
		"wrapped tcp":   {wrapped{tcp}, false}, // its Write may do anything
		"tls over that": {tls.Client(wrapped{tcp}, &tls.Config{ServerName: "s"}), false},
	} {
		if got := wire.WritesInline(tt.nc); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

// overTCP is a rig whose connection goes through the kernel.
func overTCP(t *testing.T) (*rig, net.Conn, *peer) {
	t.Helper()
	near, far := sockets(t, "tcp", "127.0.0.1:0")
	r := newRig(t, func(cfg *wire.Config) {
		cfg.SessionTimeout = time.Minute
		cfg.Dial = func(context.Context, string) (net.Conn, error) { return near, nil }
	})
	c, err := r.link.Dial("tcp", "s:1", time.Second)
	if err != nil {
		t.Fatal(err)
	}
	p := &peer{t: t, conn: far}
	r.shake(c, p, sessionID, time.Minute)
	return r, c, p
}

// A socket whose buffers are full, with the bytes of any writer, keeps no caller
// beyond the end of its context.
func TestFullSocketKeepsNobody(t *testing.T) {
	t.Parallel()
	for name, fill := range map[string]func(t *testing.T, r *rig, c net.Conn){
		"exchanges": func(t *testing.T, r *rig, _ net.Conn) {
			t.Helper()
			// More than a kernel buffers, and not as much as the machine can make meanwhile.
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			var all []*wire.Exchange
			var ends []<-chan error
			for range 48 {
				x := asked(wire.OpSetData, "/fill")
				x.Request.Data = make([]byte, 1<<20-1000)
				all, ends = append(all, x), append(ends, r.do(ctx, x))
			}
			for _, end := range ends {
				select {
				case <-end:
				case <-time.After(10 * time.Second):
					t.Fatal("Do is kept by its write")
				}
			}
			unsent := func(x *wire.Exchange) bool { return !x.Sent() }
			if !slices.ContainsFunc(all, (*wire.Exchange).Sent) || !slices.ContainsFunc(all, unsent) {
				t.Error("the socket is not full")
			}
		},
		"go-zookeeper": func(_ *testing.T, _ *rig, c net.Conn) {
			_ = c.SetWriteDeadline(farFuture)
			written := make(chan struct{}, 1)
			go func() {
				// As much as the socket takes, and not a byte more.
				for xid := 1; ; xid++ {
					if _, err := c.Write(frame(xid, 5, "/fill", make([]byte, 1000), -1)); err != nil {
						return
					}
					select {
					case written <- struct{}{}:
					default:
					}
				}
			}()
			for quiet := false; !quiet; {
				select {
				case <-written:
				case <-time.After(100 * time.Millisecond):
					quiet = true
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, c, _ := overTCP(t)
			r.view(c)
			fill(t, r, c)
			begun := time.Now()
			for range 20 {
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
				x := asked(wire.OpSync, "/a")
				done := r.do(ctx, x)
				select {
				case err := <-done:
					if !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("Do = %v", err)
					}
				case <-time.After(10 * time.Second):
					t.Fatal("Do is kept by its write")
				}
				cancel()
			}
			if took := time.Since(begun); took > 5*time.Second {
				t.Errorf("20 requests of 20 ms took %v", took)
			}
			r.wantCalls("up")
		})
	}
}

// Requests of go-zookeeper without a known answer count as on their way, like the
// Link's own requests. The socket may be full of them.
func TestBacklog(t *testing.T) {
	t.Parallel()
	r, c, p := overTCP(t)
	r.view(c)
	want := func(when string, want int) {
		t.Helper()
		if got := wire.Backlog(r.link); got != int64(want) {
			t.Errorf("%s: %d bytes are believed to be on their way, want %d", when, got, want)
		}
	}
	want("at first", 0)
	big, ping := frame(1, 5, "/a", make([]byte, 5000), -1), frame(-2, 11)
	for _, f := range [][]byte{big, ping} {
		if _, err := c.Write(f); err != nil {
			t.Fatal(err)
		}
		p.expect(f)
	}
	want("go-zookeeper's", len(big)+len(ping))
	x := asked(wire.OpSync, "/a")
	done := r.do(t.Context(), x)
	p.expect(request(1, x))
	want("an exchange's", len(big)+len(ping)+len(request(1, x)))
	p.write(reply(1, 5, 0, make([]byte, 68)))
	p.write(reply(ownXid(9), 5, 0)) // to no exchange
	p.write(reply(ownXid(1), 5, 0, "/a"))
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	want("answered", 0)
	if _, err := c.Write(frame(2, 9, "/a")); err != nil {
		t.Fatal(err)
	}
	p.expect(frame(2, 9, "/a"))
	if _, err := c.Write(frame(3, 9, "/a")); err != nil {
		t.Fatal(err)
	}
	want("two of go-zookeeper's", 2*len(frame(3, 9, "/a")))
	last := asked(wire.OpSync, "/b")
	done = r.do(t.Context(), last)
	p.expect(frame(3, 9, "/a"))
	p.expect(request(2, last))
	p.write(reply(3, 5, 0, "/a")) // shows that the one before was read as well
	p.write(reply(ownXid(2), 5, 0, "/b"))
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	want("in the end", 0)
}
