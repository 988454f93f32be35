package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
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
	Host    string `col:"HOST"      json:"host_name"` // or its address, if it has told no name
	Address string `col:"ADDRESS,wide" json:"host"`
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
	HeldSince        *time.Time `json:"held_since"`    // null unless it is known exactly
	HeldEarliest     *time.Time `json:"held_earliest"` // it did not hold before
	HeldLatest       *time.Time `json:"held_latest"`   // it held from then on
	ReleaseRequested bool       `json:"release_requested"`
	Unreadable       bool       `json:"unreadable"` // the node may not be read: much is not known

	campaign bool // of an election, as far as its node tells
	held     recipes.Since
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
			Host: cmp.Or(c.Owner.HostName, c.Owner.Host), Address: c.Owner.Host, Library: c.Family.String(), Token: c.FencingToken,
			Node: path.Base(c.Path), Data: string(c.Data),
			QueuedSince: moment(c.QueuedSince), HeldSince: moment(c.HeldSince),
			HeldEarliest: moment(c.Held.Earliest), HeldLatest: moment(c.Held.Latest), held: c.Held,
			Age: since(c.QueuedSince, now), Held: heldFor(c.Held, now),
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
	const last = 9999 // the last year that JSON can say
	if t = t.UTC(); t.IsZero() || t.Year() < 0 || t.Year() > last {
		return nil
	}
	return &t
}

// since is how long ago t was, in two units at most.
func since(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	return inUnits(max(now.Sub(t), 0)) // the servers' clock may be ahead
}

// heldFor is for how long a contender has held, in bounds if that is all that is known.
func heldFor(s recipes.Since, now time.Time) string {
	least, most := s.Age(now)
	switch {
	case s.Earliest.IsZero() && s.Latest.IsZero():
		return ""
	case s.Latest.IsZero():
		return "less than " + inUnits(most+unit(most)) // inUnits cuts off what is not a whole unit
	case s.Earliest.IsZero():
		return "at least " + inUnits(least)
	case inUnits(least) == inUnits(most):
		return inUnits(least)
	default:
		return inUnits(least) + " to " + inUnits(most+unit(most)-1)
	}
}

// unit is the smaller of the two units of inUnits.
func unit(d time.Duration) time.Duration {
	switch {
	case d < time.Hour:
		return time.Second
	case d < 48*time.Hour:
		return time.Minute
	}
	return time.Hour
}

// inUnits is a duration in two units at most.
func inUnits(d time.Duration) string {
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

// sightings remembers who held and who waited at earlier looks. So a command that looks again
// and again knows bounds of holds that no record on the servers has. A nil sightings
// remembers nothing. It is for one goroutine.
type sightings struct {
	now, before map[sighted]sighting // at the looks so far in this round, and in the round before
}

// sighted is a node that was seen.
type sighted struct {
	path  string
	token int64
}

// sighting is what was seen of it, by the clock of this host.
type sighting struct {
	waited time.Time // it waited then, the last time
	held   time.Time // it held then, the first time
}

// next begins a round of looks. If the round before was whole, it forgets the nodes that were
// not seen there.
func (s *sightings) next(whole bool) {
	if whole {
		s.before, s.now = s.now, map[sighted]sighting{}
		return
	}
	if s.before == nil { // the first round of all
		s.before = map[sighted]sighting{}
	}
	maps.Copy(s.before, s.now)
	clear(s.now)
}

// narrow sets the bounds of the holders in a queue that was asked for at begun and has come
// at ended. What was seen goes before what the servers tell by another clock.
func (s *sightings) narrow(queue []recipes.Contender, begun, ended time.Time) {
	if s == nil {
		return
	}
	for i := range queue {
		c := &queue[i]
		if c.Unreadable || c.Mode == recipes.ModeLease {
			continue // nothing tells the node, or its time is known
		}
		node := sighted{c.Path, c.FencingToken}
		seen := s.before[node]
		switch {
		case !c.Holder:
			seen = sighting{waited: begun}
		case seen.held.IsZero():
			seen.held = ended
		}
		s.now[node] = seen
		if c.Holder && !c.Held.Exact() {
			c.Held = narrowed(c.Held, recipes.Since{Earliest: seen.waited, Latest: seen.held})
		}
	}
}

// narrowed is what both bounds allow. If they contradict each other, it is seen.
func narrowed(told, seen recipes.Since) recipes.Since {
	both := seen
	if told.Earliest.After(both.Earliest) {
		both.Earliest = told.Earliest
	}
	if !told.Latest.IsZero() && told.Latest.Before(both.Latest) {
		both.Latest = told.Latest
	}
	if both.Earliest.After(both.Latest) {
		return seen
	}
	return both
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
