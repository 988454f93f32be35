package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/cmd/docent/internal/console"
)

func newTop(to *target, from streams) *cobra.Command {
	var depth, count int
	var every time.Duration
	cmd := &cobra.Command{
		Use:   "top [DIR]",
		Short: "Show the locks at or below a directory again and again",
		Long: `Top shows the locks at or below a directory, again and again. Locks with waiters come first, the
longest wait before all others, and then the longest hold. Elections come behind these: their
candidates wait by design. On a terminal it shows as many as fit, and
follows its size. While it has no connection, or no answer, it says so and since when, above what it
has seen last, and goes on by itself afterwards.

Top remembers what it has seen: the longer it runs, the better it knows since when a lock is held.

On a terminal it takes keys: q ends it, s takes another order, / filters by path, holder and host, w leaves
out locks without waiters, the arrows (or j and k) select a lock, Enter shows its queue, a asks its
holder to release (after a y), Esc goes back.`,
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
			s := &screen{c: c, out: cmd.OutOrStdout(), dir: append(args, "/")[0], depth: depth, every: every, seen: &sightings{}}
			restore, err := s.open(from)
			if err != nil {
				return err
			}
			defer restore()
			if err := s.run(ctx, count); ctx.Err() == nil {
				return err
			}
			return nil // told to end
		})
	}
	return cmd
}

// screen shows pictures, one in the place of the other on a terminal.
type screen struct {
	c     *client.Client
	out   io.Writer
	dir   string
	depth int
	every time.Duration
	seen  *sightings // of the goroutine that looks

	view    view
	last    *picture // nil before the first
	failed  error    // of the last look
	gone    time.Time
	shown   string // on the terminal
	pressed chan string
	resized chan os.Signal

	answered atomic.Int64 // when a lock was read, or a look began, in ns
}

// open makes a terminal ready for drawing, and for keys if standard input is one. restore gives
// it back.
func (s *screen) open(from streams) (restore func(), err error) {
	s.pressed, s.resized = make(chan string), make(chan os.Signal, 1)
	if !terminal(s.out) {
		return func() {}, nil
	}
	console.NotifyResized(s.resized)
	back := func() { signal.Stop(s.resized) }
	in := from.in
	if in == nil || !term.IsTerminal(int(in.Fd())) {
		return back, nil
	}
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return back, err
	}
	s.view.keys = true
	_, _ = io.WriteString(s.out, "\x1b[?1049h\x1b[?25l") // another screen, without a cursor
	go s.read(in)                                        // until the end of the input
	return func() {
		back()
		_, _ = io.WriteString(s.out, "\x1b[?25h\x1b[?1049l")
		_ = term.Restore(int(in.Fd()), before)
	}, nil
}

// read sends keys.
func (s *screen) read(in io.Reader) {
	buf := make([]byte, 64)
	for {
		n, err := in.Read(buf)
		if err != nil {
			return
		}
		for _, key := range keysOf(string(buf[:n])) {
			s.pressed <- key
		}
	}
}

// keysOf are the keys in what was read at once: several if they were pressed fast, or pasted. A
// sequence such as that of an arrow is one key, and comes in one piece.
func keysOf(read string) (keys []string) {
	for read != "" {
		_, n := utf8.DecodeRuneInString(read)
		if sequence := escape.FindString(read); sequence != "" {
			n = len(sequence)
		}
		keys, read = append(keys, read[:n]), read[n:]
	}
	return keys
}

// escape is what a terminal sends for a key that is no character.
var escape = regexp.MustCompile(`^\x1b(\[[0-9;]*[@-~]|O[@-~])`)

// run shows count pictures, or goes on until ctx ends or a key says so.
func (s *screen) run(ctx context.Context, count int) error {
	pictures := make(chan *picture)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go s.looks(ctx, pictures)
	again := time.NewTicker(min(s.every, time.Second))
	defer again.Stop()
	for n := 0; ; {
		news := true
		select {
		case <-ctx.Done():
			return nil
		case p := <-pictures:
			if p.err != nil && (s.last == nil || errors.Is(p.err, client.ErrClosed)) {
				return p.err
			}
			if s.failed = p.err; p.err == nil {
				s.last = p
				n++
			}
		case k := <-s.pressed:
			switch s.view.key(k, s.last) {
			case quit:
				return nil
			case askHolder:
				s.ask(ctx)
			case nothing:
			}
		case <-s.resized:
		case <-again.C:
			news = false
		}
		if err := s.draw(time.Now(), news); err != nil || n == count && n > 0 {
			return err
		}
	}
}

// looks reads all locks again and again, until ctx ends.
func (s *screen) looks(ctx context.Context, to chan<- *picture) {
	again := time.NewTicker(s.every)
	defer again.Stop()
	for whole := true; ; {
		s.seen.next(whole)
		p := &picture{}
		s.answered.Store(time.Now().UnixNano())
		p.err = under(ctx, s.c, s.dir, s.depth, s.seen, &p.warn, func(one summary) {
			p.locks = append(p.locks, one)
			s.answered.Store(time.Now().UnixNano())
		})
		if p.err == nil && len(p.locks) == 0 {
			var exists bool
			exists, _, p.err = s.c.Exists(ctx, s.dir)
			p.gone = !exists
		}
		p.at, whole = time.Now(), p.err == nil
		s.answered.Store(0) // nothing is asked
		select {
		case to <- p:
		case <-ctx.Done():
			return
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return
		}
	}
}

// silence is how long a look may go on without an answer until top says so.
const silence = 1500 * time.Millisecond

// blind says why what is shown may be old, "" if it is not.
func (s *screen) blind(now time.Time) string {
	if s.c.State() == client.Connected {
		s.gone = time.Time{}
	} else if s.gone.IsZero() {
		s.gone = now
	}
	asked := s.answered.Load()
	var why string
	switch {
	case !s.gone.IsZero():
		why = "no connection since " + clock(s.gone)
	case asked != 0 && now.Sub(time.Unix(0, asked)) > silence:
		why = "no answer since " + clock(time.Unix(0, asked))
	case s.failed != nil:
		why = "the last look failed: " + shown(s.failed.Error())
	default:
		return ""
	}
	if s.last == nil {
		return why
	}
	return why + "; what follows was seen at " + clock(s.last.at)
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05") }

// draw shows the last picture, and how old it is. Without news it does so only if a word about
// that is due, or on a terminal, if anything has changed.
func (s *screen) draw(now time.Time, news bool) error {
	word := s.blind(now)
	onTerminal := terminal(s.out)
	if !onTerminal && !news && word == "" {
		return nil
	}
	locks, waited := 0, 0
	if s.last != nil {
		locks = len(s.last.locks)
		for _, l := range s.last.locks {
			waited += min(1, l.Waiters)
		}
	}
	head := fmt.Sprintf("%s  %s  %s, %d with waiters  %s", now.UTC().Format(time.RFC3339), s.dir, counted(locks, "lock", "locks"), waited, s.c.Product())
	lines := s.view.lines(s.last, head, word, s.size())
	if !onTerminal {
		_, err := io.WriteString(s.out, strings.Join(lines, "\n")+"\n\n")
		return err
	}
	var text bytes.Buffer
	text.WriteString("\x1b[H")
	for i, line := range lines {
		if i > 0 {
			text.WriteString("\r\n")
		}
		text.WriteString(line + "\x1b[K") // what stood behind it goes
	}
	text.WriteString("\x1b[J")
	if text.String() == s.shown {
		return nil
	}
	s.shown = text.String()
	_, err := s.out.Write(text.Bytes())
	return err
}

// size is that of the terminal.
func (s *screen) size() size {
	f, ok := s.out.(*os.File)
	if !ok || !terminal(s.out) {
		return size{}
	}
	width, height, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return size{}
	}
	return size{width, height}
}

// ask asks the holder that the view has a question about.
func (s *screen) ask(ctx context.Context) {
	about := s.view.question
	s.view.question = nil
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second) // the screen stands still meanwhile
	defer cancel()
	for i, who := range about.queue {
		if about.rows[i].State != holds {
			continue
		}
		_, err := unchanged(ctx, s.c, who)
		if err == nil {
			err = about.lock.ask(ctx, who)
		}
		s.view.said = "asked " + shown(who.Path)
		if err != nil {
			s.view.said = "not asked: " + shown(err.Error())
		}
		return
	}
}
