package zkcontainer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
)

// Container is one server. [Run] returns a standalone one, and an [Ensemble] has several
// as its members. Its methods are safe for concurrent use. Changes of one server's state
// are made one after the other.
//
// The embedded Container is that of testcontainers. It is nil if the engine could not
// make one; then only Terminate may be called, and the error of the start says why.
type Container struct {
	testcontainers.Container

	id       int
	run      *run
	ensemble *Ensemble
	ports    map[int]int // from those inside to those of the host

	life context.Context //nolint:containedctx // ends with Terminate
	end  context.CancelCauseFunc

	control chan struct{} // full over a whole change of the container
	held    bool          // its server waits for the end of a StartHeld; guarded by control
}

// Ensemble is a set of servers that belong together. Its methods are safe for
// concurrent use.
type Ensemble struct {
	run     *run
	members []*Container
}

// errTerminated is the error of what needs servers that have been terminated.
var errTerminated = errors.New("the servers have been terminated")

// errNotMade is the error of the methods of a container that the engine has not made.
var errNotMade = errors.New("zkcontainer: the container was not made")

// ID is the server's number, counted from 1.
func (c *Container) ID() int { return c.id }

// Addr is where clients reach the server, as host:port. It stays the same over stop, kill
// and start.
func (c *Container) Addr() string { return c.addr(clientPort) }

func (c *Container) addr(inside int) string {
	port, ok := c.ports[inside]
	if !ok {
		return ""
	}
	return net.JoinHostPort(c.run.host, strconv.Itoa(port))
}

// ConnectionString is the server's address with the chroot of [WithChroot] behind it, as
// ZooKeeper's clients and Curator's connectString take it. The error is always nil; it is
// there because other modules of testcontainers have one.
func (c *Container) ConnectionString(context.Context) (string, error) {
	return c.Addr() + c.run.set.chroot, nil
}

// PeerAddr is the server's address in the network between the members. It never changes.
// It is the zero value if there is one server only.
func (c *Container) PeerAddr() netip.Addr {
	if !c.run.peers.prefix.IsValid() {
		return netip.Addr{}
	}
	return c.run.peers.address(c.id)
}

// LastLogs returns the last lines of the server's log, of all its lives.
func (c *Container) LastLogs(ctx context.Context, lines int) (string, error) {
	if c.Container == nil {
		return "", errNotMade
	}
	raw, err := c.run.docker.ContainerLogs(ctx, c.GetContainerID(), client.ContainerLogsOptions{
		ShowStdout: true, ShowStderr: true, Tail: strconv.Itoa(lines),
	})
	if err != nil {
		return "", c.wrap("logs", err)
	}
	defer func() { _ = raw.Close() }()
	var text strings.Builder
	_, err = stdcopy.StdCopy(&text, &text, raw)
	return text.String(), c.wrap("logs", err)
}

// wrap says of which server and of what the error is. It leaves nil alone.
func (c *Container) wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("zkcontainer: %s of server %d: %w", what, c.id, err)
}

// Terminate ends the server and removes its container and volumes. For a server of [Run]
// it also closes its links and removes whatever else was made for it. It may be repeated,
// and called on nil. Calls that change the server or wait for it fail from then on, and those
// that go on end. After an error something may be left, and another call tries again.
func (c *Container) Terminate(ctx context.Context, opts ...testcontainers.TerminateOption) error {
	if c == nil {
		return nil
	}
	c.end(errTerminated)
	errs := []error{c.terminate(ctx, opts)}
	if len(c.ensemble.members) == 1 {
		errs = append(errs, c.run.sweep(ctx))
	}
	return errors.Join(errs...)
}

func (c *Container) terminate(ctx context.Context, opts []testcontainers.TerminateOption) error {
	if c.Container == nil {
		return nil
	}
	if err := c.lock(ctx); err != nil {
		return c.wrap("terminate", err)
	}
	defer c.unlock()
	if state, err := c.State(ctx); err == nil && state.Paused { // a paused one cannot be stopped
		if _, err := c.run.docker.ContainerUnpause(ctx, c.GetContainerID(), client.ContainerUnpauseOptions{}); err != nil {
			return c.wrap("unpause", err)
		}
	}
	opts = append([]testcontainers.TerminateOption{testcontainers.StopTimeout(0)}, opts...)
	return c.wrap("terminate", present(c.Container.Terminate(ctx, opts...)))
}

// engineLimit is how long the engine may take to say whether a server runs.
const engineLimit = 2 * time.Second

// ended says so if the server's process has ended, with the end of its log, or if its container
// is no more. It has a time of its own: the server may have used up that of ctx.
func (c *Container) ended(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), engineLimit)
	defer cancel()
	state, err := c.State(ctx)
	switch {
	case errdefs.IsNotFound(err):
		return hopeless{err}
	case err != nil || state.Running || state.Restarting:
		return err
	}
	lines, _ := c.LastLogs(ctx, 20)
	return hopeless{fmt.Errorf("it ended with %d; the end of its log:\n%s", state.ExitCode, lines)}
}

func (e *Ensemble) each(f func(*Container) error) error { return each(e.members, f) }

// each runs f for all members at the same time and returns all errors.
func each(members []*Container, f func(*Container) error) error {
	errs := make([]error, len(members))
	var group sync.WaitGroup
	for i, c := range members {
		group.Go(func() { errs[i] = f(c) })
	}
	group.Wait()
	return errors.Join(errs...)
}
