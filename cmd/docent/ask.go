package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/spf13/cobra"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
)

// find returns the contender that a command means: that with the node's name, or
// without a name the only holder.
func find(ctx context.Context, c *client.Client, args []string) (lock, recipes.Contender, error) {
	l, err := mustLock(ctx, c, args[0])
	if err != nil {
		return l, recipes.Contender{}, err
	}
	queue, err := l.queue(ctx)
	if err != nil {
		return l, recipes.Contender{}, err
	}
	var found []recipes.Contender
	for _, one := range queue {
		if len(args) == 2 && isNode(args[1], one.Path) || len(args) == 1 && one.Holder {
			found = append(found, one)
		}
	}
	switch {
	case len(found) == 1:
		return l, found[0], nil
	case len(found) > 1:
		return l, recipes.Contender{}, usageError("%s has %d holders; name the NODE (docent who %s)", l.path, len(found), l.path)
	case len(args) == 2:
		return l, recipes.Contender{}, fmt.Errorf("no contender of %s has the node %s: it may have left (docent queue %s)", l.path, args[1], l.path)
	}
	return l, recipes.Contender{}, fmt.Errorf("%s has no holder (docent queue %s)", l.path, l.path)
}

// isNode reports whether name means the node at full: it is the name of the node, or its
// whole path. A path below another lock means no contender of this one.
func isNode(name, full string) bool {
	if strings.Contains(name, "/") {
		return path.Clean(name) == full
	}
	return name == path.Base(full)
}

// oneOrTwo checks for PATH [NODE].
func oneOrTwo(_ *cobra.Command, args []string) error {
	if len(args) < 1 || len(args) > 2 {
		return usageError("the arguments are PATH [NODE]")
	}
	return validPath(args[0])
}

func newAsk(to *target, io streams) *cobra.Command {
	var wait time.Duration
	var yes bool
	cmd := &cobra.Command{
		Use:   "ask PATH [NODE]",
		Short: "Ask a holder to release its lock",
		Long: `Ask writes a request into the node of a contender, in Curator's protocol. Without NODE it
means the only holder. The holder decides. Nothing is taken from it. Holders of Docent
hear of the request if their program looks (Hold.Revoked; docent run --on-ask), holders of Curator if the
lock was made revocable, holders of kazoo and go-zookeeper never.

Ask shows the node and asks for a yes, unless --yes is given. It refuses if another
node has that name by then.

With --wait the command waits until the node is gone, and fails if it still stands then.`,
		Args: oneOrTwo, ValidArgsFunction: to.completeNode(),
	}
	cmd.Flags().DurationVar(&wait, "wait", 0, "how long to wait for the release")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask for a yes")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return to.connected(cmd, func(ctx context.Context, c *client.Client) error {
			l, who, err := find(ctx, c, args)
			if err != nil {
				return err
			}
			if err := approve(cmd, io, l, who, yes, "Write a request to release into this node? Type yes: "); err != nil {
				return err
			}
			if _, err := unchanged(ctx, c, who); err != nil {
				return err
			}
			if err := l.ask(ctx, who); err != nil {
				return err
			}
			_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "docent: asked %s\n", who)
			if wait <= 0 {
				return nil
			}
			return gone(ctx, cmd.ErrOrStderr(), c, who, wait)
		})
	}
	return cmd
}

// gone waits until the node of a contender does not exist.
func gone(ctx context.Context, out io.Writer, c *client.Client, who recipes.Contender, wait time.Duration) error {
	begun := time.Now()
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for {
		exists, _, w, err := c.ExistsW(ctx, who.Path)
		if err == nil && !exists {
			w.Stop()
			say(out, "its node is gone after %v", time.Since(begun).Round(100*time.Millisecond))
			return nil
		}
		if err == nil {
			select {
			case <-w.Done():
				continue
			case <-ctx.Done():
				w.Stop()
			}
		}
		if ctx.Err() != nil {
			return fmt.Errorf("it still holds after %v: its program does not listen, or goes on: stop that; only if nobody can, see docent evict --help", wait)
		}
		return err
	}
}

func newEvict(to *target, io streams) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "evict PATH NODE",
		Short: "Delete the node of a contender, so that the next one gets the lock",
		Long: `Evict deletes the node of a contender. It shows what it will do and asks, unless --yes
is given. It refuses if the node is not the one that it showed any more. NODE is the
name of the node or its whole path.

The holder hears of it after the fact: it and the next holder may work at the same
time. Ask first (docent ask). If that does not help, stop the holder's process. Its
node is then deleted when its session times out, and nothing overlaps. A holder of
Curator does not hear of it at all, and works on.`,
		Args: onPath("NODE"), ValidArgsFunction: to.completeNode(),
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return to.connected(cmd, func(ctx context.Context, c *client.Client) error {
			l, who, err := find(ctx, c, args)
			if err != nil {
				return err
			}
			if who.Holder && who.Family != recipes.FamilyDocent {
				_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "A holder of %s is not told: it works on beside the next holder. Stop its process first.\n", who.Family)
			}
			if err := approve(cmd, io, l, who, yes, "Delete this node? Type yes: "); err != nil {
				return err
			}
			if err := evict(ctx, c, l, who); err != nil {
				return err
			}
			say(cmd.ErrOrStderr(), "deleted %s", who.Path)
			return nil
		})
	}
	return cmd
}

// approve shows the contender that something is to be done to, and asks for a yes.
func approve(cmd *cobra.Command, io streams, l lock, who recipes.Contender, yes bool, question string) error {
	if err := write(cmd.ErrOrStderr(), wide, rows(l, []recipes.Contender{who}, time.Now())); err != nil || yes {
		return err
	}
	return confirm(cmd.ErrOrStderr(), io, question)
}

// confirm asks for a yes.
func confirm(w io.Writer, from streams, question string) error {
	if !terminal(from.in) {
		return usageError("standard input is no terminal to ask on; give --yes")
	}
	_, _ = fmt.Fprint(w, question)
	said, err := bufio.NewReader(from.in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if said != "yes\n" {
		return &exitError{exitFailure, fmt.Errorf("nothing was done: the answer was %q and not \"yes\"", strings.TrimSuffix(said, "\n"))}
	}
	return nil
}

// evict deletes the node of who, unless another node has taken its name by now, or its
// data have changed. evict reads the version before it compares the data, so the servers
// refuse to delete after a later change.
func evict(ctx context.Context, c *client.Client, l lock, who recipes.Contender) error {
	stat, err := unchanged(ctx, c, who)
	if err != nil {
		return err
	}
	queue, err := l.queue(ctx)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(queue, func(now recipes.Contender) bool { return sameAs(now, who) }) {
		return errors.New("the data of the node have changed meanwhile (a request has come, or the contender holds the lock now); nothing was done; look again")
	}
	if err := c.Delete(ctx, who.Path, stat.Version); err != nil {
		if errors.Is(err, client.ErrNoNode) {
			return errors.New("the contender has left meanwhile; nothing was done")
		}
		return err
	}
	return nil
}

// unchanged returns the stat of the node of a contender, and refuses another node of the
// same name.
func unchanged(ctx context.Context, c *client.Client, who recipes.Contender) (*zk.Stat, error) {
	exists, stat, err := c.Exists(ctx, who.Path)
	switch {
	case err != nil:
		return nil, err
	case !exists:
		return nil, errors.New("the contender has left meanwhile; nothing was done")
	case stat.Czxid != who.FencingToken || stat.EphemeralOwner != who.Session:
		return nil, errors.New("another node has that name meanwhile; nothing was done")
	}
	return stat, nil
}

// sameAs reports whether a contender is still what was shown. A request to release that
// was there before changes nothing.
func sameAs(now, shown recipes.Contender) bool {
	return now.Path == shown.Path && now.Holder == shown.Holder && string(now.Data) == string(shown.Data) &&
		now.ReleaseRequested() == shown.ReleaseRequested()
}
