package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/docent-go/docent/client"
)

// wait says that a session waits for another one, on a lock or for its command.
type wait struct {
	Waiter string `col:"WAITER"   json:"waiter"`
	Holder string `col:"WAITS FOR" json:"waits_for"`
	Lock   string `col:"ON"       json:"lock"` // empty for a command
	Kind   string `col:"KIND"     json:"kind"`
	Since  string `col:"SINCE"    json:"-"`

	QueuedSince *time.Time `json:"queued_since"`

	waiter, holder string // their sessions, see party
	heldSince      *time.Time
	campaign       bool // in an election, and nothing is known to stand still for it
}

// kindCommand is the kind of a wait for a command. A docent releases its lock when its
// command has ended, so it waits for the docents in that command.
const kindCommand = "command"

// kindSelf is the kind of a wait for a hold of the same session.
const kindSelf = "self"

func newDeadlocks(to *target) *cobra.Command {
	var depth int
	var dot bool
	var self time.Duration
	cmd := &cobra.Command{
		Use:   "deadlocks [DIR]",
		Short: "Look for sessions that wait for each other",
		Long: `Deadlocks reads the queues of all locks at or below a directory, and looks for sessions
that wait for each other in a circle. It writes the waits of such circles, and exits with 1
if there are any.

A session that waits for a lock that it holds is a circle of one, of the kind "self". It is
listed when it has waited for a minute (--self), and not if its hold is known to be younger.
Either another goroutine or thread of the program holds for long. Or the holder itself asks
for the lock once more, and waits for itself for ever. In Go that is an acquire within a hold
whose context is not the hold's. In Java it is a second InterProcessMutex object in one thread.

A session is a process or a part of one. Several goroutines of a session may each
hold and wait on their own, so a circle need not be a deadlock. It is one if no wait in it
ends: the same waits are there when you look again, each older (SINCE) than your programs
ever hold a lock. A circle with a wait that is always young is none. With --dot the command
writes all waits, for Graphviz.

A wait in an election closes no circle. A program campaigns in the background as a rule, for
as long as it runs, and its work does not wait for that. A docent elect in the command of
another docent does count. So does a LeaderSelector of Curator: its nodes are those of a
mutex, and its waits are as old as its campaigns.

A docent within the command of another one, as in docent run A -- docent run B -- make, has
a session of its own. The other one releases its lock when that command ends, so it waits for
this one: such a wait is of the kind "command". The nodes of both must be below DIR. A
node says whose command its docent is within by what docent run and docent elect add to
the name of their client: " within=" and DOCENT_SESSION. Your own programs can add the same.
An elect with --id adds nothing.

Other programs with several sessions may wait in a circle that no session shows. Docent queue
shows who holds each lock and who waits for it.`,
		Args: maybeDir, ValidArgsFunction: to.completePath(),
	}
	cmd.Flags().IntVar(&depth, "depth", 8, "levels to go down")
	cmd.Flags().DurationVar(&self, "self", time.Minute, "how long a session waits for its own hold before it is listed; 0 for never")
	cmd.Flags().BoolVar(&dot, "dot", false, "write the graph of all waits")
	form := formatFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if self < 0 {
			return usageError("--self is not negative; give 0 to list no session that waits for its own hold")
		}
		return to.connected(cmd, func(ctx context.Context, c *client.Client) error {
			all, err := waitsUnder(ctx, c, append(args, "/")[0], depth, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if dot {
				return graph(cmd.OutOrStdout(), all)
			}
			circle := circles(all, self, time.Now())
			if err := write(cmd.OutOrStdout(), *form, circle); err != nil {
				return err
			}
			if len(circle) == 0 && len(all) > 0 {
				say(cmd.ErrOrStderr(), "no sessions wait for each other in a circle; --dot has %s", counted(len(all), "wait", "waits"))
			}
			if len(circle) > 0 {
				return &exitError{exitFailure, found(circle)}
			}
			return nil
		})
	}
	return cmd
}

// found says what the waits of circles may be.
func found(circle []wait) error {
	say := counted(len(circle), "wait is", "waits are") + " part of a circle"
	if slices.ContainsFunc(circle, func(w wait) bool { return w.Kind == kindSelf }) {
		say += `; one of the kind "self" is a deadlock unless another goroutine or thread of the program holds`
	}
	return errors.New(say)
}

// waitsUnder reads who waits for whom at or below dir.
func waitsUnder(ctx context.Context, c *client.Client, dir string, depth int, warn io.Writer) (all []wait, err error) {
	now := time.Now()
	var everybody []row
	err = walk(ctx, c, dir, depth, func(l lock) error {
		queue, err := l.queue(ctx)
		if err != nil {
			return err
		}
		contenders := rows(l, queue, now)
		everybody = append(everybody, contenders...)
		all = append(all, waitsIn(contenders)...)
		return nil
	}, func(dir string) {
		_, _ = fmt.Fprintf(warn, "docent: may not list %s: its locks are left out\n", shown(dir))
	})
	all = append(all, waitsForCommands(everybody)...)
	names := map[string]string{}
	for _, r := range everybody {
		if name := label(r); len(name) > len(names[party(r)]) { // some nodes of a session may tell less than others
			names[party(r)] = name
		}
	}
	for i, w := range all {
		all[i].Waiter, all[i].Holder = names[w.waiter], names[w.holder]
	}
	return all, err
}

// waitsIn are the waits in the queue of a lock: for each session that waits and each that it
// waits for, the oldest campaign and the oldest wait that counts.
func waitsIn(contenders []row) (all []wait) {
	type pair struct {
		waiter, holder string
		campaign       bool
	}
	told := map[pair]bool{}
	for i, waiter := range contenders {
		if waiter.State != waits {
			continue
		}
		for _, ahead := range contenders[:i] {
			w := wait{
				waiter: party(waiter), holder: party(ahead), Lock: waiter.Lock, Kind: waiter.Kind,
				Since: waiter.Age, QueuedSince: waiter.QueuedSince, campaign: waiter.campaign && waiter.Within == "",
			}
			if ahead.Mode == reading && waiter.Mode == reading {
				continue
			}
			if w.waiter == w.holder {
				if ahead.State != holds {
					continue
				}
				w.Kind, w.heldSince = kindSelf, ahead.HeldSince
			}
			if p := (pair{w.waiter, w.holder, w.campaign}); !told[p] {
				told[p] = true
				all = append(all, w)
			}
		}
	}
	return all
}

// waitsForCommands are the waits of sessions for those within their commands, among the
// contenders of all locks.
func waitsForCommands(contenders []row) (all []wait) {
	outer := map[string]bool{}
	for _, r := range contenders {
		outer[party(r)] = true
	}
	for _, r := range contenders {
		w := wait{waiter: r.Within, holder: party(r), Kind: kindCommand}
		if outer[r.Within] && !slices.Contains(all, w) {
			all = append(all, w)
		}
	}
	return all
}

// party is who waits or holds: a session, or a node that no session owns.
func party(r row) string {
	if r.Session == "" {
		return r.Lock + "/" + r.Node
	}
	return r.Session
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
// way, for the waiter. A campaign is no part. A session that waits for its own hold must
// have done so for self.
func circles(all []wait, self time.Duration, now time.Time) (in []wait) {
	all = slices.DeleteFunc(slices.Clone(all), func(w wait) bool { return w.campaign })
	young := func(since *time.Time) bool { return since != nil && now.Sub(*since) < self }
	next := map[string][]string{}
	for _, w := range all {
		next[w.waiter] = append(next[w.waiter], w.holder)
	}
	for _, w := range all {
		if w.Kind == kindSelf && (self == 0 || w.QueuedSince == nil || young(w.QueuedSince) || young(w.heldSince)) {
			continue
		}
		if reaches(next, w.holder, w.waiter) {
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
		on := one.Lock
		if one.Kind == kindCommand {
			on = kindCommand
		}
		lines = append(lines, fmt.Sprintf("\t%q -> %q [label=%q]", one.Waiter, one.Holder, on))
	}
	slices.Sort(lines[1:])
	_, err := fmt.Fprintln(w, strings.Join(append(slices.Compact(lines), "}"), "\n"))
	return err
}
