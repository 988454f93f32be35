package docs_test

import (
	"errors"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/barrier"
	"github.com/docent-go/docent/recipes/nodes"
	"github.com/docent-go/docent/recipes/shared"
	"github.com/docent-go/docent/zktest"
)

// enter makes one member of a double barrier stand and returns the error of another's
// Enter, whose barrier is for count members.
func (h *hour) enter(count int) error {
	first, err := barrier.NewDistributedDoubleBarrier(h.client("a"), "/start", 3)
	h.check(err)
	go func() { _, _ = first.Enter(h.ctx) }()
	time.Sleep(time.Second)
	second, err := barrier.NewDistributedDoubleBarrier(h.client("b"), "/start", count)
	h.check(err)
	_, err = second.Enter(h.within(time.Second))
	return err
}

// laterOn has errors that are met with the other recipes.
var laterOn = []mistake{
	{"node of another session", func(h *hour) error {
		_, err := h.client("a").Create(h.ctx, "/services/api", nil, client.Ephemeral(), client.WithParents())
		h.check(err)
		n, err := nodes.NewPersistentNode(h.client("b"), nodes.Ephemeral, "/services/api", nil)
		h.check(err)
		return n.Start(h.within(time.Second))
	}, "nodes: /services/api is foreign: the node of session 0x* stands at the path: when it is deleted this one is made; TakeOver replaces it: context deadline exceeded"},
	{"node that is not started", func(h *hour) error {
		n, err := nodes.NewPersistentNode(h.client("a"), nodes.Ephemeral, "/services/api", nil)
		h.check(err)
		return n.Wait(h.within(time.Second))
	}, "nodes: /services/api is absent: call Start first: context deadline exceeded"},
	{"node of another recipe", func(h *hour) error {
		h.check(h.srv.Create("/orders", []byte("12345")))
		n, err := shared.NewDistributedAtomicLong(h.client("a"), "/orders")
		h.check(err)
		_, err = n.Increment(h.ctx)
		return err
	}, "client: add /orders: shared: atomic long: the node /orders holds 5 bytes, not the 8 bytes of this number; if it holds nothing of use, delete it"},
	{"counter at its limit", func(h *hour) error {
		h.check(h.srv.Create("/orders", []byte("\x7f\xff\xff\xff\xff\xff\xff\xff")))
		n, err := shared.NewDistributedAtomicLong(h.client("a"), "/orders")
		h.check(err)
		_, err = n.Increment(h.ctx)
		return err
	}, "client: add /orders: the sum does not fit into the number: it is 9223372036854775807, too close to the limit to add 1; set a new value, or pass WithWrapping"},
	{"barrier, alone", func(h *hour) error { return h.enter(3) }, "barrier: 2 of 3 members stood at /start when this one came; View names the members that stand now: context deadline exceeded"},
	{"barrier, other number", func(h *hour) error { return h.enter(2) }, "barrier: /start is for 2 members here and for 3 in *; give all members the same number"},
	{"nobody campaigns", func(h *hour) error {
		latch, err := recipes.NewLeaderLatch(h.client("a"), "/leader")
		h.check(err)
		_, err = latch.Leader(h.ctx)
		return err
	}, "recipes: find the leader of /leader: no such participant stands in line: the line is empty"},
	{"hand over to nobody", func(h *hour) error {
		latch, err := recipes.NewLeaderLatch(h.client("a"), "/leader", recipes.WithID("a"))
		h.check(err)
		term, err := latch.Campaign(h.ctx)
		h.check(err)
		return errors.Join(term.HandOver(h.ctx, "b"), term.Release(h.ctx))
	}, `recipes: hand over /leader: no such participant stands in line: "b"; Participants lists the participants that do`},
	{"watch on an old server", func(h *hour) error {
		h.srv = zktest.NewServer(h.T, zktest.WithVersion(zktest.ZooKeeper35), zktest.WithLatency(50*time.Microsecond, time.Millisecond))
		_, err := h.client("a").Watch(h.ctx, "/orders")
		return err
	}, "client: watch /orders: not supported by these servers: persistent watches (Apache ZooKeeper 3.6.0 or later): zk: not implemented or not enabled on this server (code -6)"},
	{"TTL, switched off", func(h *hour) error {
		_, err := h.client("a").Create(h.ctx, "/cache", nil, client.TTL(time.Hour))
		return err
	}, "client: create /cache: not supported by these servers: TTL nodes (Apache ZooKeeper 3.5.3 or later with extendedTypesEnabled=true): zk: not implemented or not enabled on this server (code -6)"},
}

func TestLaterOn(t *testing.T) {
	t.Parallel()
	for _, m := range laterOn {
		m.test(t)
	}
}
