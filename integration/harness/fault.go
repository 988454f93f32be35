package harness

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

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

// applyCuts makes the node's packet filter what cuts says. A stopped node has no
// filter; it gets one when it starts.
func (n *Node) applyCuts(ctx context.Context) error {
	n.control.Lock()
	defer n.control.Unlock()
	pid, err := n.pid(ctx)
	if err != nil {
		return err
	}
	if pid == 0 {
		return nil
	}
	if _, err := n.inside(ctx, pid, n.filter(), "iptables-restore", "--table", "filter"); err != nil {
		return fmt.Errorf("change the packet filter of node %d: %w", n.ID(), err)
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
	for _, port := range []int{2181, 2281} {
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
		return "", fmt.Errorf("node %d does not run", n.ID())
	}
	script := fmt.Sprintf("exec 3<>/dev/tcp/127.0.0.1/%d && printf %%s %q >&3 && cat <&3", 2181, word)
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
	state, err := n.server.State(ctx)
	if err != nil {
		return 0, fmt.Errorf("state of node %d: %w", n.ID(), err)
	}
	return state.Pid, nil
}
