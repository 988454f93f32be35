package client_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/zktest"
)

// BenchmarkHolding is a part in the lease, taken and given back, beside so many others of
// the session. While the newest proof is good no request is sent.
func BenchmarkHolding(b *testing.B) {
	for _, others := range []int{0, 64, 1000} {
		b.Run(fmt.Sprintf("others=%d", others), func(b *testing.B) {
			s, take := holdings(b)
			for range others {
				h := take()
				defer h.Done()
			}
			if s.Err() != nil {
				b.Fatal(s.Err())
			}
			b.ReportAllocs()
			for b.Loop() {
				take().Done()
			}
		})
	}
}

// BenchmarkProof is what asking a hold costs: the newest proof, the clocks, and the time
// that is left.
func BenchmarkProof(b *testing.B) {
	_, take := holdings(b)
	h := take()
	defer h.Done()
	b.Run("deadline", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if h.Deadline().IsZero() {
				b.Fatal("no deadline")
			}
		}
	})
	b.Run("err", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := h.Err(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// holdings returns a session and a function that holds its one node once more.
func holdings(b *testing.B) (*client.Session, func() *held) {
	b.Helper()
	srv := zktest.NewServer(b, zktest.WithLogSize(0), zktest.WithSessionTimeouts(time.Second, 2*time.Minute))
	c, err := client.Connect(b.Context(), "zk", client.WithDialer(srv.Client("docent").DialContext), testrig.Quiet(),
		client.WithSessionTimeout(time.Minute))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.CloseContext(context.WithoutCancel(b.Context())) }) // the benchmark is over
	s, err := c.Session(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	if _, err := s.Create(b.Context(), "/held", nil, client.Ephemeral()); err != nil {
		b.Fatal(err)
	}
	return s, func() *held {
		h, err := inner.Hold(b.Context(), s, func(err error) { slog.Error("lost", "reason", err) }, "/held")
		if err != nil {
			b.Fatal(err)
		}
		return &held{Holding: h}
	}
}
