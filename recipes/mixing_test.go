package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// acquirer is a way to get at dir. What it returns releases it.
type acquirer func(context.Context) (io.Closer, error)

func as[H io.Closer](f func(context.Context) (H, error)) acquirer {
	return func(ctx context.Context) (io.Closer, error) {
		h, err := f(ctx)
		if err != nil {
			return nil, err
		}
		return h, nil
	}
}

// kinds are the recipes that return a hold, each with both its acquires.
var kinds = []string{"mutex", "multi-lock", "read", "write", "semaphore", "semaphore mutex"}

func (r *rig) acquirers(c *client.Client, kind string) (wait, try acquirer) {
	r.Helper()
	switch kind {
	case "mutex":
		m, err := recipes.NewInterProcessMutex(c, dir)
		r.Check(err)
		return as(m.Acquire), as(m.TryAcquire)
	case "multi-lock":
		m, err := recipes.NewInterProcessMutex(c, dir)
		r.Check(err)
		l, err := recipes.NewInterProcessMultiLock(m)
		r.Check(err)
		return as(l.Acquire), as(l.TryAcquire)
	case "read", "write":
		l, err := recipes.NewInterProcessReadWriteLock(c, dir)
		r.Check(err)
		if kind == "read" {
			return as(l.ReadLock().Acquire), as(l.ReadLock().TryAcquire)
		}
		return as(l.WriteLock().Acquire), as(l.WriteLock().TryAcquire)
	case "semaphore":
		s, err := recipes.NewInterProcessSemaphoreV2(c, dir, 1)
		r.Check(err)
		one := func(f func(context.Context, int) (*recipes.Lease, error)) acquirer {
			return as(func(ctx context.Context) (*recipes.Lease, error) { return f(ctx, 1) })
		}
		return one(s.Acquire), one(s.TryAcquire)
	case "semaphore mutex":
		m, err := recipes.NewInterProcessSemaphoreMutex(c, dir)
		r.Check(err)
		return as(m.Acquire), as(m.TryAcquire)
	}
	r.Fatalf("what is a %s?", kind)
	return nil, nil
}

// waitsIn is the line that a kind waits in.
var waitsIn = map[string]string{"mutex": "mutex", "multi-lock": "mutex", "read": "read/write lock", "write": "read/write lock", "semaphore": "semaphore", "semaphore mutex": "semaphore"}

// wantRefused checks that an acquire failed because of a foreign lock, with an
// error that names the recipe, the node and what to do.
func (r *rig) wantRefused(what string, h io.Closer, err error, recipe, node string) {
	r.Helper()
	text := fmt.Sprint(err)
	if h != nil || !errors.Is(err, recipes.ErrForeignLock) || errors.Is(err, recipes.ErrBusy) ||
		!strings.Contains(text, recipe) || !strings.Contains(text, node) || !strings.Contains(text, "a path of its own") {
		r.Errorf("%s: %v, %v; want a refusal that names a %s and %s", what, h, err, recipe, node)
	}
}

// lives checks that a hold was not disturbed.
func (r *rig) lives(held io.Closer) {
	r.Helper()
	h, ok := held.(interface{ Err() error })
	if !ok || h.Err() != nil {
		r.Errorf("%v does not hold", held)
	}
}

// Each recipe of ours beside each. Recipes of one line exclude each other, or
// share. All others are refused while the first is held. The holder is not
// disturbed. Once the holder and its directories are gone, the other recipe has
// the path.
func TestMixingOurOwn(t *testing.T) {
	t.Parallel()
	for _, first := range kinds {
		for _, second := range kinds {
			t.Run(first+"/"+second, func(t *testing.T) {
				t.Parallel()
				bubble(t, func(r *rig) {
					hold, _ := r.acquirers(r.Connect("a"), first)
					b := r.Connect("b")
					wait, try := r.acquirers(b, second)
					held, err := hold(r.Ctx)
					r.Check(err)
					for name, acquire := range map[string]acquirer{"acquire": wait, "try": try} {
						h, err := acquire(r.Within(time.Minute))
						switch {
						case waitsIn[first] != waitsIn[second]:
							node := "-" // in the name of one of its nodes
							if waitsIn[first] == "semaphore" {
								node = dir + "/locks and " + dir + "/leases"
							}
							r.wantRefused(name, h, err, waitsIn[first], node)
						case first == "read" && second == "read":
							r.Check(err)
							r.Check(h.Close())
						case name == "acquire":
							testrig.WantErr(t, err, context.DeadlineExceeded)
						default:
							testrig.WantErr(t, err, recipes.ErrBusy)
						}
					}
					r.lives(held)
					time.Sleep(time.Second)
					r.Check(held.Close())
					for _, child := range r.Srv.Children(dir) { // as the server's sweep does
						r.Check(r.Srv.Delete(dir + "/" + child))
					}
					for _, acquire := range []acquirer{wait, try} {
						h, err := acquire(r.Ctx)
						r.Check(err)
						r.Check(h.Close())
					}
				})
			})
		}
	}
}

const (
	curatorsID = "_c_0c708091-6d54-4320-8594-f6fdb71d5f95-"
	oursID     = "_c_0c708091-6d54-8320-8594-f6fdb71d5f95-"
	goID       = "_c_0c7080916d5443208594f6fdb71d5f95-"
	kazoosID   = "0c7080916d5443208594f6fdb71d5f95"
)

// foreignNodes are the nodes that other recipes and libraries make on a path.
// With each are the kinds that are refused beside it, and what the refusal says.
var foreignNodes = []struct {
	name    string
	child   string // an ephemeral sequential node; the number is appended
	recipe  string
	library string
	refused []string
}{
	{"Curator's LeaderLatch", curatorsID + "latch-", "LeaderLatch", "Curator", kinds},
	{"another program's LeaderLatch", "_c_0c708091-6d54-1320-8594-f6fdb71d5f95-latch-", "LeaderLatch", "an unknown library", kinds},
	{"Curator's mutex", curatorsID + "lock-", "mutex", "Curator", kinds[2:]},
	{"our mutex", oursID + "lock-", "mutex", "Docent", kinds[2:]},
	{"go-zookeeper's lock", goID + "lock-", "mutex", "go-zookeeper", kinds[2:]},
	{"Curator's read lock", curatorsID + "__READ__", "read/write lock", "Curator", []string{"mutex", "multi-lock", "semaphore", "semaphore mutex"}},
	{"Curator's write lock", curatorsID + "__WRIT__", "read/write lock", "Curator", []string{"mutex", "multi-lock", "semaphore", "semaphore mutex"}},
	{"our write lock", oursID + "__WRIT__", "read/write lock", "Docent", []string{"mutex", "multi-lock", "semaphore", "semaphore mutex"}},
	{"a semaphore's lease", curatorsID + "lease-", "semaphore", "Curator", kinds},
	{"kazoo's lock", kazoosID + "__lock__", "lock", "kazoo", kinds},
	{"kazoo's read lock", kazoosID + "__rlock__", "lock", "kazoo", kinds},
}

// A node of another recipe or library is refused by name, whichever recipe of
// ours comes, and leaves no node of ours behind. It costs no request: what the
// names say is in the list that is there.
func TestMixingStrangers(t *testing.T) {
	t.Parallel()
	for _, s := range foreignNodes {
		for _, kind := range kinds {
			if !slices.Contains(s.refused, kind) {
				continue // TestMixingOurOwn, TestRWLock..., TestGoZookeeperLock
			}
			t.Run(s.name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				bubble(t, func(r *rig) {
					c := r.Connect("a")
					node, err := c.Create(r.Ctx, dir+"/"+s.child, nil, client.Ephemeral(), client.Sequential(), client.WithParents())
					r.Check(err)
					_, try := r.acquirers(c, kind)
					wait, _ := r.acquirers(c, kind) // which knows nothing of the refusal
					r.Srv.ResetCounts()
					h, err := try(r.Ctx)
					r.wantRefused("try", h, err, "a "+s.recipe+" of "+s.library+":", node)
					if n := r.Srv.Count(zktest.OpGetChildren2); n != 1 || r.Srv.Count(zktest.OpCreate) != 0 || r.Srv.Count(zktest.OpGetData) != 0 {
						r.Errorf("try: %v", r.Srv.Counts())
					}
					r.Srv.ResetCounts()
					h, err = wait(r.Ctx)
					r.wantRefused("acquire", h, err, "a "+s.recipe+" of "+s.library+":", node)
					if n := r.Srv.Count(zktest.OpGetChildren2); n != 1 || r.Srv.Count(zktest.OpGetData) != 0 || r.Srv.Count(zktest.OpExists) != 0 {
						r.Errorf("acquire: %v", r.Srv.Counts())
					}
					if left := r.Srv.Children(dir); len(left) != 1 { // when the acquire has returned
						r.Errorf("left behind: %v", left)
					}
					r.Srv.ResetCounts()
					h, err = wait(r.Ctx)
					r.wantRefused("again", h, err, "a "+s.recipe+" of "+s.library+":", node)
					if n := r.Srv.Count(zktest.OpCreate) + r.Srv.Count(zktest.OpMulti); n != 0 {
						r.Errorf("a lock that was refused makes %d nodes before it looks", n)
					}
					r.Check(r.Srv.Delete(node))
					for _, acquire := range []acquirer{wait, try} {
						h, err := acquire(r.Ctx)
						r.Check(err)
						r.Check(h.Close())
					}
				})
			})
		}
	}
}

// A stranger that comes later takes nothing from the holder. A waiter is refused
// at its next look, and so is every later acquire.
func TestMixingComesLater(t *testing.T) {
	t.Parallel()
	for _, s := range foreignNodes {
		for _, kind := range kinds {
			if !slices.Contains(s.refused, kind) {
				continue
			}
			t.Run(s.name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				bubble(t, func(r *rig) {
					holder, _ := r.acquirers(r.Connect("a"), "write")
					if kind != "read" { // a reader waits behind a writer
						holder, _ = r.acquirers(r.Connect("a"), kind)
					}
					wait, try := r.acquirers(r.Connect("b"), kind)
					if strings.HasPrefix(kind, "semaphore") { // a value that has looked before
						h, err := wait(r.Ctx)
						r.Check(err)
						r.Check(h.Close())
					}
					held, err := holder(r.Ctx)
					r.Check(err)
					waited := make(chan error, 1)
					go func() {
						h, err := wait(r.Ctx)
						if h != nil {
							_ = h.Close()
						}
						waited <- err
					}()
					time.Sleep(time.Second)
					c := r.Connect("c")
					node, err := c.Create(r.Ctx, dir+"/"+s.child, nil, client.Ephemeral(), client.Sequential())
					r.Check(err)
					time.Sleep(time.Minute)
					r.lives(held)
					r.Check(held.Close())
					if err := <-waited; kind == "write" || strings.HasPrefix(kind, "semaphore") { // its turn needs a look
						testrig.WantErr(t, err, recipes.ErrForeignLock)
					} else {
						r.Check(err) // directly behind the holder, and so granted without a look
					}
					h, err := try(r.Ctx)
					r.wantRefused("later", h, err, s.recipe, node)
				})
			})
		}
	}
}

// A path is for one recipe, also within one client.
func TestTwoRecipesOfOneClientOnOnePath(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		m, l := r.mutex(c), r.rw(c)
		for range 4 {
			r.Check(r.held(m).Release(r.Ctx))
		}
		h := r.held(m)
		ctx, cancel := context.WithTimeout(r.Ctx, time.Minute)
		defer cancel()
		_, err := l.WriteLock().Acquire(ctx)
		testrig.WantErr(t, err, recipes.ErrForeignLock)
		_, err = l.ReadLock().Acquire(ctx)
		testrig.WantErr(t, err, recipes.ErrForeignLock)
		r.Check(h.Release(r.Ctx))
	})
}
