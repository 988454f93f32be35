package peers_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/docent-go/docent/bench/internal/load"
	"github.com/docent-go/docent/bench/internal/peers"
	"github.com/docent-go/docent/zktest"
)

// patience is how long the test waits for goroutines that signal no end.
const patience = 20 * time.Second

// contended runs a peer until so many cycles have ended, and returns what was recorded.
func contended(t *testing.T, spec *load.Spec, cycles int) *load.Result {
	t.Helper()
	field, err := peers.Open(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	e := load.Start(t.Context(), spec, field)
	e.Open()
	e.Begin()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for limit := time.Now().Add(patience); e.Count() < cycles && time.Now().Before(limit); {
		<-tick.C
	}
	r := e.End()
	e.Close()
	e.Quit(t.Context())
	return r
}

// TestQueues: of each kind that queues, Docent and the floor of queues let in as many as
// they should, whether the contenders share a session or not.
func TestQueues(t *testing.T) {
	t.Parallel()
	for _, sessions := range []int{1, 8} {
		for i, spec := range []load.Spec{
			{Kind: load.Mutex},
			{Kind: load.Multi},
			{Kind: load.Semaphore, Permits: 1, Limit: 1},
			{Kind: load.Semaphore, Permits: 1, Limit: 4},
		} {
			for _, peer := range []string{"docent", "rawho"} {
				t.Run(fmt.Sprintf("%s/%s of %d/%d sessions", peer, spec.Kind, spec.Limit, sessions), func(t *testing.T) {
					t.Parallel()
					const cycles = 64
					spec := spec // the other peer has its own
					srv := zktest.NewServer(t, zktest.WithListen("127.0.0.1:0"))
					spec.Peer, spec.Addrs, spec.Root, spec.Timeout = peer, []string{srv.Addr()}, fmt.Sprintf("/bench%d", i), patience
					spec.Contenders, spec.Sessions, spec.Locks = 8, sessions, 1
					r := contended(t, &spec, cycles)
					if r.Cycles < cycles || r.Overlaps != 0 || len(r.Errors) != 0 || !r.Witnessed {
						t.Errorf("%d cycles, %d overlaps, errors %v, witnessed %v", r.Cycles, r.Overlaps, r.Errors, r.Witnessed)
					}
					if one := spec.Limit < 2; (len(r.HandOver) > 0) != one {
						t.Errorf("%d hand-overs", len(r.HandOver))
					}
				})
			}
		}
	}
}

// TestNoFloor: there is no floor of a queue where contenders pass each other, nor where
// one of them takes several permits.
func TestNoFloor(t *testing.T) {
	t.Parallel()
	for _, spec := range []load.Spec{
		{Kind: load.ReadWrite, Locks: 1},
		{Kind: load.Counter, Locks: 1},
		{Kind: load.Semaphore, Locks: 1, Permits: 2, Limit: 4},
		{Kind: load.Mutex, Locks: 2},
	} {
		spec.Peer = "rawho"
		if _, err := peers.Open(t.Context(), &spec); !errors.Is(err, peers.ErrNoSuch) {
			t.Errorf("%+v: %v", spec, err)
		}
	}
}
