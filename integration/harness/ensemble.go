package harness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/testcontainers/testcontainers-go"
	tclog "github.com/testcontainers/testcontainers-go/log"

	"github.com/docent-go/docent/integration/zkcontainer"
)

// Ensemble is a set of servers that belong together. Its methods are safe for
// concurrent use.
type Ensemble struct {
	servers *zkcontainer.Ensemble
	nodes   []*Node
}

// StartServer starts one standalone server and returns when it serves clients.
// It ends the test when it cannot. ctx bounds the start only.
func StartServer(ctx context.Context, t testing.TB, opts ...Option) *Node {
	t.Helper()
	return StartEnsemble(ctx, t, 1, opts...).Node(1)
}

// StartEnsemble starts n servers and returns when one leads and the others follow.
// One server is standalone. It ends the test when it cannot. ctx bounds the start
// only; the servers live until the test ends.
func StartEnsemble(ctx context.Context, t testing.TB, n int, opts ...Option) *Ensemble {
	t.Helper()
	if n < 1 || n > 9 {
		t.Fatalf("an ensemble has 1 to 9 servers, not %d", n)
	}
	cfg := newConfig(opts)
	needImage(ctx, t, cfg.image)
	servers, err := zkcontainer.RunEnsemble(ctx, cfg.image, n, append(cfg.opts,
		zkcontainer.WithHost("127.0.0.1"),
		testcontainers.WithLabels(labels(t)),
		testcontainers.WithLogger(tclog.NewNoopLogger()))...)
	e := &Ensemble{servers: servers}
	if servers != nil {
		cleanup(ctx, t, "clean up", e.end(t))
		for _, s := range servers.Members() {
			e.nodes = append(e.nodes, &Node{server: s})
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// end is what is to be done at the end of the test.
func (e *Ensemble) end(t testing.TB) func(context.Context) error {
	t.Helper()
	return func(ctx context.Context) error {
		for _, n := range e.nodes {
			n.printLog(ctx, t)
		}
		return e.servers.Terminate(ctx)
	}
}

// Nodes returns all nodes in the order of their ids.
func (e *Ensemble) Nodes() []*Node { return slices.Clone(e.nodes) }

// Node returns the node with this id, counted from 1. It panics when there is none.
func (e *Ensemble) Node(id int) *Node { return e.nodes[id-1] }

// Addrs returns the client addresses of all nodes in the order of their ids.
func (e *Ensemble) Addrs() []string { return e.servers.Servers() }

// ConnectString returns the client addresses joined by commas, as ZooKeeper's
// clients take them.
func (e *Ensemble) ConnectString() string { return strings.Join(e.Addrs(), ",") }

// Leader returns the node that says it leads or stands alone, waiting until there is
// one. With a deposed leader that has not noticed there may be two that say so; the
// first by id is returned. The error when ctx ends says what every node answered last.
func (e *Ensemble) Leader(ctx context.Context) (*Node, error) {
	return zkcontainer.Await(ctx, func(ctx context.Context) (*Node, error) {
		var said []string
		for _, n := range e.nodes {
			role, err := n.Role(ctx)
			if role == Leader || role == Standalone {
				return n, nil
			}
			said = append(said, describe(n, role, err))
		}
		return nil, fmt.Errorf("no leader: %s", strings.Join(said, "; "))
	})
}

// Followers returns the nodes that say they follow, without waiting.
func (e *Ensemble) Followers(ctx context.Context) []*Node {
	var followers []*Node
	for _, n := range e.nodes {
		if role, err := n.Role(ctx); err == nil && role == Follower {
			followers = append(followers, n)
		}
	}
	return followers
}

// AwaitServing waits until one of these nodes leads and every other follows, and
// returns the leader. Without arguments it waits for all nodes; name those that are
// up when some are stopped or cut off.
func (e *Ensemble) AwaitServing(ctx context.Context, nodes ...*Node) (*Node, error) {
	if len(nodes) == 0 {
		nodes = e.nodes
	}
	return zkcontainer.Await(ctx, func(ctx context.Context) (*Node, error) {
		var leader *Node
		var said []string
		ready := true
		for _, n := range nodes {
			role, err := n.Role(ctx)
			said = append(said, describe(n, role, err))
			switch {
			case role == Follower:
			case (role == Leader || role == Standalone) && leader == nil:
				leader = n
			default:
				ready = false
			}
		}
		if !ready || leader == nil {
			return nil, fmt.Errorf("not all serving: %s", strings.Join(said, "; "))
		}
		return leader, nil
	})
}

// Heal ends every fault that leaves the servers running: partitions, cuts from
// clients, pauses. It tries all nodes and returns all errors.
func (e *Ensemble) Heal(ctx context.Context) error {
	return e.each(func(n *Node) error {
		return errors.Join(n.Unpause(ctx), n.Heal(ctx), n.RestoreClients(ctx))
	})
}

// each runs f for all nodes at the same time and returns all errors.
func (e *Ensemble) each(f func(*Node) error) error {
	errs := make([]error, len(e.nodes))
	var group sync.WaitGroup
	for i, n := range e.nodes {
		group.Go(func() { errs[i] = f(n) })
	}
	group.Wait()
	return errors.Join(errs...)
}

func describe(n *Node, role Role, err error) string {
	if err != nil {
		return fmt.Sprintf("node %d: %v", n.ID(), err)
	}
	return fmt.Sprintf("node %d: %s", n.ID(), role)
}
