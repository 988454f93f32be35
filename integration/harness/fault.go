package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// cuts is what a node's packet filter drops.
type cuts struct {
	fromClients bool
	toClients   bool
	peers       map[*Node]bool
}

// Partition drops every packet between this node and the given ones, both ways,
// until [Node.Heal]; without arguments from all others. Clients still reach the
// node. When it fails the filter is as it was, and the next change of the node's
// faults tries again.
func (n *Node) Partition(ctx context.Context, from ...*Node) error {
	if len(from) == 0 {
		from = n.ensemble.nodes
	}
	n.mu.Lock()
	for _, peer := range from {
		if peer != n {
			n.cuts.peers[peer] = true
		}
	}
	n.mu.Unlock()
	return n.applyCuts(ctx)
}

// Heal ends every partition that this node is a side of, whichever side made it.
func (n *Node) Heal(ctx context.Context) error {
	var errs []error
	for _, other := range n.ensemble.nodes {
		other.mu.Lock()
		changed := false
		for peer := range other.cuts.peers {
			if other == n || peer == n {
				delete(other.cuts.peers, peer)
				changed = true
			}
		}
		other.mu.Unlock()
		if changed {
			errs = append(errs, other.applyCuts(ctx))
		}
	}
	return errors.Join(errs...)
}

// CutClients drops every packet between the node and its clients, both ways, until
// [Node.RestoreClients]. Its peers still reach it.
func (n *Node) CutClients(ctx context.Context) error { return n.setClientsCut(ctx, true, true) }

// CutFromClients drops only what clients send to the node, until
// [Node.RestoreClients].
func (n *Node) CutFromClients(ctx context.Context) error { return n.setClientsCut(ctx, true, false) }

// CutToClients drops only what the node sends to clients, until
// [Node.RestoreClients].
func (n *Node) CutToClients(ctx context.Context) error { return n.setClientsCut(ctx, false, true) }

// RestoreClients ends all three.
func (n *Node) RestoreClients(ctx context.Context) error { return n.setClientsCut(ctx, false, false) }

func (n *Node) setClientsCut(ctx context.Context, from, to bool) error {
	n.mu.Lock()
	n.cuts.fromClients, n.cuts.toClients = from, to
	n.mu.Unlock()
	return n.applyCuts(ctx)
}

func (n *Node) clientsCut() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.cuts.fromClients || n.cuts.toClients
}

func (n *Node) anyCut() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.cuts.fromClients || n.cuts.toClients || len(n.cuts.peers) > 0
}

// forget drops the wish for any cut; the filter follows with applyCuts.
func (n *Node) forget() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cuts.fromClients, n.cuts.toClients = false, false
	clear(n.cuts.peers)
}

// applyCuts makes the node's packet filter what cuts says. A stopped node has no
// filter; it gets one when it starts.
func (n *Node) applyCuts(ctx context.Context) error {
	n.control.Lock()
	defer n.control.Unlock()
	return n.applyCutsLocked(ctx)
}

func (n *Node) applyCutsLocked(ctx context.Context) error {
	pid, err := n.pid(ctx)
	if err != nil {
		return err
	}
	if pid == 0 {
		return nil
	}
	if _, err := n.inside(ctx, pid, n.filter(), "iptables-restore", "--table", "filter"); err != nil {
		return fmt.Errorf("change the packet filter of node %d: %w", n.id, err)
	}
	return nil
}

// filter is the node's whole packet filter, for iptables-restore, which replaces the
// old one in one step.
func (n *Node) filter() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var b strings.Builder
	b.WriteString("*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n")
	for peer := range n.cuts.peers {
		fmt.Fprintf(&b, "-A INPUT -s %s -j DROP\n-A OUTPUT -d %s -j DROP\n", peer.ip, peer.ip)
	}
	for _, port := range []int{clientPort, securePort} {
		if n.cuts.fromClients {
			fmt.Fprintf(&b, "-A INPUT ! -i lo -p tcp --dport %d -j DROP\n", port)
		}
		if n.cuts.toClients {
			fmt.Fprintf(&b, "-A OUTPUT ! -o lo -p tcp --sport %d -j DROP\n", port)
		}
	}
	b.WriteString("COMMIT\n")
	return b.String()
}

// askFromInside speaks to the server over its own loopback device.
func (n *Node) askFromInside(ctx context.Context, word string) (string, error) {
	pid, err := n.pid(ctx)
	if err != nil {
		return "", err
	}
	if pid == 0 {
		return "", fmt.Errorf("node %d does not run", n.id)
	}
	script := fmt.Sprintf("exec 3<>/dev/tcp/127.0.0.1/%d && printf %%s %q >&3 && cat <&3", clientPort, word)
	return n.inside(ctx, pid, "", "bash", "-c", script)
}

// inside runs a command of the host in the node's network namespace.
func (n *Node) inside(ctx context.Context, pid int, input, name string, args ...string) (string, error) {
	all := append([]string{"--target", strconv.Itoa(pid), "--net", name}, args...)
	cmd := exec.CommandContext(ctx, "nsenter", all...)
	var out, said bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &out, &said
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s in the network namespace of process %d: %w: %s (needs root on the engine's own "+
			"machine, and apt-get install util-linux iptables)", name, pid, err, strings.TrimSpace(said.String()))
	}
	return out.String(), nil
}

// pid is the container's first process as the host counts, 0 when it does not run.
func (n *Node) pid(ctx context.Context) (int, error) {
	state, err := n.container.State(ctx)
	if err != nil {
		return 0, fmt.Errorf("state of node %d: %w", n.id, err)
	}
	return state.Pid, nil
}
