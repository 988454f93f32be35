package zkserver_test

import (
	"testing"
	"time"

	"github.com/docent-go/docent/zktest"
)

// BenchmarkRoundTrip measures one read at a time over a raw connection, and so
// what the server itself costs.
func BenchmarkRoundTrip(b *testing.B) {
	srv := zktest.NewServer(b, zktest.WithLogSize(0))
	run := func(b *testing.B, c *raw) {
		b.Helper()
		if err := c.handshake(0, 30_000, 0, nil16()); err != nil {
			b.Fatal(err)
		}
		p := body("/", false)
		b.ReportAllocs()
		for b.Loop() {
			if _, _, err := c.call(3, p); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("memory", func(b *testing.B) {
		nc, err := srv.Client("bench").Dial("", "", time.Second)
		if err != nil {
			b.Fatal(err)
		}
		run(b, &raw{Conn: nc})
	})
	b.Run("tcp", func(b *testing.B) {
		run(b, dialRaw(b, srv.Addr()))
	})
}
