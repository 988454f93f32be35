package client_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/zktest"
)

// watch is Client.Watch for a watch that must stand.
func (r *rig) watch(c *client.Client, path string, opts ...client.WatchOption) *client.Changes {
	r.Helper()
	w, err := c.Watch(r.Ctx, path, opts...)
	r.Check(err)
	r.Cleanup(w.Close)
	r.told(w, "missed "+path)
	return w
}

// told reads as many changes as it names, each as "kind path".
func (r *rig) told(w *client.Changes, want ...string) (got []client.Change) {
	r.Helper()
	for _, one := range want {
		change, err := w.Next(r.Within(time.Minute))
		if is := fmt.Sprint(change.Kind, " ", change.Path); err != nil || is != one {
			r.Fatalf("told %q, %v; want %q of %q", is, err, one, want)
		}
		got = append(got, change)
	}
	return got
}

// toldNothing checks that nothing waits.
func (r *rig) toldNothing(w *client.Changes) {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Ctx, 2*time.Second)
	defer cancel()
	if change, err := w.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
		r.Errorf("told %+v, %v", change, err)
	}
}

// onReleases runs f on servers that know persistent watches, and differ in how
// many modes they keep and in whether they name transactions.
func onReleases(t *testing.T, f func(r *rig, v zktest.Version)) {
	t.Helper()
	for _, v := range []zktest.Version{zktest.ZooKeeper380, zktest.ZooKeeper384, zktest.ZooKeeper39} {
		t.Run(v.String(), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) { f(r, v) }, zktest.WithVersion(v))
		})
	}
}

func TestChanges(t *testing.T) {
	t.Parallel()
	onReleases(t, func(r *rig, v zktest.Version) {
		r.create("/app", "")
		c, err := r.Connect("a").Namespace("app")
		r.Check(err)
		flat, deep := r.watch(c, "/p"), r.watch(c, "/", client.Recursive())
		r.create("/app/p", "")
		r.Check(r.Srv.SetData("/app/p", nil))
		r.Check(r.Srv.SetData("/app/p", nil))
		r.create("/app/p/c", "")
		r.Check(r.Srv.SetData("/app/p/c", nil))
		r.Check(r.Srv.Delete("/app/p/c"))
		r.Check(r.Srv.Delete("/app/p"))
		r.create("/apple", "") // a neighbour
		all := r.told(flat, "created /p", "data /p", "data /p", "children /p", "children /p", "deleted /p")
		r.told(deep, "created /p", "data /p", "data /p", "created /p/c", "data /p/c", "deleted /p/c", "deleted /p")
		for i, change := range all {
			if named := change.Zxid > 0; named != (v == zktest.ZooKeeper39) || change.State == 0 || change.Err != nil {
				r.Errorf("%+v", change)
			}
			if i > 0 && v == zktest.ZooKeeper39 && change.Zxid <= all[i-1].Zxid {
				r.Errorf("%+v after %+v", change, all[i-1])
			}
		}
		r.toldNothing(flat)
		r.toldNothing(deep)
	})
}

// After a reconnection, and in a new session, the watch stands before its reader
// is told to read again.
func TestChangesAfterLoss(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		lose func(*rig, *client.Client)
		why  error
	}{
		"connection": {func(r *rig, _ *client.Client) { r.Srv.CutAll() }, nil},
		"session":    {func(r *rig, c *client.Client) { r.Srv.ExpireSession(r.Session(c).ID()) }, client.ErrSessionLost},
		"both":       {func(r *rig, c *client.Client) { r.Srv.CutAll(); r.Srv.ExpireSession(r.Session(c).ID()) }, client.ErrSessionLost},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onReleases(t, func(r *rig, _ zktest.Version) {
				c := r.Connect("a")
				r.create("/p", "")
				flat, deep := r.watch(c, "/p"), r.watch(c, "/p", client.Recursive())
				r.told(flat, "missed /p")
				for range 3 {
					r.Check(r.Srv.SetData("/p", nil))
					r.told(flat, "data /p")
					r.told(deep, "data /p")
					tt.lose(r, c)
					for _, w := range []*client.Changes{flat, deep} {
						if got := r.told(w, "missed /p")[0]; got.Err == nil || tt.why != nil && !errors.Is(got.Err, tt.why) {
							r.Errorf("missed because of %v, want %v", got.Err, tt.why)
						}
					}
				}
				r.Check(r.Srv.SetData("/p", nil))
				r.told(flat, "data /p")
				r.told(deep, "data /p")
			})
		})
	}
}

// A reader that is too slow is told so, and holds up no other reader.
func TestChangesOverflow(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		r.create("/p", "")
		slow, quick := r.watch(c, "/p", client.WatchQueue(3)), r.watch(c, "/p")
		for range 4 {
			r.Check(r.Srv.SetData("/p", nil))
			time.Sleep(time.Second)
		}
		if got := r.told(slow, "missed /p")[0]; !errors.Is(got.Err, client.ErrOverflow) {
			r.Errorf("missed because of %v", got.Err)
		}
		r.toldNothing(slow)
		r.told(quick, "data /p", "data /p", "data /p", "data /p")
		r.Check(r.Srv.SetData("/p", nil))
		r.told(slow, "data /p")
	})
}

// All ends of a watch, and what its reader is told.
func TestChangesEnd(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		end   func(r *rig, c *client.Client, w *client.Changes, cancel func())
		err   error
		loop  error // what the loop is told
		queue bool  // what was not read is still told
	}{
		"context": {func(_ *rig, _ *client.Client, _ *client.Changes, cancel func()) { cancel() }, context.Canceled, nil, true},
		"watch":   {func(_ *rig, _ *client.Client, w *client.Changes, _ func()) { w.Close(); w.Close() }, client.ErrClosed, nil, false},
		"client":  {func(r *rig, c *client.Client, _ *client.Changes, _ func()) { r.Check(c.Close()) }, client.ErrClosed, client.ErrClosed, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				c := r.Connect("a")
				ctx, cancel := context.WithCancel(r.Ctx)
				defer cancel()
				w, err := c.Watch(ctx, "/p")
				r.Check(err)
				r.told(w, "missed /p")
				r.create("/p", "")
				time.Sleep(time.Second)
				tt.end(r, c, w, cancel)
				synctest.Wait()
				if tt.queue {
					r.told(w, "created /p")
				}
				_, err = w.Next(r.Ctx)
				testrig.WantErr(r.T, err, tt.err)
				for _, err := range w.All() {
					if tt.loop == nil || !errors.Is(err, tt.loop) {
						r.Errorf("the loop was told %v, want %v", err, tt.loop)
					}
				}
				w.Close()
				r.wantNoWatches(c)
			})
		})
	}
}

func TestChangesAll(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		w := r.watch(c, "/p")
		r.create("/p", "")
		r.Check(r.Srv.Delete("/p"))
		for change, err := range w.All() {
			if err != nil || change.Kind == client.ChangeDeleted {
				break
			}
		}
		r.create("/p", "")
		r.told(w, "created /p") // a loop that was left leaves the watch as it is
	})
}

// Watch says at once what can never be.
func TestWatchRefused(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a", client.WithMaxRequest(2048))
		_, err := c.Watch(r.Ctx, "p")
		testrig.WantErr(r.T, err, client.ErrInvalidPath)
		wantOutcome(r.T, err, client.OutcomeNeverSent)
		_, err = c.Watch(r.Ctx, "/"+strings.Repeat("p", 2048))
		testrig.WantErr(r.T, err, client.ErrTooLarge)
		r.Srv.Ignore(zktest.Match{Op: zktest.OpAddWatch, Times: 1})
		_, err = c.Watch(r.Within(time.Second), "/p")
		testrig.WantErr(r.T, err, context.DeadlineExceeded)
		r.Check(c.Close())
		_, err = c.Watch(r.Ctx, "/p")
		testrig.WantErr(r.T, err, client.ErrClosed)
	})
}

// Keeper is never asked for a persistent watch, also if many begin while one is being refused. It
// would close the connection, and the session would end.
func TestWatchUnsupportedTogether(t *testing.T) {
	t.Parallel()
	keeper(t, func(r *rig) {
		c := r.Connect("a")
		s := r.Session(c)
		for range 300 {
			var all sync.WaitGroup
			for n := range 8 {
				all.Go(func() {
					for range n { // the goroutines come one after the other
						runtime.Gosched()
					}
					_, err := c.Watch(r.Ctx, "/p")
					testrig.WantErr(r.T, err, client.ErrUnsupported)
				})
			}
			all.Wait()
		}
		r.Check(s.Err())
		if n := r.asked(zktest.OpAddWatch); n != 0 {
			r.Errorf("asked %d times", n)
		}
	})
}

// A server that has no persistent watches is asked once, and a hold outlives that.
// ClickHouse Keeper is never asked.
func TestWatchUnsupported(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		opt   zktest.Option
		asked int
	}{
		"ZooKeeper": {zktest.WithVersion(zktest.ZooKeeper35), 1},
		"Keeper":    {zktest.WithProfile(zktest.ClickHouseKeeper), 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				c := r.Connect("a")
				s := r.Session(c)
				h := r.keep(s)
				defer h.Done()
				for range 3 {
					_, err := c.Watch(r.Ctx, "/p")
					testrig.WantErr(r.T, err, client.ErrUnsupported)
					wantErrText(r.T, err, "persistent watches (Apache ZooKeeper 3.6.0 or later)", "client: not")
				}
				r.Check(s.Err())
				if n := r.asked(zktest.OpAddWatch); n != tt.asked {
					r.Errorf("asked %d times", n)
				}
			}, tt.opt)
		})
	}
}
