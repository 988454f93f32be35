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

// cuts is what a node's packet filter drops.
type cuts struct {
	fromClients bool
	toClients   bool
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
