package wire_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/wire"
)

// BenchmarkDo is one request and its answer through the kernel, alone and with
// others at the same time.
func BenchmarkDo(b *testing.B) {
	for _, bb := range []struct {
		name   string
		x      func() *wire.Exchange
		answer []byte
	}{
		{"getData", func() *wire.Exchange { return asked(wire.OpGetData, "/locks/a") }, body("data", make([]byte, 68))},
		{"create", func() *wire.Exchange { return asked(wire.OpCreate, "/locks/a/lock-") }, body("/locks/a/lock-0000000001")},
		{"checks", func() *wire.Exchange { return checks("/locks/a") }, body(append(checked, partsEnd...)...)},
	} {
		b.Run(bb.name, func(b *testing.B) {
			l := answered(b, bb.answer)
			b.ReportAllocs()
			for b.Loop() {
				if err := l.Do(b.Context(), bb.x()); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(bb.name+"/parallel", func(b *testing.B) {
			l := answered(b, bb.answer)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := l.Do(b.Context(), bb.x()); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}

// answered is a Link to a server that answers everything with one body.
func answered(b *testing.B, answer []byte) *wire.Link {
	b.Helper()
	near, far := sockets(b, "tcp", "127.0.0.1:0")
	r := newRig(b, func(cfg *wire.Config) {
		cfg.Dial = func(context.Context, string) (net.Conn, error) { return near, nil }
	})
	c, err := r.link.Dial("tcp", "s:1", time.Second)
	if err != nil {
		b.Fatal(err)
	}
	p := &peer{t: b, conn: far}
	r.shake(c, p, sessionID, timeout)
	r.view(c)
	go func() {
		out := reply(0, 5, 0, answer)
		for {
			request, err := p.next()
			if err != nil {
				return
			}
			copy(out[4:8], request[4:8])
			if _, err := far.Write(out); err != nil {
				return
			}
		}
	}()
	return r.link
}
