package link_test

import (
	"bytes"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/docent-go/docent/bench/internal/link"
)

// echo says again what it hears, until the test ends.
func echo(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(c, c)
				_ = c.Close()
			}()
		}
	}()
	return listener.Addr().String()
}

func dialed(t *testing.T, roundTrip time.Duration) net.Conn {
	t.Helper()
	l, err := link.Start(t.Context(), echo(t), roundTrip)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	c, err := net.Dial("tcp", l.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// TestRoundTrip: no answer is early. How late one is, the machine says.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	const roundTrip = 2 * time.Millisecond
	c := dialed(t, roundTrip)
	var took []time.Duration
	for range 20 {
		at := time.Now()
		if _, err := c.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		took = append(took, time.Since(at))
	}
	slices.Sort(took)
	if took[0] < roundTrip {
		t.Errorf("a round trip in %v, want at least %v", took[0], roundTrip)
	}
	t.Logf("round trips of %v to %v, half of them in %v", took[0], took[len(took)-1], took[len(took)/2])
}

// TestOrder: what is in flight together arrives in order, and is late together.
func TestOrder(t *testing.T) {
	t.Parallel()
	c := dialed(t, 50*time.Millisecond)
	want := make([]byte, 1<<20)
	for i := range want {
		want[i] = byte(i * 31 >> 3)
	}
	at := time.Now()
	go func() {
		for part := range slices.Chunk(want, 1000) {
			if _, err := c.Write(part); err != nil {
				return
			}
		}
	}()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(c, got); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("the bytes came in another order")
	}
	if took := time.Since(at); took > 10*time.Second {
		t.Errorf("the parts waited for each other: %v", took)
	}
}

func TestClose(t *testing.T) {
	t.Parallel()
	l, err := link.Start(t.Context(), echo(t), time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", l.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	l.Close()
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("the connection lives")
	}
	if c, err := net.Dial("tcp", l.Addr()); err == nil {
		_ = c.Close()
		t.Error("the link still listens")
	}
}
