package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/docent-go/docent/client"
)

// wait says that a session waits for another one, on a lock.
type wait struct {
	Waiter string `col:"WAITER"   json:"waiter"`
	Holder string `col:"WAITS FOR" json:"waits_for"`
	Lock   string `col:"ON"       json:"lock"`
	Kind   string `col:"KIND"     json:"kind"`
	Since  string `col:"SINCE"    json:"-"`

	QueuedSince *time.Time `json:"queued_since"`
}

func newDeadlocks(to *target) *cobra.Command {
	var depth int
	var dot bool
	cmd := &cobra.Command{
		Use:   "deadlocks [DIR]",
		Short: "Look for sessions that wait for each other",
		Long: `Deadlocks reads the queues of all locks at or below a directory, and looks for sessions
that wait for each other in a circle. It writes the waits of such circles, and exits with 1
if there are any.

A session is a process or a part of one. Several goroutines of a session may each
hold and wait on their own, so a circle need not be a deadlock. If it stays when you look
again, it is one. With --dot the command writes all waits, for Graphviz.

A program with several sessions may wait in a circle that no session shows. Such a program
is a docent run whose command is another docent run. Docent queue shows who
holds each lock and who waits for it.`,
		Args: maybeDir, ValidArgsFunction: to.completePath(),
	}
	cmd.Flags().IntVar(&depth, "depth", 8, "levels to go down")
	cmd.Flags().BoolVar(&dot, "dot", false, "write the graph of all waits")
	form := formatFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return to.connected(cmd, func(ctx context.Context, c *client.Client) error {
			all, err := waitsUnder(ctx, c, append(args, "/")[0], depth, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if dot {
				return graph(cmd.OutOrStdout(), all)
			}
			circle := circles(all)
			if err := write(cmd.OutOrStdout(), *form, circle); err != nil {
				return err
			}
			if len(circle) == 0 && len(all) > 0 {
				say(cmd.ErrOrStderr(), "no sessions wait for each other in a circle; there are %d waits (--dot)", len(all))
			}
			if len(circle) > 0 {
				return &exitError{exitFailure, fmt.Errorf("%d waits are part of a circle", len(circle))}
			}
			return nil
		})
	}
	return cmd
}

// waitsUnder reads who waits for whom at or below dir.
func waitsUnder(ctx context.Context, c *client.Client, dir string, depth int, warn io.Writer) (all []wait, err error) {
	now := time.Now()
	err = walk(ctx, c, dir, depth, func(l lock) error {
		queue, err := l.queue(ctx)
		if err != nil {
			return err
		}
		contenders := rows(l, queue, now)
		for i, waiter := range contenders {
			if waiter.State != waits {
				continue
			}
			for _, ahead := range contenders[:i] {
				if ahead.Session != waiter.Session && (ahead.Mode != reading || waiter.Mode != reading) {
					all = append(all, wait{label(waiter), label(ahead), l.path, l.kind, waiter.Age, waiter.QueuedSince})
				}
			}
		}
		return nil
	}, func(dir string) {
		_, _ = fmt.Fprintf(warn, "docent: may not list %s: its locks are left out\n", dir)
	})
	return all, err
}

// reading is the mode of contenders that do not wait for each other.
const reading = "read"

// label names a session and what is known of its process.
func label(r row) string {
	s := strings.TrimSpace(strings.Join([]string{r.Client, r.Host}, " "))
	if r.PID != "" {
		s += " pid " + r.PID
	}
	if r.Session == "" {
		return s + " node " + r.Node
	}
	return strings.TrimSpace(s + " session " + r.Session)
}

// circles keeps the waits that are part of a circle: whose holder waits, by whatever
// way, for the waiter.
func circles(all []wait) (in []wait) {
	next := map[string][]string{}
	for _, w := range all {
		next[w.Waiter] = append(next[w.Waiter], w.Holder)
	}
	for _, w := range all {
		if reaches(next, w.Holder, w.Waiter) {
			in = append(in, w)
		}
	}
	return in
}

func reaches(next map[string][]string, from, to string) bool {
	seen := map[string]bool{from: true}
	for line := []string{from}; len(line) > 0; line = line[1:] {
		if line[0] == to {
			return true
		}
		for _, n := range next[line[0]] {
			if !seen[n] {
				seen[n] = true
				line = append(line, n)
			}
		}
	}
	return false
}

// graph writes all waits in Graphviz's language.
func graph(w io.Writer, all []wait) error {
	lines := []string{"digraph waits {"}
	for _, one := range all {
		lines = append(lines, fmt.Sprintf("\t%q -> %q [label=%q]", one.Waiter, one.Holder, one.Lock))
	}
	slices.Sort(lines[1:])
	_, err := fmt.Fprintln(w, strings.Join(append(slices.Compact(lines), "}"), "\n"))
	return err
}
