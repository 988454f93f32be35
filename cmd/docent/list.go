package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
)

// summary is a lock as `docent ls` and `docent top` write it.
type summary struct {
	Path    string `col:"PATH"    json:"path"`
	Kind    string `col:"KIND"    json:"kind"`
	Holders int    `col:"HOLDERS" json:"holders"`
	Waiters int    `col:"WAITERS" json:"waiters"`
	Holder  string `col:"HOLDER"  json:"holder"`       // the first
	ID      string `col:"ID,some" json:"id,omitempty"` // of the leader of a latch
	Host    string `col:"HOST"    json:"host_name"`    // or its address, if it has told no name
	Address string `col:"ADDRESS,wide" json:"host"`
	Library string `col:"LIBRARY,wide" json:"library"`
	Session string `col:"SESSION,wide" json:"session"`
	Held    string `col:"HELD"    json:"-"`
	Longest string `col:"LONGEST WAIT" json:"-"`

	HeldSince    *time.Time `json:"held_since"`    // null unless it is known exactly
	HeldEarliest *time.Time `json:"held_earliest"` // it did not hold before
	HeldLatest   *time.Time `json:"held_latest"`   // it held from then on
	LongestSince *time.Time `json:"longest_wait_since"`

	lock    lock
	queue   []recipes.Contender
	rows    []row         // of the queue
	held    recipes.Since // by the first holder
	longest recipes.Since // by the holder that may have held for longest

	campaigns bool // of an election, as far as all who wait tell
}

// summarise reads the queue of a lock. seen remembers earlier looks.
func summarise(ctx context.Context, l lock, seen *sightings) (summary, error) {
	begun := time.Now()
	queue, err := l.queue(ctx)
	if err != nil {
		return summary{}, err
	}
	now := time.Now()
	seen.narrow(queue, begun, now)
	s := summary{Path: l.path, Kind: l.kind, lock: l, queue: queue, rows: rows(l, queue, now)}
	for _, r := range s.rows {
		if r.State == holds && (s.Holders == 0 || r.held.Earliest.Before(s.longest.Earliest)) {
			s.longest = r.held
		}
		switch {
		case r.State == holds && s.Holders == 0:
			s.Holder, s.ID, s.Host, s.Address, s.Library, s.Session = r.Client, r.ID, r.Host, r.Address, r.Library, r.Session
			s.Held, s.held, s.HeldSince, s.HeldEarliest, s.HeldLatest = r.Held, r.held, r.HeldSince, r.HeldEarliest, r.HeldLatest
			s.Holders++
		case r.State == holds:
			s.Holders++
		default:
			s.campaigns = (s.campaigns || s.Waiters == 0) && r.campaign && r.Within == ""
			s.Waiters++
			if s.LongestSince == nil || r.QueuedSince != nil && r.QueuedSince.Before(*s.LongestSince) {
				s.Longest, s.LongestSince = r.Age, r.QueuedSince
			}
		}
	}
	return s, nil
}

// heldOver reports whether a holder may have held for longer than d.
func (s summary) heldOver(d time.Duration, now time.Time) bool {
	_, most := s.longest.Age(now)
	return s.Holders > 0 && (s.longest.Earliest.IsZero() || most > d) // a holder whose node may not be read may be old
}

// under calls f with a summary of each lock at or below dir. seen remembers earlier looks. It
// says on warn what it could not read.
func under(ctx context.Context, c *client.Client, dir string, depth int, seen *sightings, warn io.Writer, f func(summary)) error {
	return walk(ctx, c, dir, depth, func(l lock) error {
		s, err := summarise(ctx, l, seen)
		if err == nil {
			f(s)
		}
		return err
	}, func(dir string) {
		_, _ = fmt.Fprintf(warn, "docent: may not list %s: locks at or below it are not shown\n", shown(dir))
	})
}

func newList(to *target) *cobra.Command {
	var depth int
	var waiting bool
	var over time.Duration
	cmd := &cobra.Command{
		Use:   "ls [DIR]",
		Short: "List the locks at or below a directory",
		Long: `Ls lists the locks at or below a directory, by default all of them. A lock shows if a
contender is there, or if a semaphore's directories are.

With --held-over it leaves out locks whose holders are known to have held for less. Servers
do not record when a contender that had to wait began to hold. HELD then has bounds: "at least 40s",
"10s to 40s" or "less than 10s". A lock that may have been held for so long is listed.`,
		Example: `  docent ls /locks --waiting --held-over 1m`,
		Args:    maybeDir, ValidArgsFunction: to.completePath(),
	}
	cmd.Flags().IntVar(&depth, "depth", 8, "levels to go down")
	cmd.Flags().BoolVar(&waiting, "waiting", false, "only locks that somebody waits for")
	cmd.Flags().DurationVar(&over, "held-over", 0, "only locks that may have been held for longer; 0 is all")
	form := formatFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if over < 0 {
			return usageError("--held-over %v is negative", over)
		}
		return to.connected(cmd, func(ctx context.Context, c *client.Client) error {
			dir := append(args, "/")[0]
			exists, _, err := c.Exists(ctx, dir)
			if err == nil && !exists {
				err = fmt.Errorf("%s does not exist", dir)
			}
			if err != nil {
				return err
			}
			var wanted []summary
			err = under(ctx, c, dir, depth, nil, cmd.ErrOrStderr(), func(s summary) {
				if (!waiting || s.Waiters > 0) && (over == 0 || s.heldOver(over, time.Now())) {
					wanted = append(wanted, s)
				}
			})
			if err != nil {
				return err
			}
			return write(cmd.OutOrStdout(), *form, wanted)
		})
	}
	return cmd
}
