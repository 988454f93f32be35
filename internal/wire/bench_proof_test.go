package wire_test

import (
	"testing"
	"time"
)

// BenchmarkProof is what the lease asks of the wire.
func BenchmarkProof(b *testing.B) {
	l := answered(b, body("data", make([]byte, 68)))
	b.ReportAllocs()
	for b.Loop() {
		if p, timeout := l.Proof(); p.Sent.At.IsZero() || timeout < time.Second {
			b.Fatal(p)
		}
	}
}
