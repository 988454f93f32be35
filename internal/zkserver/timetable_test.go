package zkserver_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/zktest"
)

// TestNothingArrivesTogether lets many connections send and be answered within
// a few microseconds: every frame arrives at an instant of its own.
func TestNothingArrivesTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.NewServer(t, zktest.WithSeed(1), zktest.WithLatency(time.Microsecond, 20*time.Microsecond))
		const clients, requests = 16, 20
		at := map[time.Time]bool{}
		srv.OnRequest(func(r zktest.Request) { at[r.Time] = true })
		var conns []*raw
		for i := range clients {
			conns = append(conns, memory(t, srv.Client(string(rune('a'+i)))))
		}
		srv.Freeze()
		for _, c := range conns {
			for range requests {
				if _, err := c.send(3, body("/", false)); err != nil {
					t.Fatal(err)
				}
			}
		}
		srv.Thaw() // all of it leaves at one instant
		answered := make(chan time.Time, clients*requests)
		for _, c := range conns {
			go func() {
				for range requests {
					if _, err := c.receive(); err != nil {
						t.Error(err)
					}
					answered <- time.Now()
				}
			}()
		}
		var received []time.Time
		for range clients * requests {
			received = append(received, <-answered)
		}
		synctest.Wait() // for the observers
		for _, t := range received {
			at[t] = true
		}
		if want := clients + 2*clients*requests; len(at) != want {
			t.Errorf("%d frames arrived at %d instants", want, len(at))
		}
	})
}

// TestHungHandshakesAreAnsweredApart lets many clients in at once.
func TestHungHandshakesAreAnsweredApart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.NewServer(t, zktest.WithLatency(time.Microsecond, 20*time.Microsecond))
		at := map[time.Time]bool{}
		srv.OnRequest(func(r zktest.Request) { at[r.Time] = true })
		srv.HangHandshake()
		const clients = 16
		done := make(chan error, clients)
		for i := range clients {
			c := memoryConn(t, srv.Client(string(rune('a'+i))))
			go func() { done <- c.handshake(0, 30_000, 0, nil16()) }()
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if len(at) > 0 {
			t.Error("a server that hangs has answered")
		}
		srv.Accept()
		for range clients {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		synctest.Wait()
		if len(at) != clients {
			t.Errorf("%d handshakes were answered at %d instants", clients, len(at))
		}
	})
}
