package harness

import (
	"context"
	_ "embed" // start.sh
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
)

//go:embed start.sh
var startScript []byte

const holdFile = "/docent/hold"

// Node is one ZooKeeper server. Its methods are safe for concurrent use; faults on
// one node are applied one after the other.
type Node struct {
	id       int
	ip       string
	port     int
	secure   int // the port for TLS, 0 if there is none
	docker   *client.Client
	ensemble *Ensemble

	control   sync.Mutex // held over a whole change of the container
	container testcontainers.Container

	mu   sync.Mutex // guards what follows; never held across I/O
	cuts cuts
}

func newNode(id int, ip string, docker *client.Client, e *Ensemble) *Node {
	return &Node{id: id, ip: ip, docker: docker, ensemble: e, cuts: cuts{peers: map[*Node]bool{}}}
}

// ID is the server's number, counted from 1.
func (n *Node) ID() int { return n.id }

// Addr is where clients reach the server; it is the same for the node's whole life.
func (n *Node) Addr() string { return "127.0.0.1:" + strconv.Itoa(n.port) }

// IP is the server's address in the container network; it too never changes.
func (n *Node) IP() string { return n.ip }

// Kill ends the server with SIGKILL and returns when it is gone. What it had
// acknowledged stays on its disk.
func (n *Node) Kill(ctx context.Context) error {
	n.control.Lock()
	defer n.control.Unlock()
	if _, err := n.docker.ContainerKill(ctx, n.container.GetContainerID(), client.ContainerKillOptions{Signal: "KILL"}); err != nil {
		return fmt.Errorf("kill node %d: %w", n.id, err)
	}
	gone := n.docker.ContainerWait(ctx, n.container.GetContainerID(), client.ContainerWaitOptions{})
	select {
	case <-gone.Result:
		return nil
	case err := <-gone.Error:
		return fmt.Errorf("kill node %d: wait for its end: %w", n.id, err)
	}
}

// Stop ends the server with SIGTERM, with SIGKILL if it takes longer than ten
// seconds, and returns when it is gone. To stop a stopped node does nothing.
func (n *Node) Stop(ctx context.Context) error {
	n.control.Lock()
	defer n.control.Unlock()
	return n.stop(ctx)
}

func (n *Node) stop(ctx context.Context) error {
	limit := 10
	if _, err := n.docker.ContainerStop(ctx, n.container.GetContainerID(), client.ContainerStopOptions{Timeout: &limit}); err != nil {
		return fmt.Errorf("stop node %d: %w", n.id, err)
	}
	return nil
}

// Start starts a killed or stopped server with its old data at its old address,
// and returns when it answers. In an ensemble that does not mean that it serves:
// see [Ensemble.AwaitServing]. Partitions and cuts still in force hold from its
// first packet.
func (n *Node) Start(ctx context.Context) error {
	n.control.Lock()
	defer n.control.Unlock()
	return n.start(ctx)
}

func (n *Node) start(ctx context.Context) error {
	held := n.anyCut()
	if held {
		if err := n.container.CopyToContainer(ctx, nil, holdFile, 0o644); err != nil {
			return fmt.Errorf("start node %d: hold it back: %w", n.id, err)
		}
	}
	if _, err := n.docker.ContainerStart(ctx, n.container.GetContainerID(), client.ContainerStartOptions{}); err != nil {
		return fmt.Errorf("start node %d: %w", n.id, err)
	}
	if held {
		if err := n.applyCutsLocked(ctx); err != nil {
			return fmt.Errorf("start node %d: %w", n.id, err)
		}
		code, out, err := n.container.Exec(ctx, []string{"rm", holdFile})
		if err == nil && code != 0 {
			said, _ := io.ReadAll(out)
			err = fmt.Errorf("rm ended with %d: %s", code, said)
		}
		if err != nil {
			return fmt.Errorf("start node %d: let it go: %w", n.id, err)
		}
	}
	if err := n.awaitAnswer(ctx); err != nil {
		return fmt.Errorf("start node %d: %w", n.id, err)
	}
	return nil
}

// Restart is [Node.Stop] followed by [Node.Start].
func (n *Node) Restart(ctx context.Context) error {
	n.control.Lock()
	defer n.control.Unlock()
	if err := n.stop(ctx); err != nil {
		return err
	}
	return n.start(ctx)
}

// Pause freezes the server's processes. Its connections stay open and are silent,
// new ones are accepted by the kernel and get no answer.
func (n *Node) Pause(ctx context.Context) error {
	n.control.Lock()
	defer n.control.Unlock()
	if _, err := n.docker.ContainerPause(ctx, n.container.GetContainerID(), client.ContainerPauseOptions{}); err != nil {
		return fmt.Errorf("pause node %d: %w", n.id, err)
	}
	return nil
}

// Unpause lets a paused server go on. A node that is not paused is left alone.
func (n *Node) Unpause(ctx context.Context) error {
	n.control.Lock()
	defer n.control.Unlock()
	state, err := n.container.State(ctx)
	if err != nil {
		return fmt.Errorf("unpause node %d: %w", n.id, err)
	}
	if !state.Paused {
		return nil
	}
	if _, err := n.docker.ContainerUnpause(ctx, n.container.GetContainerID(), client.ContainerUnpauseOptions{}); err != nil {
		return fmt.Errorf("unpause node %d: %w", n.id, err)
	}
	return nil
}

// Logs returns the last lines of the server's log.
func (n *Node) Logs(ctx context.Context, lines int) (string, error) {
	raw, err := n.docker.ContainerLogs(ctx, n.container.GetContainerID(), client.ContainerLogsOptions{
		ShowStdout: true, ShowStderr: true, Tail: strconv.Itoa(lines),
	})
	if err != nil {
		return "", fmt.Errorf("logs of node %d: %w", n.id, err)
	}
	defer func() { _ = raw.Close() }()
	var text strings.Builder
	if _, err := stdcopy.StdCopy(&text, &text, raw); err != nil {
		return text.String(), fmt.Errorf("logs of node %d: %w", n.id, err)
	}
	return text.String(), nil
}

// logLines is how much of each server's log a failed test prints.
const logLines = 150

// remove prints the log of the container if the test failed, and takes the
// container away.
func (n *Node) remove(ctx context.Context, t testing.TB) error {
	if t.Failed() {
		text, err := n.Logs(ctx, logLines)
		if err != nil {
			t.Log(err)
		}
		t.Logf("log of node %d (%s, last %d lines):\n%s", n.id, n.Addr(), logLines, text)
	}
	_, err := n.docker.ContainerRemove(ctx, n.container.GetContainerID(), client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	if err != nil {
		return fmt.Errorf("remove node %d: %w", n.id, err)
	}
	return nil
}
