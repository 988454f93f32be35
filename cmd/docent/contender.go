package main

import (
	"context"
	"fmt"
	"path"
	"time"

	"github.com/spf13/cobra"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
)

// row is a contender as the commands write it. The names of the JSON fields stay.
type row struct {
	Lock    string `col:"LOCK,wide" json:"lock"`
	Kind    string `col:"KIND,wide" json:"kind"`
	Place   int    `col:"#"         json:"place"` // 1 is the first
	State   string `col:"STATE"     json:"state"` // "holds" or "waits"
	Mode    string `col:"MODE"      json:"mode"`
	ID      string `col:"ID,some"   json:"id,omitempty"` // of a participant of an election
	Client  string `col:"CLIENT"    json:"client"`
	Host    string `col:"HOST"      json:"host"`
	PID     string `col:"PID"       json:"pid"`
	Age     string `col:"QUEUED"    json:"-"`
	Held    string `col:"HELD"      json:"-"`
	Asked   string `col:"ASKED"     json:"-"`
	Library string `col:"LIBRARY,wide" json:"library"`
	Session string `col:"SESSION,wide" json:"session"`
	Within  string `col:"WITHIN,wide"  json:"within"` // the session whose command has started this contender
	Token   int64  `col:"TOKEN,wide"   json:"token"`
	Node    string `col:"NODE"      json:"node"`
	Data    string `col:"DATA,wide" json:"data"`

	QueuedSince      *time.Time `json:"queued_since"`
	HeldSince        *time.Time `json:"held_since"`
	ReleaseRequested bool       `json:"release_requested"`
	Unreadable       bool       `json:"unreadable"` // the node may not be read: much is not known

	campaign bool // of an election, as far as its node tells
}

const (
	holds = "holds"
	waits = "waits"
)

// rows makes rows of a queue.
func rows(l lock, queue []recipes.Contender, now time.Time) []row {
	all := make([]row, len(queue))
	for i, c := range queue {
		r := row{
			Lock: l.path, Kind: l.kind, Place: i + 1, State: waits, Mode: c.Mode.String(),
			Host: c.Owner.Host, Library: c.Family.String(), Token: c.FencingToken,
			Node: path.Base(c.Path), Data: string(c.Data),
			QueuedSince: moment(c.QueuedSince), HeldSince: moment(c.HeldSince),
			Age: since(c.QueuedSince, now), Held: since(c.HeldSince, now),
			ReleaseRequested: c.ReleaseRequested(), Unreadable: c.Unreadable,
			campaign: l.kind == kindLatch || c.Campaigns(),
		}
		r.Client, r.Within = unnested(c.Owner.Client)
		if l.kind == kindLatch {
			r.ID = r.Data
		}
		if c.Holder {
			r.State = holds
		}
		if c.Owner.PID != 0 {
			r.PID = fmt.Sprint(c.Owner.PID)
		}
		if c.Session != 0 {
			r.Session = hex(c.Session)
		}
		if r.ReleaseRequested {
			r.Asked = "yes"
		}
		all[i] = r
	}
	return all
}

func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// since is how long ago t was, in two units at most.
func since(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	d := max(now.Sub(t), 0) // the servers' clock may be ahead
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd%02dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}

func newQueue(to *target) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "queue PATH",
		Short: "List the holders and the waiters of a lock, in order",
		Args:  onPath(), ValidArgsFunction: to.completePath(),
	}
	form := formatFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return to.connected(cmd, func(ctx context.Context, c *client.Client) error {
			return list(ctx, cmd, c, args[0], *form, func(recipes.Contender) bool { return true })
		})
	}
	return cmd
}

func newWho(to *target) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "who PATH",
		Short: "List the holders of a lock",
		Long:  "Who lists the holders of a lock: of a mutex one, of a read lock or a semaphore several.",
		Args:  onPath(), ValidArgsFunction: to.completePath(),
	}
	form := formatFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return to.connected(cmd, func(ctx context.Context, c *client.Client) error {
			return list(ctx, cmd, c, args[0], *form, func(c recipes.Contender) bool { return c.Holder })
		})
	}
	return cmd
}

// list writes the contenders of a lock that want accepts.
func list(ctx context.Context, cmd *cobra.Command, c *client.Client, at string, form format, want func(recipes.Contender) bool) error {
	l, err := mustLock(ctx, c, at)
	if err != nil {
		return err
	}
	queue, err := l.queue(ctx)
	if err != nil {
		return err
	}
	all := rows(l, queue, time.Now())
	wanted := all[:0]
	for i, r := range all {
		if want(queue[i]) {
			wanted = append(wanted, r)
		}
	}
	return write(cmd.OutOrStdout(), form, wanted)
}
