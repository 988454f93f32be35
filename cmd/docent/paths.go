package main

import (
	"context"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/docent-go/docent/client"
)

// validPath refuses what is no path of a node, before anything is connected.
func validPath(at string) error {
	if err := client.ValidatePath(at); err != nil {
		return usageError("%w", err)
	}
	return nil
}

// onPath returns a check for the arguments PATH and those that more names.
func onPath(more ...string) cobra.PositionalArgs {
	all := exactly(append([]string{"PATH"}, more...)...)
	return func(cmd *cobra.Command, args []string) error {
		err := all(cmd, args)
		if len(args) == 1 && len(more) > 0 && more[0] == "NODE" {
			return usageError("%w (docent queue %s shows it)", err, args[0])
		}
		if err != nil {
			return err
		}
		return validPath(args[0])
	}
}

// maybeDir checks for the argument [DIR].
func maybeDir(_ *cobra.Command, args []string) error {
	switch len(args) {
	case 0:
		return nil
	case 1:
		return validPath(args[0])
	}
	return usageError("unexpected argument %q", args[1])
}

// completionLimit is how long a shell waits for the names of nodes.
const completionLimit = 2 * time.Second

// completeWith returns what completes arguments from the servers, by names. An error
// completes nothing, because a shell cannot show it.
func (t *target) completeWith(names func(ctx context.Context, c *client.Client, args []string, begun string) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		const none = cobra.ShellCompDirectiveNoFileComp
		ctx, cancel := context.WithTimeout(cmd.Context(), completionLimit)
		defer cancel()
		cmd.SetContext(ctx)
		c, err := t.dial(cmd)
		if err != nil {
			return nil, none
		}
		defer c.Close() //nolint:errcheck // nothing was changed
		if len(args) == 0 {
			return below(ctx, c, begun), none | cobra.ShellCompDirectiveNoSpace
		}
		return names(ctx, c, args, begun), none
	}
}

// completePath completes the first argument, a path.
func (t *target) completePath() cobra.CompletionFunc {
	return t.completeWith(func(context.Context, *client.Client, []string, string) []string { return nil })
}

// completeNode completes a path, and behind it the node of a contender.
func (t *target) completeNode() cobra.CompletionFunc {
	return t.completeWith(func(ctx context.Context, c *client.Client, args []string, begun string) []string {
		if len(args) != 1 {
			return nil
		}
		l, err := mustLock(ctx, c, args[0])
		if err != nil {
			return nil
		}
		queue, err := l.queue(ctx)
		if err != nil {
			return nil
		}
		var nodes []string
		for _, r := range rows(l, queue, time.Now()) {
			if strings.HasPrefix(r.Node, begun) {
				nodes = append(nodes, cobra.CompletionWithDesc(r.Node, strings.Join(strings.Fields(r.State+" "+r.Client+" "+r.Host), " ")))
			}
		}
		return nodes
	})
}

// completeCommand completes a path, and leaves what is behind it to the shell.
func (t *target) completeCommand() cobra.CompletionFunc {
	first := t.completePath()
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return first(cmd, args, begun)
	}
}

// below lists the paths that begin as a caller has begun, one level down.
func below(ctx context.Context, c *client.Client, begun string) []string {
	dir, name := "/", strings.TrimPrefix(begun, "/")
	if i := strings.LastIndexByte(begun, '/'); i > 0 {
		dir, name = begun[:i], begun[i+1:]
	}
	children, _, err := c.Children(ctx, dir)
	if err != nil {
		return nil
	}
	slices.Sort(children)
	var paths []string
	for _, child := range children {
		if strings.HasPrefix(child, name) {
			paths = append(paths, path.Join(dir, child))
		}
	}
	return paths
}
