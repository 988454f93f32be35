package harness

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/docent-go/docent/integration/zkcontainer"
)

// Node is one ZooKeeper server. Its methods are safe for concurrent use; faults on
// one node are applied one after the other.
type Node struct {
	server *zkcontainer.Container

	control sync.Mutex // held over a whole change of the packet filter

	mu   sync.Mutex // guards what follows; never held across I/O
	cuts cuts
}

// ID is the server's number, counted from 1.
func (n *Node) ID() int { return n.server.ID() }

// Addr is where clients reach the server; it is the same for the node's whole life.
func (n *Node) Addr() string { return n.server.Addr() }

// IP is the server's address in the container network; it too never changes. It is empty
// for a server on its own.
func (n *Node) IP() string {
	if ip := n.server.PeerAddr(); ip.IsValid() {
		return ip.String()
	}
	return ""
}

// Kill ends the server with SIGKILL and returns when it is gone. What it had
// acknowledged stays on its disk.
func (n *Node) Kill(ctx context.Context) error { return n.server.Kill(ctx) }

// Stop ends the server with SIGTERM, with SIGKILL if it takes longer than ten
// seconds, and returns when it is gone. To stop a stopped node does nothing.
func (n *Node) Stop(ctx context.Context) error { return n.server.Stop(ctx, nil) }

// Start starts a killed or stopped server with its old data at its old address,
// and returns when it answers. In an ensemble that does not mean that it serves:
// see [Ensemble.AwaitServing]. Partitions and cuts still in force hold from its
// first packet.
func (n *Node) Start(ctx context.Context) error {
	if !n.clientsCut() {
		return n.server.Start(ctx)
	}
	if err := n.server.StartHeld(ctx, n.applyCuts); err != nil {
		return err
	}
	_, err := n.AwaitRole(ctx)
	return err
}

// Restart is [Node.Stop] followed by [Node.Start].
func (n *Node) Restart(ctx context.Context) error {
	if err := n.Stop(ctx); err != nil {
		return err
	}
	return n.Start(ctx)
}

// Pause freezes the server's processes. Its connections stay open and are silent,
// new ones are accepted by the kernel and get no answer.
func (n *Node) Pause(ctx context.Context) error { return n.server.Pause(ctx) }

// Unpause lets a paused server go on. A node that is not paused is left alone.
func (n *Node) Unpause(ctx context.Context) error { return n.server.Unpause(ctx) }

// Partition takes the node out of the network of its peers, both ways, until [Node.Heal].
// Clients still reach it.
func (n *Node) Partition(ctx context.Context) error { return n.server.Partition(ctx) }

// Heal ends the node's partition.
func (n *Node) Heal(ctx context.Context) error { return n.server.Heal(ctx) }

// Logs returns the last lines of the server's log.
func (n *Node) Logs(ctx context.Context, lines int) (string, error) {
	return n.server.LastLogs(ctx, lines)
}

// logLines is how much of each server's log a failed test prints.
const logLines = 150

// printLog prints the log of the server if the test failed.
func (n *Node) printLog(ctx context.Context, t testing.TB) {
	t.Helper()
	if !t.Failed() {
		return
	}
	text, err := n.Logs(ctx, logLines)
	t.Logf("log of node %d (%s, last %d lines): %s", n.ID(), n.Addr(), logLines, cmp.Or(text, fmt.Sprint(err)))
}
