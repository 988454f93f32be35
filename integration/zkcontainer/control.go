package zkcontainer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/moby/moby/client"
)

const (
	pauses        = 20 // tries of a pause
	pauseInterval = 100 * time.Millisecond
)

// change runs f while no other change of the server is made. It ends with Terminate.
func (c *Container) change(ctx context.Context, what string, f func(context.Context) error) error {
	if c.Container == nil {
		return errNotMade
	}
	if why := context.Cause(c.life); why != nil {
		return c.wrap(what, why)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.life, func() { cancel(context.Cause(c.life)) })()
	err := c.lock(ctx)
	if err == nil {
		defer c.unlock()
		err = f(ctx)
	}
	if why := context.Cause(c.life); err != nil && why != nil && !errors.Is(err, why) {
		err = fmt.Errorf("%w: %w", why, err)
	}
	return c.wrap(what, err)
}

// lock waits until no change of the server is made.
func (c *Container) lock(ctx context.Context) error {
	select {
	case c.control <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("wait for the end of another change: %w", context.Cause(ctx))
	}
	if err := context.Cause(ctx); err != nil {
		c.unlock()
		return err
	}
	return nil
}

func (c *Container) unlock() { <-c.control }

// Kill ends the server with SIGKILL and returns when it is gone. What it had acknowledged
// stays on its disk. A server that does not run gives an error.
func (c *Container) Kill(ctx context.Context) error {
	return c.change(ctx, "kill", func(ctx context.Context) error {
		id := c.GetContainerID()
		if _, err := c.run.docker.ContainerKill(ctx, id, client.ContainerKillOptions{Signal: "KILL"}); err != nil {
			return err
		}
		gone := c.run.docker.ContainerWait(ctx, id, client.ContainerWaitOptions{})
		select {
		case <-gone.Result:
			return nil
		case err := <-gone.Error:
			return err
		}
	})
}

// Stop ends the server with SIGTERM, with SIGKILL if it takes longer than timeout, and
// returns when it is gone. A nil timeout is ten seconds, Docker's default. To stop a
// stopped server does nothing. A timeout is rounded up to whole seconds. A negative one is none.
func (c *Container) Stop(ctx context.Context, timeout *time.Duration) error {
	return c.change(ctx, "stop", func(ctx context.Context) error { return c.Container.Stop(ctx, seconds(timeout)) })
}

// seconds rounds away from zero. The engine takes whole seconds, and zero ends a server at once.
func seconds(d *time.Duration) *time.Duration {
	if d == nil {
		return nil
	}
	rounded := d.Truncate(time.Second)
	switch {
	case *d > rounded:
		rounded += time.Second
	case *d < rounded:
		rounded -= time.Second
	}
	return &rounded
}

// Start starts a killed or stopped server with its data at its address, and returns when
// it answers. In an ensemble that does not mean that it serves: see
// [Ensemble.AwaitServing]. A partition still in force holds from its first packet. The error
// of a server that ends has the end of its log. After an error the server may run or not.
func (c *Container) Start(ctx context.Context) error {
	return c.StartHeld(ctx, nil)
}

// StartHeld is [Container.Start] for those who disturb the container's network
// themselves, for example with packet filters. The container starts, and its server begins
// after prepare has returned. If prepare fails, the error is returned, and the server stays
// held back until the next start. A nil prepare holds nothing. prepare must not change the
// server by other methods, which would wait for it.
func (c *Container) StartHeld(ctx context.Context, prepare func(context.Context) error) error {
	return c.change(ctx, "start", func(ctx context.Context) error { return c.start(ctx, prepare) })
}

func (c *Container) start(ctx context.Context, prepare func(context.Context) error) error {
	if prepare != nil {
		c.held = true
		if err := c.hold(ctx, "yes"); err != nil {
			return fmt.Errorf("hold it back: %w", err)
		}
	} else if err := c.release(ctx); err != nil {
		return err
	}
	if err := c.startContainer(ctx); err != nil {
		return err
	}
	if prepare != nil {
		if err := prepare(ctx); err != nil {
			return err
		}
		return c.release(ctx) // clients may be cut off by now
	}
	return poll(ctx, func(ctx context.Context) error {
		_, err := c.Role(ctx)
		if err != nil {
			err = errors.Join(err, c.ended(ctx))
		}
		return err
	})
}

// startContainer ends with ctx. The caller's consumers of the log, which it starts, do not.
func (c *Container) startContainer(ctx context.Context) error {
	lasting, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })()
	err := c.Container.Start(lasting)
	if err != nil {
		cancel(err)
	}
	return err
}

// hold writes the file that holds the server back if it is not empty. The container need not run.
func (c *Container) hold(ctx context.Context, content string) error {
	return c.CopyToContainer(ctx, []byte(content), holdFile, 0o644)
}

// release lets a server go that is held back.
func (c *Container) release(ctx context.Context) error {
	if !c.held {
		return nil
	}
	if err := c.hold(ctx, ""); err != nil {
		return fmt.Errorf("let it go: %w", err)
	}
	c.held = false
	return nil
}

// Restart stops the server with SIGTERM and starts it again.
func (c *Container) Restart(ctx context.Context) error {
	return errors.Join(c.Stop(ctx, nil), c.Start(ctx))
}

// Pause freezes the server's processes, like a long pause of a virtual machine. Its
// connections stay open and are silent, new ones are accepted by Docker or the kernel
// and get no answer. A server that does not run, or is paused, gives an error. Where the
// engine cannot stop all threads in time, as on a busy machine, it lets them go on. Pause asks it
// again, 20 times at most, and returns its last error. If ctx ends while the engine is asked, the
// server may be paused or not: Unpause does for both.
func (c *Container) Pause(ctx context.Context) error {
	return c.change(ctx, "pause", func(ctx context.Context) error {
		for try := 1; ; try++ {
			_, err := c.run.docker.ContainerPause(ctx, c.GetContainerID(), client.ContainerPauseOptions{})
			if err == nil || !strings.Contains(err.Error(), "unable to freeze") || try == pauses { // runc's words
				return err
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("%w; last: %w", context.Cause(ctx), err)
			case <-time.After(pauseInterval):
			}
		}
	})
}

// Unpause lets a paused server go on. A server that is not paused is left alone.
func (c *Container) Unpause(ctx context.Context) error {
	return c.change(ctx, "unpause", func(ctx context.Context) error {
		state, err := c.State(ctx)
		if err != nil || !state.Paused {
			return err
		}
		_, err = c.run.docker.ContainerUnpause(ctx, c.GetContainerID(), client.ContainerUnpauseOptions{})
		return err
	})
}

// Partition takes the server out of the network between the members, until
// [Container.Heal]. Packets from and to its peers vanish, as with a cable that was drawn.
// Clients still reach it. It holds over stop and start, needs no privileges, and works
// with an engine on another machine. A server without peers gives an error. To cut off one
// that is cut off does nothing. After an error it may be cut off or not: repeat it, or Heal.
func (c *Container) Partition(ctx context.Context) error {
	return c.change(ctx, "partition", func(ctx context.Context) error {
		if !c.run.peers.prefix.IsValid() {
			return errors.New("it has no peers")
		}
		connected, err := c.connected(ctx)
		if err != nil || !connected {
			return err
		}
		_, err = c.run.docker.NetworkDisconnect(ctx, c.run.peers.name, client.NetworkDisconnectOptions{Container: c.GetContainerID(), Force: true})
		return err
	})
}

// Heal ends the server's partition, with the address that it had. A server that is not cut
// off is left alone.
func (c *Container) Heal(ctx context.Context) error {
	return c.change(ctx, "heal", func(ctx context.Context) error {
		if !c.run.peers.prefix.IsValid() {
			return nil
		}
		connected, err := c.connected(ctx)
		if err != nil || connected {
			return err
		}
		return c.run.connect(ctx, c.id, c.GetContainerID())
	})
}

// connected asks the engine whether the server is in the network between the members: what it
// did last may have been done though its answer was lost.
func (c *Container) connected(ctx context.Context) (bool, error) {
	made, err := c.run.docker.ContainerInspect(ctx, c.GetContainerID(), client.ContainerInspectOptions{})
	if err != nil || made.Container.NetworkSettings == nil {
		return false, err
	}
	_, ok := made.Container.NetworkSettings.Networks[c.run.peers.name]
	return ok, nil
}
