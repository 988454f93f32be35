package wire_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/wire"
)

// checker is a server that takes nothing but whole requests to set the data of
// /<writer>/<number>, and answers each. The numbers of each writer must rise.
type checker struct {
	t    testing.TB
	last map[string]int
	got  int
}

func (k *checker) serve(nc net.Conn) {
	p := &peer{t: k.t, conn: nc}
	if _, err := p.next(); err != nil {
		k.t.Error(err)
		return
	}
	p.write(connectResponse(sessionID, time.Minute))
	for {
		b, err := p.next()
		if err != nil {
			return // the test is over
		}
		if !k.check(b) {
			k.t.Errorf("request %d is torn or mixed up: %.100x", k.got, b)
			_ = nc.Close()
			return
		}
		if _, err := nc.Write(reply(int(int32(binary.BigEndian.Uint32(b[4:]))), int64(k.got), 0, make([]byte, 68))); err != nil {
			return // likewise
		}
		k.got++
	}
}

func (k *checker) check(b []byte) bool {
	b = b[8:]
	if binary.BigEndian.Uint32(b) != 5 {
		return false
	}
	size := binary.BigEndian.Uint32(b[4:])
	if size > 40 {
		return false
	}
	path, rest := string(b[8:8+size]), b[8+size:]
	data := rest[4 : len(rest)-4]
	writer, number, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	var n int
	if _, err := fmt.Sscan(number, &n); err != nil || writer == "" {
		return false
	}
	if binary.BigEndian.Uint32(rest) != uint32(len(data)) || !bytes.Equal(data, pattern(writer, n, len(data))) {
		return false
	}
	ok := n > k.last[writer]
	k.last[writer] = n
	return ok
}

func pattern(writer string, n, size int) []byte {
	return bytes.Repeat([]byte{writer[0] ^ byte(n)}, size)
}

// Callers that write by themselves, callers that queue, and go-zookeeper all
// write at once. They never mix up their frames, and each writer's frames stay in
// order.
func TestMixedWriters(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"tcp", "unix", "tls", "pipe"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			near, far := connected(t, kind)
			r := newRig(t, func(cfg *wire.Config) {
				cfg.Dial = func(context.Context, string) (net.Conn, error) { return near, nil }
			})
			server := &checker{t: t, last: map[string]int{}}
			var serving sync.WaitGroup
			serving.Go(func() { server.serve(far) })
			c, err := r.link.Dial("tcp", "s:1", time.Second)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Write(connectRequest(0)); err != nil {
				t.Fatal(err)
			}
			r.wantRead(c, connectResponse(sessionID, time.Minute))
			v := r.view(c)
			const writers, rounds = 8, 60
			var all sync.WaitGroup
			for w := range writers {
				all.Go(func() { r.writer(string(rune('a'+w)), rounds) })
			}
			all.Go(func() { raw(t, c, "z", 2*rounds) })
			all.Wait()
			r.writer("last", 1) // its answer comes behind the others' answers
			r.wantCalls("up")
			_ = far.Close()
			serving.Wait()
			if want := (writers + 2) * rounds; server.got < want/2 {
				t.Errorf("%d requests arrived of %d: hardly anything is tested", server.got, want)
			}
			v.wantReplies(t, 2*rounds)
			_ = c.Close()
			r.link.End(nil)
			r.link.Wait()
		})
	}
}

// connected are both ends of a connection of that kind.
func connected(t *testing.T, kind string) (near, far net.Conn) {
	t.Helper()
	switch kind {
	case "unix":
		return sockets(t, "unix", filepath.Join(t.TempDir(), "s"))
	case "pipe":
		return net.Pipe()
	case "tls":
		near, far = sockets(t, "tcp", "127.0.0.1:0")
		serverTLS, clientTLS := tlsConfigs(t)
		return tls.Client(near, clientTLS), tls.Server(far, serverTLS)
	default:
		return sockets(t, "tcp", "127.0.0.1:0")
	}
}

// writer sends small requests and large, alone and together, and gives some up.
func (r *rig) writer(name string, rounds int) {
	rnd := rand.New(rand.NewPCG(uint64(name[0]), 1))
	for n := 1; n <= rounds; {
		var xs []*wire.Exchange
		for range 1 + rnd.IntN(3) {
			size := rnd.IntN(100)
			if rnd.IntN(10) == 0 {
				size = rnd.IntN(100_000)
			}
			x := asked(wire.OpSetData, fmt.Sprintf("/%s/%d", name, n))
			x.Request.Data = pattern(name, n, size)
			xs = append(xs, x)
			n++
		}
		limit := time.Minute
		if rnd.IntN(8) == 0 {
			limit = time.Duration(rnd.IntN(100)) * time.Microsecond
		}
		ctx, cancel := context.WithTimeout(r.t.Context(), limit)
		err := r.link.Do(ctx, xs...)
		cancel()
		if err != nil && (!errors.Is(err, context.DeadlineExceeded) || limit == time.Minute) {
			r.t.Errorf("Do = %v", err)
			return
		}
		for _, x := range xs {
			if err == nil && (!x.Answered() || x.Err() != nil) {
				r.t.Errorf("answered %v, %v", x.Answered(), x.Err())
			}
			clear(x.Request.Data) // it is the caller's again
		}
	}
}

// raw writes as go-zookeeper does.
func raw(t *testing.T, c net.Conn, name string, rounds int) {
	rnd := rand.New(rand.NewPCG(uint64(name[0]), 1))
	for n := 1; n <= rounds; n++ {
		size := rnd.IntN(1000)
		data := pattern(name, n, size)
		b := frame(n, 5, fmt.Sprintf("/%s/%d", name, n), string(data), -1)
		if _, err := c.Write(b); err != nil {
			t.Errorf("Write = %v", err)
			return
		}
	}
}

// wantReplies checks that go-zookeeper saw the answers to its own requests, in
// order, and nothing else.
func (v *view) wantReplies(t *testing.T, n int) {
	t.Helper()
	v.mu.Lock()
	defer v.mu.Unlock()
	const size = 4 + 16 + 68
	if len(v.got) != n*size {
		t.Fatalf("go-zookeeper saw %d bytes, want %d answers of %d", len(v.got), n, size)
	}
	for i := range len(v.got) / size {
		if got := binary.BigEndian.Uint32(v.got[i*size+4:]); got != uint32(i+1) {
			t.Fatalf("answer %d has xid %#x", i, got)
		}
	}
}
