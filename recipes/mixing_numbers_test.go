package recipes_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
)

// numbered are the acquires that wait for a contender whose name is a number alone, each with
// the directory of their line.
func (r *rig) numbered(c *client.Client) map[string]struct {
	line      string
	wait, try acquirer
} {
	r.Helper()
	type way = struct {
		line      string
		wait, try acquirer
	}
	all := map[string]way{}
	for _, kind := range kinds {
		wait, try := r.acquirers(c, kind)
		line := dir
		if waitsIn[kind] == "semaphore" {
			line = dir + "/locks"
		}
		all[kind] = way{line, wait, try}
	}
	latch, err := recipes.NewLeaderLatch(c, dir)
	r.Check(err)
	all["latch"] = way{dir, as(latch.Campaign), as(latch.TryCampaign)}
	selector, err := recipes.NewLeaderSelector(c, dir)
	r.Check(err)
	all["selector"] = way{dir, as(selector.Campaign), as(selector.TryCampaign)}
	return all
}

// A lock that a program has written by hand may name its nodes by their numbers alone, as
// "create -s -e <dir>/" does. Curator's locks wait for these, by number, and so do ours.
func TestNumbersAloneAreWaitedFor(t *testing.T) {
	t.Parallel()
	for _, kind := range append([]string{"latch", "selector"}, kinds...) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				var log bytes.Buffer
				by := r.numbered(r.Connect("a", client.WithLogger(slog.New(slog.NewTextHandler(&log, nil)))))[kind]
				other := r.Connect("b")
				number := func() string {
					path, err := other.Create(r.Ctx, by.line+"/", []byte("10.0.0.7"), client.Ephemeral(), client.Sequential(), client.WithParents())
					r.Check(err)
					return path
				}
				first, second := number(), number()

				h, err := by.try(r.Ctx)
				var busy *recipes.BusyError
				if h != nil || !errors.As(err, &busy) || busy.Holder.Path != first || busy.Holder.Session != r.SessionID(other) {
					r.Fatalf("try: %v, %v; want busy by %s", h, err, first)
				}
				h, err = by.wait(r.Within(time.Minute))
				var ended *recipes.WaitError
				if h != nil || !errors.As(err, &ended) || ended.Ahead.Path != second {
					r.Fatalf("wait: %v, %v; want the end of a wait for %s", h, err, second)
				}
				if got := log.String(); strings.Count(got, "level=WARN") != 1 || !strings.Contains(got, second) || !strings.Contains(got, "docs/mixing.md") {
					r.Errorf("logged %q; want one warning that names %s", got, second)
				}

				granted := make(chan io.Closer, 1)
				go func() {
					h, err := by.wait(r.Ctx)
					r.Check(err)
					granted <- h
				}()
				time.Sleep(time.Second)
				later := number() // behind ours
				for _, gone := range []string{first, second} {
					select {
					case <-granted:
						r.Fatalf("granted while %s stands", gone)
					default:
					}
					r.Check(r.Srv.Delete(gone))
					time.Sleep(time.Second)
				}
				select {
				case h := <-granted:
					r.lives(h)
					r.Check(h.Close())
				default:
					r.Fatalf("not granted, with %s alone in line, which stands behind", later)
				}
			})
		})
	}
}

// A persistent node stays, so the error says what ends the wait.
func TestNumbersAloneWithoutASession(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		m := r.mutex(r.Connect("a"))
		r.Check(r.held(m).Release(r.Ctx))
		r.Check(r.Srv.Create(dir+"/0000000000", nil))
		_, err := m.Acquire(r.Within(time.Minute))
		testrig.WantErr(t, err, context.DeadlineExceeded)
		if want := dir + "/0000000000, of no session, so that it stays until it is deleted, "; !strings.Contains(err.Error(), want) {
			r.Errorf("%v; want %q in it", err, want)
		}
	})
}

// The numbers are the order, whatever else is in the names: one that came behind a holder
// waits for that, and the next of ours waits for it. docs/mixing.md says which programs do.
func TestNumbersAloneWaitForOurs(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		m := r.mutex(r.Connect("a"))
		h := r.held(m)
		other := r.Connect("b")
		node, err := other.Create(r.Ctx, dir+"/", nil, client.Ephemeral(), client.Sequential())
		r.Check(err)
		queue, err := m.Queue(r.Ctx)
		r.Check(err)
		if len(queue) != 2 || !queue[0].Holder || queue[1].Holder || queue[1].Path != node || queue[1].Mode != recipes.ModeExclusive {
			r.Errorf("queue: %v", queue)
		}
		waits := make(chan error, 1)
		go func() {
			h, err := m.Acquire(r.Ctx)
			if h != nil {
				_ = h.Close()
			}
			waits <- err
		}()
		time.Sleep(time.Second)
		r.Check(h.Release(r.Ctx))
		time.Sleep(time.Second)
		select {
		case err := <-waits:
			r.Fatalf("granted before %s has had its turn: %v", node, err)
		default:
		}
		r.Check(other.Delete(r.Ctx, node, client.AnyVersion))
		r.Check(<-waits)
	})
}
