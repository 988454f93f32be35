package zkcontainer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/moby/moby/client"
)

// change runs f while no other change of the server is made.
func (c *Container) change(what string, f func() error) error {
	c.control.Lock()
	defer c.control.Unlock()
	if c.Container == nil {
		return errNotMade
	}
	return c.wrap(what, f())
}

// Kill ends the server with SIGKILL and returns when it is gone. What it had acknowledged
// stays on its disk. A server that does not run gives an error.
func (c *Container) Kill(ctx context.Context) error {
	return c.change("kill", func() error {
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
// stopped server does nothing.
func (c *Container) Stop(ctx context.Context, timeout *time.Duration) error {
	return c.change("stop", func() error { return c.Container.Stop(ctx, timeout) })
}

// Start starts a killed or stopped server with its data at its address, and returns when
// it answers. In an ensemble that does not mean that it serves: see
// [Ensemble.AwaitServing]. A partition still in force holds from its first packet.
func (c *Container) Start(ctx context.Context) error {
	return c.StartHeld(ctx, nil)
}

// StartHeld is [Container.Start] for those who disturb the container's network
// themselves, for example with packet filters. The container starts, and its server begins
// after prepare has returned. If prepare fails, the server stays held back, and the
// error is returned. A nil prepare holds nothing.
func (c *Container) StartHeld(ctx context.Context, prepare func(context.Context) error) error {
	return c.change("start", func() error { return c.start(ctx, prepare) })
}

func (c *Container) start(ctx context.Context, prepare func(context.Context) error) error {
	if prepare != nil {
		if err := c.CopyToContainer(ctx, nil, holdFile, 0o644); err != nil {
			return fmt.Errorf("hold it back: %w", err)
		}
	}
	if err := c.Container.Start(ctx); err != nil {
		return err
	}
	if prepare != nil {
		if err := prepare(ctx); err != nil {
			return err
		}
		code, said, err := c.Exec(ctx, []string{"rm", holdFile})
		if err == nil && code != 0 {
			err = fmt.Errorf("rm ended with %d: %s", code, text(said))
		}
		if err != nil {
			return fmt.Errorf("let it go: %w", err)
		}
		return nil // clients may be cut off by now
	}
	return poll(ctx, func(ctx context.Context) error {
		_, err := c.Role(ctx)
		return err
	})
}

// Restart stops the server with SIGTERM and starts it again.
func (c *Container) Restart(ctx context.Context) error {
	return errors.Join(c.Stop(ctx, nil), c.Start(ctx))
}

// Pause freezes the server's processes, like a long pause of a virtual machine. Its
// connections stay open and are silent, new ones are accepted by Docker or the kernel
// and get no answer. A server that does not run, or is paused, gives an error.
func (c *Container) Pause(ctx context.Context) error {
	return c.change("pause", func() error {
		_, err := c.run.docker.ContainerPause(ctx, c.GetContainerID(), client.ContainerPauseOptions{})
		return err
	})
}

// Unpause lets a paused server go on. A server that is not paused is left alone.
func (c *Container) Unpause(ctx context.Context) error {
	return c.change("unpause", func() error {
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
// that is cut off does nothing.
func (c *Container) Partition(ctx context.Context) error {
	return c.change("partition", func() error {
		if !c.run.peers.prefix.IsValid() {
			return errors.New("it has no peers")
		}
		if c.apart {
			return nil
		}
		_, err := c.run.docker.NetworkDisconnect(ctx, c.run.peers.name, client.NetworkDisconnectOptions{Container: c.GetContainerID(), Force: true})
		c.apart = err == nil
		return err
	})
}

// Heal ends the server's partition, with the address that it had. A server that is not cut
// off is left alone.
func (c *Container) Heal(ctx context.Context) error {
	return c.change("heal", func() error {
		if !c.apart {
			return nil
		}
		err := c.run.connect(ctx, c.id, c.GetContainerID())
		c.apart = err != nil
		return err
	})
}
