package zkserver_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/zktest"
)

// wander does random things with a client and does not care how they end.
func wander(conn *zk.Conn, r *rand.Rand) {
	for range 60 {
		switch what := r.IntN(4); {
		case what == 0:
			_, _ = conn.Create("/d/n", nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
		case what == 1 && leaveWatches:
			_, _, _, _ = conn.ChildrenW("/d")
		case what == 1:
			_, _, _ = conn.Children("/d")
		case what == 2 && leaveWatches:
			_, _, _, _ = conn.GetW("/d")
		case what == 2:
			_, _, _ = conn.Get("/d")
		default:
			_, _ = conn.Set("/d", nil, -1)
		}
		time.Sleep(time.Duration(r.Int64N(int64(2 * time.Second))))
	}
}

// upsets are faults and what undoes them.
var upsets = []struct {
	name     string
	do, undo func(*zktest.Server, *zktest.ClientLink)
}{
	{"partition", func(_ *zktest.Server, l *zktest.ClientLink) { l.Partition() }, func(_ *zktest.Server, l *zktest.ClientLink) { l.Heal() }},
	{"replies", func(_ *zktest.Server, l *zktest.ClientLink) { l.PartitionReplies() }, func(_ *zktest.Server, l *zktest.ClientLink) { l.Heal() }},
	{"requests", func(_ *zktest.Server, l *zktest.ClientLink) { l.PartitionRequests() }, func(_ *zktest.Server, l *zktest.ClientLink) { l.Heal() }},
	{"freeze", func(_ *zktest.Server, l *zktest.ClientLink) { l.Freeze() }, func(_ *zktest.Server, l *zktest.ClientLink) { l.Thaw() }},
	{"pause", func(_ *zktest.Server, l *zktest.ClientLink) { l.Pause() }, func(_ *zktest.Server, l *zktest.ClientLink) { l.Resume() }},
	{"cut", func(_ *zktest.Server, l *zktest.ClientLink) { l.Cut() }, func(*zktest.Server, *zktest.ClientLink) {}},
	{"refuse", func(_ *zktest.Server, l *zktest.ClientLink) { l.Refuse(); l.Cut() }, func(_ *zktest.Server, l *zktest.ClientLink) { l.Accept() }},
	{"partition of all", func(s *zktest.Server, _ *zktest.ClientLink) { s.Partition() }, func(s *zktest.Server, _ *zktest.ClientLink) { s.Heal() }},
	{"frozen server", func(s *zktest.Server, _ *zktest.ClientLink) { s.Freeze() }, func(s *zktest.Server, _ *zktest.ClientLink) { s.Thaw() }},
	{"hung handshakes", func(s *zktest.Server, _ *zktest.ClientLink) { s.HangHandshake(); s.CutAll() }, func(s *zktest.Server, _ *zktest.ClientLink) { s.Accept() }},
	{"stop", func(s *zktest.Server, _ *zktest.ClientLink) { s.Stop() }, func(s *zktest.Server, _ *zktest.ClientLink) { s.Resume() }},
	{"new leader", func(s *zktest.Server, _ *zktest.ClientLink) { s.ChangeLeader() }, func(*zktest.Server, *zktest.ClientLink) {}},
	{"slow log", func(s *zktest.Server, _ *zktest.ClientLink) { s.SlowLog(700 * time.Millisecond) }, func(s *zktest.Server, _ *zktest.ClientLink) { s.SlowLog(0) }},
	{"held log", func(s *zktest.Server, _ *zktest.ClientLink) { s.HoldLog() }, func(s *zktest.Server, _ *zktest.ClientLink) { s.ReleaseLog() }},
	{"late events", func(s *zktest.Server, _ *zktest.ClientLink) { s.DelayEvents(time.Second) }, func(s *zktest.Server, _ *zktest.ClientLink) { s.DelayEvents(0) }},
	{"expire", func(s *zktest.Server, _ *zktest.ClientLink) { s.ExpireSession(oldest(s)) }, func(*zktest.Server, *zktest.ClientLink) {}},
	{"move", func(s *zktest.Server, _ *zktest.ClientLink) { s.MoveSession(oldest(s)) }, func(*zktest.Server, *zktest.ClientLink) {}},
}

// oldest returns the id of a session, or 0.
func oldest(s *zktest.Server) int64 {
	for _, ses := range s.Sessions() {
		return ses.ID
	}
	return 0
}

// disturb breaks the network of one client, or the server, one at a time and
// often for longer than a session lives.
func disturb(srv *zktest.Server, r *rand.Rand, clients int) {
	for range 12 {
		time.Sleep(time.Duration(r.Int64N(int64(6 * time.Second))))
		link := srv.Client(fmt.Sprint("c", r.IntN(clients)))
		upset := upsets[r.IntN(len(upsets))]
		upset.do(srv, link)
		time.Sleep(time.Duration(r.Int64N(int64(14 * time.Second))))
		upset.undo(srv, link)
	}
}

// chaos returns all the server saw and how many sessions it ended.
func chaos(t *testing.T, seed uint64) (tr *trace, expired int) {
	t.Helper()
	const clients = 3
	tr = &trace{}
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.NewServer(t, zktest.WithSeed(seed), zktest.WithTick(time.Second),
			zktest.WithLatency(20*time.Microsecond, 2*time.Millisecond))
		srv.OnRequest(tr.observe)
		if err := srv.Create("/d", nil); err != nil {
			t.Fatal(err)
		}
		srv.DropBefore(zktest.Match{Prob: 0.01})
		srv.LoseReply(zktest.Match{Prob: 0.01})
		var wg sync.WaitGroup
		for i := range clients {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(seed, uint64(i)))
				time.Sleep(time.Duration(r.Int64N(int64(time.Millisecond))))
				conn, _ := connect(t, srv.Client(fmt.Sprint("c", i)), 8*time.Second)
				wander(conn, r)
			})
		}
		wg.Go(func() {
			time.Sleep(time.Second) // let there be sessions
			disturb(srv, rand.New(rand.NewPCG(seed, clients)), clients)
		})
		wg.Wait()
		time.Sleep(time.Minute) // of peace: the end must not meet the last fault's consequences
		expired = srv.ExpiredCount()
	})
	return tr, expired
}

// TestSameSeedSameTraceUnderChaos repeats runs with every fault of a server
// and expired sessions.
func TestSameSeedSameTraceUnderChaos(t *testing.T) {
	t.Parallel()
	total := 0
	seeds := sameSeedSameTrace(t, func(t *testing.T, seed uint64) *trace {
		t.Helper()
		tr, expired := chaos(t, seed)
		total += expired
		return tr
	})
	if total < seeds*runsPerSeed/2 {
		t.Errorf("%d sessions expired: the chaos is too tame", total)
	}
}
