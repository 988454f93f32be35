package zkserver_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/zktest"
)

// simClient takes and gives up a queue lock, as a recipe would: it retries
// after lost connections and looks for its own node first.
type simClient struct {
	t       *testing.T
	name    string
	conn    *zk.Conn
	r       *rand.Rand
	holders *holders
}

// holders counts the clients that believe they hold the lock.
type holders struct {
	mu      sync.Mutex
	now     int
	most    int
	granted int
}

func (h *holders) enter() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now++
	h.granted++
	h.most = max(h.most, h.now)
}

func (h *holders) leave() {
	h.mu.Lock()
	h.now--
	h.mu.Unlock()
}

// pause waits a time of the client's own, so that no two act at one instant.
func (c *simClient) pause(d time.Duration) {
	time.Sleep(d/2 + time.Duration(c.r.Int64N(int64(d))))
}

// enqueue makes a node with a name of its own and finds it again after a lost
// reply.
func (c *simClient) enqueue(round int) string {
	prefix := fmt.Sprintf("%s-%d-", c.name, round)
	for {
		path, err := c.conn.Create("/lock/"+prefix, nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
		if err == nil {
			return path[len("/lock/"):]
		}
		c.pause(50 * time.Millisecond)
		for {
			kids, _, err := c.conn.Children("/lock")
			if err != nil {
				c.pause(50 * time.Millisecond)
				continue
			}
			i := slices.IndexFunc(kids, func(k string) bool { return len(k) > len(prefix) && k[:len(prefix)] == prefix })
			if i >= 0 {
				return kids[i]
			}
			break
		}
	}
}

func suffix(name string) string { return name[len(name)-10:] }

func (c *simClient) await(own string) {
	for {
		kids, _, err := c.conn.Children("/lock")
		if err != nil {
			c.pause(50 * time.Millisecond)
			continue
		}
		slices.SortFunc(kids, func(a, b string) int { return cmpStrings(suffix(a), suffix(b)) })
		i := slices.Index(kids, own)
		if i == 0 {
			return
		}
		if i < 0 {
			c.t.Errorf("%s lost its node %s", c.name, own)
			return
		}
		_, _, gone, err := c.conn.GetW("/lock/" + kids[i-1])
		if err == nil {
			<-gone
		}
		c.pause(time.Millisecond)
	}
}

func cmpStrings(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	default:
		return 0
	}
}

func (c *simClient) run(rounds int) {
	for round := range rounds {
		own := c.enqueue(round)
		c.await(own)
		c.holders.enter()
		c.pause(10 * time.Millisecond)
		c.holders.leave()
		for {
			err := c.conn.Delete("/lock/"+own, -1)
			if err == nil || errors.Is(err, zk.ErrNoNode) {
				break
			}
			c.pause(50 * time.Millisecond)
		}
	}
}

// simulate runs a fault schedule.
func simulate(t *testing.T, seed uint64, clients, rounds int) (tr *trace, h *holders) {
	t.Helper()
	tr, h = &trace{}, &holders{}
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.NewServer(t, zktest.WithSeed(seed), zktest.WithTick(time.Second),
			zktest.WithLatency(20*time.Microsecond, 2*time.Millisecond))
		srv.OnRequest(tr.observe)
		if err := srv.Create("/lock", nil); err != nil {
			t.Fatal(err)
		}
		srv.DropBefore(zktest.Match{Prob: 0.02})
		srv.LoseReply(zktest.Match{Prob: 0.02})
		var wg sync.WaitGroup
		for i := range clients {
			name := fmt.Sprintf("c%d", i)
			wg.Go(func() {
				r := rand.New(rand.NewPCG(seed, uint64(i)))
				time.Sleep(time.Duration(r.Int64N(int64(time.Millisecond))))
				conn, _ := connect(t, srv.Client(name), 20*time.Second)
				(&simClient{t: t, name: name, conn: conn, r: r, holders: h}).run(rounds)
			})
		}
		wg.Wait()
		if kids := srv.Children("/lock"); len(kids) > 0 {
			t.Errorf("left behind: %v", kids)
		}
	})
	return tr, h
}

func TestSameSeedSameTrace(t *testing.T) {
	t.Parallel()
	sameSeedSameTrace(t, func(t *testing.T, seed uint64) *trace {
		t.Helper()
		tr, h := simulate(t, seed, 3, 4)
		if h.most != 1 || h.granted != 12 {
			t.Errorf("seed %d: %d grants, up to %d at once", seed, h.granted, h.most)
		}
		return tr
	})
}
