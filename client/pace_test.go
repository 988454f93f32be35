package client_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/zktest"
)

// dials counts what a crowd of clients dials.
type dials struct {
	mu   sync.Mutex
	down bool
	at   []time.Time
}

func (d *dials) through(link *zktest.ClientLink) client.Option {
	return client.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
		d.mu.Lock()
		d.at = append(d.at, time.Now())
		down := d.down
		d.mu.Unlock()
		if down {
			return nil, errors.New("no server listens")
		}
		return link.DialContext(ctx, network, address)
	})
}

func (d *dials) within(begun time.Time, limit time.Duration) (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, at := range d.at {
		if since := at.Sub(begun); since >= 0 && since < limit {
			n++
		}
	}
	return n
}

// When all servers go at once, their clients do not dial them all at once: each
// dials one, and the rest is spread.
func TestNoStormOfDials(t *testing.T) {
	t.Parallel()
	const crowd = 100
	for _, ended := range []bool{false, true} { // their sessions too
		t.Run(fmt.Sprint("sessions end: ", ended), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				var d dials
				for i := range crowd {
					link := r.Srv.Client(fmt.Sprint(i))
					_, err := r.Open("a:1,b:1,c:1", link.Name(), client.WithSessionTimeout(15*time.Second), d.through(link))
					r.Check(err)
				}
				time.Sleep(time.Minute)
				begun := time.Now()
				if ended {
					for _, s := range r.Srv.Sessions() {
						r.Srv.ExpireSession(s.ID)
					}
				} else {
					d.mu.Lock()
					d.down = true
					d.mu.Unlock()
					r.Srv.CutAll()
				}
				time.Sleep(time.Minute)
				if n := d.within(begun, time.Hour); n < crowd {
					t.Fatalf("%d dials: nothing to show", n)
				}
				if n := d.within(begun, 100*time.Millisecond); n > 150 {
					t.Errorf("%d dials within 0.1 s", n)
				}
				if n := d.within(begun, time.Second); n > 600 {
					t.Errorf("%d dials within 1 s", n)
				}
				if n := d.within(begun.Add(30*time.Second), 30*time.Second); !ended && n > crowd*30 {
					t.Errorf("%d dials in the second half of a minute", n)
				}
			})
		})
	}
}

// crew is an ensemble with clients of its own in a bubble of virtual time.
type crew struct {
	*rig
	e *zktest.Ensemble
}

func ensemble(t *testing.T, f func(crew), opts ...zktest.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		opts = append([]zktest.Option{zktest.WithLatency(50*time.Microsecond, time.Millisecond)}, opts...)
		f(crew{&rig{&testrig.Rig{T: t, Ctx: ctx}}, zktest.NewEnsemble(t, 3, opts...)})
	})
}

// join connects to all members through the link of that name.
func (r crew) join(name string, opts ...client.Option) *client.Client {
	r.Helper()
	return testrig.Connect(r.Ctx, r.T, "zk1,zk2,zk3", r.e.Client(name).DialContext, opts...)
}

// The loss of one server of three is no matter: its clients are on another one
// at once, without a look at the first.
func TestOneServerLost(t *testing.T) {
	t.Parallel()
	ensemble(t, func(r crew) {
		const crowd = 30
		var mu sync.Mutex
		var next [crowd]string // what is dialed first after the loss
		var clients [crowd]*client.Client
		var sessions [crowd]*client.Session
		for i := range crowd {
			link := r.e.Client(fmt.Sprint(i))
			clients[i] = r.join(link.Name(), client.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
				mu.Lock()
				if next[i] == "" {
					next[i] = address
				}
				mu.Unlock()
				return link.DialContext(ctx, network, address)
			}))
			sessions[i] = r.Session(clients[i])
		}
		time.Sleep(time.Minute)
		lead, err := r.e.AwaitLeader(r.Ctx)
		r.Check(err)
		lost := r.e.Server(1 + lead.ID()%3)
		were := lost.ConnCount()
		mu.Lock()
		clear(next[:])
		mu.Unlock()
		lost.Stop()
		time.Sleep(100 * time.Millisecond)
		moved := 0
		for i, c := range clients {
			if c.State() != client.Connected || sessions[i].Err() != nil {
				t.Errorf("client %d: %v, %v", i, c.State(), sessions[i].Err())
			}
			mu.Lock()
			switch next[i] {
			case "":
			case lost.Host() + ":2181":
				t.Errorf("client %d dialed the server that it had lost", i)
			default:
				moved++
			}
			mu.Unlock()
		}
		if moved != were || were == 0 {
			t.Errorf("%d clients moved, %d were there", moved, were)
		}
	})
}

// While no server answers, a client without a session asks for one less and less
// often. All the sessions that it asked for are made when the leader comes back.
func TestFewSessionsAreAskedForInAnOutage(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		time.Sleep(time.Minute)
		r.Srv.Freeze()
		time.Sleep(10 * time.Minute)
		r.Srv.Thaw()
		begun := time.Now()
		r.Session(c)
		if took := time.Since(begun); took > 2*time.Second {
			t.Errorf("back after %v", took)
		}
		time.Sleep(100 * time.Millisecond)
		if n := len(r.Srv.Sessions()); n > 40 {
			t.Errorf("%d sessions", n)
		}
	})
}
