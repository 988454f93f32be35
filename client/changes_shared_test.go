package client_test

import (
	"errors"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/zktest"
)

// Readers of one path share a watch, whatever they want to hear of.
func TestChangesShared(t *testing.T) {
	t.Parallel()
	onReleases(t, func(r *rig, _ zktest.Version) {
		c := r.Connect("a")
		r.create("/p", "")
		flat := r.watch(c, "/p")
		deep := r.watch(c, "/p", client.Recursive())
		late := r.watch(c, "/p")
		r.told(flat, "missed /p") // its watch became another
		r.create("/p/c", "")
		r.Check(r.Srv.SetData("/p/c", nil))
		r.create("/p/c/d", "")
		r.told(flat, "children /p")
		r.told(late, "children /p")
		r.told(deep, "created /p/c", "data /p/c", "created /p/c/d")
		deep.Close()
		time.Sleep(5 * time.Second)
		r.Check(r.Srv.SetData("/p", nil))
		r.told(late, "data /p")
		flat.Close()
		late.Close()
		r.wantNoWatches(c)
	})
}

// A reader learns why changes may have been missed, also after its watch has been set anew:
// a cut connection is no lost session.
func TestChangesSayWhyTheyMissed(t *testing.T) {
	t.Parallel()
	onReleases(t, func(r *rig, _ zktest.Version) {
		c := r.Connect("a")
		r.create("/p", "")
		flat, deep := r.watch(c, "/p"), r.watch(c, "/p", client.Recursive())
		r.told(flat, "missed /p") // its watch became another
		for range 2 {
			r.Srv.Client("a").Cut()
			for _, w := range []*client.Changes{flat, deep} {
				if why := r.told(w, "missed /p")[0].Err; why == nil || errors.Is(why, client.ErrSessionLost) {
					r.Errorf("the connection was cut, and a reader is told %v", why)
				}
			}
		}
		r.Srv.ExpireSession(r.Session(c).ID())
		for _, w := range []*client.Changes{flat, deep} {
			testrig.WantErr(r.T, r.told(w, "missed /p")[0].Err, client.ErrSessionLost)
		}
	})
}

// wantNoWatches checks that watches without a reader are removed in time.
func (r *rig) wantNoWatches(c *client.Client) {
	r.Helper()
	time.Sleep(5 * time.Second)
	if n, m := r.Srv.WatchCount(), client.HubSize(c); n != 0 || m != 0 {
		r.Errorf("left: %d watches there, %d here", n, m)
	}
}

// A server may keep one mode for a path. A one-shot watch must not take the place
// of a persistent one, whichever of the two comes first.
func TestChangesBesideOneShots(t *testing.T) {
	t.Parallel()
	onReleases(t, func(r *rig, _ zktest.Version) {
		c := r.Connect("a")
		r.create("/p", "")
		for _, opts := range [][]client.WatchOption{nil, {client.Recursive()}} {
			_, _, before, err := c.GetW(r.Ctx, "/p")
			r.Check(err)
			w := r.watch(c, "/p", opts...)
			_, _, after, err := c.ExistsW(r.Ctx, "/p")
			r.Check(err)
			_, _, kids, err := c.ChildrenW(r.Ctx, "/p")
			r.Check(err)
			r.Check(r.Srv.SetData("/p", nil))
			r.await("get", before.Done())
			r.await("exists", after.Done())
			_, _, again, err := c.GetW(r.Ctx, "/p")
			r.Check(err)
			again.Stop()
			_, _, again, err = c.ExistsW(r.Ctx, "/p")
			r.Check(err)
			time.Sleep(5 * time.Second) // a removal would take the persistent watch along
			r.Check(r.Srv.SetData("/p", nil))
			r.await("exists again", again.Done())
			r.Check(r.Srv.SetData("/p", nil))
			r.told(w, "data /p", "data /p", "data /p")
			r.create("/p/c", "")
			r.await("children", kids.Done())
			if opts == nil {
				r.told(w, "children /p")
			} else {
				r.told(w, "created /p/c")
			}
			// A one-shot watch that shares the persistent watch is woken when
			// that is closed.
			_, _, last, err := c.GetW(r.Ctx, "/p")
			r.Check(err)
			w.Close()
			r.await("the watch that went along", last.Done())
			_, _, last, err = c.GetW(r.Ctx, "/p")
			r.Check(err)
			r.Check(r.Srv.SetData("/p", nil))
			r.await("the watch that was left again", last.Done())
			r.Check(r.Srv.Delete("/p/c"))
			r.wantNoWatches(c)
		}
	})
}
