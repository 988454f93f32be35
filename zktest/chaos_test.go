package zktest_test

import (
	"fmt"
	"hash/fnv"
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
		switch r.IntN(4) {
		case 0:
			_, _ = conn.Create("/d/n", nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
		case 1:
			_, _, _, _ = conn.ChildrenW("/d")
		case 2:
			_, _, _, _ = conn.GetW("/d")
		case 3:
			_, _ = conn.Set("/d", nil, -1)
		}
		time.Sleep(time.Duration(r.Int64N(int64(2 * time.Second))))
	}
}

// disturb breaks the network of one client at a time, often for longer than a
// session lives.
func disturb(srv *zktest.Server, r *rand.Rand, clients int) {
	for range 8 {
		time.Sleep(time.Duration(r.Int64N(int64(9 * time.Second))))
		link := srv.Client(fmt.Sprint("c", r.IntN(clients)))
		switch r.IntN(4) {
		case 0:
			link.Partition()
		case 1:
			link.PartitionReplies()
		case 2:
			link.Freeze()
		case 3:
			link.Cut()
		}
		time.Sleep(time.Duration(r.Int64N(int64(20 * time.Second))))
		link.Heal()
		link.Thaw()
	}
}

// chaos returns a hash of all the server saw and how many sessions it ended.
func chaos(t *testing.T, seed uint64) (trace uint64, expired int) {
	t.Helper()
	const clients = 3
	sum := fnv.New64a()
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.NewServer(t, zktest.WithSeed(seed), zktest.WithTick(time.Second),
			zktest.WithLatency(20*time.Microsecond, 2*time.Millisecond))
		srv.OnRequest(func(r zktest.Request) { _, _ = fmt.Fprintln(sum, r) })
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
		wg.Go(func() { disturb(srv, rand.New(rand.NewPCG(seed, clients)), clients) })
		wg.Wait()
		expired = srv.ExpiredCount()
	})
	return sum.Sum64(), expired
}

// TestSameSeedSameTraceUnderChaos repeats runs with partitions and expired
// sessions.
func TestSameSeedSameTraceUnderChaos(t *testing.T) {
	t.Parallel()
	total := 0
	for seed := range uint64(20) {
		first, expired := chaos(t, seed)
		if again, _ := chaos(t, seed); again != first {
			t.Errorf("seed %d: trace %x, then %x", seed, first, again)
		}
		total += expired
	}
	if total < 10 {
		t.Errorf("%d sessions expired: the chaos is too tame", total)
	}
}
