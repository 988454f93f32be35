package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/docent-go/docent/client"
)

// summary is a lock as `docent ls` and `docent top` write it.
type summary struct {
	Path    string `col:"PATH"    json:"path"`
	Kind    string `col:"KIND"    json:"kind"`
	Holders int    `col:"HOLDERS" json:"holders"`
	Waiters int    `col:"WAITERS" json:"waiters"`
	Holder  string `col:"HOLDER"  json:"holder"`       // the first
	ID      string `col:"ID,some" json:"id,omitempty"` // of the leader of a latch
	Host    string `col:"HOST"    json:"host"`
	Library string `col:"LIBRARY,wide" json:"library"`
	Session string `col:"SESSION,wide" json:"session"`
	Held    string `col:"HELD"    json:"-"`
	Longest string `col:"LONGEST WAIT" json:"-"`

	HeldSince    *time.Time `json:"held_since"`
	LongestSince *time.Time `json:"longest_wait_since"`
}

// summarise reads the queue of a lock.
func summarise(ctx context.Context, l lock, now time.Time) (summary, error) {
	queue, err := l.queue(ctx)
	if err != nil {
		return summary{}, err
	}
	s := summary{Path: l.path, Kind: l.kind}
	for _, r := range rows(l, queue, now) {
		switch {
		case r.State == holds && s.Holders == 0:
			s.Holder, s.ID, s.Host, s.Library, s.Session = r.Client, r.ID, r.Host, r.Library, r.Session
			s.Held, s.HeldSince = r.Held, r.HeldSince
			s.Holders++
		case r.State == holds:
			s.Holders++
		default:
			s.Waiters++
			if s.LongestSince == nil || r.QueuedSince != nil && r.QueuedSince.Before(*s.LongestSince) {
				s.Longest, s.LongestSince = r.Age, r.QueuedSince
			}
		}
	}
	return s, nil
}

// under summarises all locks at or below dir. It says on warn what it could not read.
func under(ctx context.Context, c *client.Client, dir string, depth int, warn io.Writer) (all []summary, err error) {
	now := time.Now()
	err = walk(ctx, c, dir, depth, func(l lock) error {
		s, err := summarise(ctx, l, now)
		all = append(all, s)
		return err
	}, func(dir string) {
		_, _ = fmt.Fprintf(warn, "docent: may not list %s: locks at or below it are not shown\n", dir)
	})
	return all, err
}

func newList(to *target) *cobra.Command {
	var depth int
	cmd := &cobra.Command{
		Use:   "ls [DIR]",
		Short: "List the locks at or below a directory",
		Long: `Ls lists the locks at or below a directory, by default all of them. A lock shows if a
contender is there, or if a semaphore's directories are.`,
		Args: maybeDir, ValidArgsFunction: to.completePath(),
	}
	cmd.Flags().IntVar(&depth, "depth", 8, "levels to go down")
	form := formatFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return to.connected(cmd, func(ctx context.Context, c *client.Client) error {
			dir := append(args, "/")[0]
			exists, _, err := c.Exists(ctx, dir)
			if err == nil && !exists {
				err = fmt.Errorf("%s does not exist", dir)
			}
			if err != nil {
				return err
			}
			all, err := under(ctx, c, dir, depth, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			return write(cmd.OutOrStdout(), *form, all)
		})
	}
	return cmd
}
