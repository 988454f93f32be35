package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/docent-go/docent/client"
)

func newTop(to *target) *cobra.Command {
	var depth, count int
	var every time.Duration
	cmd := &cobra.Command{
		Use:   "top [DIR]",
		Short: "Show the locks at or below a directory again and again",
		Long: `Top shows the locks at or below a directory, again and again. Locks with waiters come first, the
longest wait before all others. On a terminal it shows as many as fit. While there is no
connection to a server it says so, and since when, above what it has seen last.`,
		Args: maybeDir, ValidArgsFunction: to.completePath(),
	}
	cmd.Flags().IntVar(&depth, "depth", 8, "levels to go down")
	cmd.Flags().IntVar(&count, "count", 0, "stop after so many pictures; 0 is never")
	cmd.Flags().DurationVar(&every, "interval", 2*time.Second, "time between two pictures")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if every <= 0 {
			return usageError("--interval %v is not positive", every)
		}
		return to.connected(cmd, func(ctx context.Context, c *client.Client) error {
			s := &screen{c: c, out: cmd.OutOrStdout(), dir: append(args, "/")[0], depth: depth}
			if err := s.run(ctx, every, count); ctx.Err() == nil {
				return err
			}
			return nil // told to end
		})
	}
	return cmd
}

// picture is what a look at all locks has shown.
type picture struct {
	at    time.Time
	locks []summary
	warn  bytes.Buffer
	err   error
}

// screen shows pictures, one in the place of the other on a terminal.
type screen struct {
	c     *client.Client
	out   io.Writer
	dir   string
	depth int
	last  *picture
}

// run shows count pictures, or goes on until ctx ends.
func (s *screen) run(ctx context.Context, every time.Duration, count int) error {
	again := time.NewTicker(every)
	defer again.Stop()
	for n := 1; ; n++ {
		if err := s.look(ctx, again.C); err != nil || n == count {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-again.C:
		}
	}
}

// look reads all locks and shows them. While that takes longer, because there is no
// connection, it shows the last picture again, and says that it is old.
func (s *screen) look(ctx context.Context, again <-chan time.Time) error {
	read := make(chan *picture, 1)
	go func() { // ends with ctx
		p := &picture{}
		p.locks, p.err = under(ctx, s.c, s.dir, s.depth, &p.warn)
		p.at = time.Now()
		read <- p
	}()
	for {
		select {
		case p := <-read:
			if p.err != nil {
				return p.err
			}
			slices.SortStableFunc(p.locks, byWait)
			s.last = p
			return s.show("")
		case <-again:
			if s.last != nil && s.c.State() != client.Connected {
				if err := s.show("no connection: what follows was seen at " + s.last.at.UTC().Format(time.RFC3339)); err != nil {
					return err
				}
			}
		}
	}
}

// byWait orders locks by their longest waits. Locks without waiters come last.
func byWait(a, b summary) int {
	switch {
	case a.LongestSince == nil || b.LongestSince == nil:
		return cmp.Compare(min(1, b.Waiters), min(1, a.Waiters))
	default:
		return a.LongestSince.Compare(*b.LongestSince)
	}
}

// show writes the last picture, below a word about it.
func (s *screen) show(word string) error {
	var text bytes.Buffer
	p := s.last
	if word != "" {
		word = "\n" + word
	}
	_, _ = text.Write(p.warn.Bytes())
	_, _ = fmt.Fprintf(&text, "%s  %s  %s  %s%s\n\n", time.Now().UTC().Format(time.RFC3339), s.dir, counted(len(p.locks), "lock", "locks"), s.c.Product(), word)
	locks, more := p.locks, 0
	if height := s.height(); height > 0 {
		room := max(1, height-bytes.Count(text.Bytes(), []byte("\n"))-3) // the heading, a line about more, and the cursor
		more = max(0, len(locks)-room)
		locks = locks[:len(locks)-more]
	}
	if err := write(&text, table, locks); err != nil {
		return err
	}
	if more > 0 {
		_, _ = fmt.Fprintf(&text, "and %d more: docent ls %s\n", more, s.dir)
	}
	if terminal(s.out) {
		if _, err := fmt.Fprint(s.out, "\x1b[H\x1b[2J"); err != nil {
			return err
		}
	}
	_, err := s.out.Write(text.Bytes())
	return err
}

// height is the number of lines of the terminal, 0 without one.
func (s *screen) height() int {
	f, ok := s.out.(*os.File)
	if !ok || !terminal(s.out) {
		return 0
	}
	_, height, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return height
}
