package recipes_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// belowALock is a contender for a lock whose path is below another lock's.
const belowALock = "/locks/" + curatorsID + "lock-0000000001"

// What is no lock fails no acquire, whatever it is called.
func TestMixingNotLocks(t *testing.T) {
	t.Parallel()
	for _, children := range [][]string{
		{""}, // DistributedBarrier: the path itself, persistent
		{"/config", "/_c_config", "/7", "/00000000001", "/000000000", "/x0000000001", "/0000000001x", "/-202411250"},
		{"/ready", "/0c708091-6d54-4320-8594-f6fdb71d5f95"},                                            // DistributedDoubleBarrier
		{"/queue-0000000000", "/queue-|id|0000000001", "/queue-1000000050000000002", "/qn-0000000003"}, // DistributedQueue and its kin
		{"/member-1", "/10.0.0.7", "/touch"},                                                           // GroupMember, PersistentTtlNode
		{"/" + curatorsID + "set", "/" + oursID, "/" + curatorsID + "worker-0000000001"},               // other protected nodes
		{"/locks"},
		{"/leases"},
		{"/locks", belowALock, "/locks/a", "/locks/a/" + oursID + "lock-0000000000"}, // a lock below a lock
		{"/leases", "/leases/" + curatorsID + "lease-0000000001"},
		{"/mylocks", "/leases", "/locks2"},
		{"/entry-100-0000000000", "/taken", "/entries", "/" + kazoosID + "__party__", "/lock", "/party"}, // kazoo's Queue, LockingQueue, Party, Partitioner
		{"/block-0000000001", "/x" + curatorsID + "latch-0000000001", "/latch-0000000001", "/" + curatorsID + "latch-1", "/" + curatorsID + "x-latch-0000000001"},
	} {
		for _, kind := range kinds {
			children := children
			switch {
			case waitsIn[kind] == "mutex" && children[0] == "/block-0000000001":
				children = children[1:] // in the line of a mutex, as in Curator's
			case strings.HasPrefix(kind, "semaphore") && slices.Contains(children, belowALock):
				continue // in the line of the semaphore, whose queue it is
			}
			t.Run(fmt.Sprint(children)+kind, func(t *testing.T) {
				t.Parallel()
				bubble(t, func(r *rig) {
					r.Check(r.Srv.Create("/locks", nil))
					r.Check(r.Srv.Create(dir, []byte("10.0.0.7")))
					for _, child := range children {
						if child != "" {
							r.Check(r.Srv.Create(dir+child, nil))
						}
					}
					wait, try := r.acquirers(r.Connect("a"), kind)
					for _, acquire := range []acquirer{wait, try} {
						if h, err := acquire(r.Within(time.Minute)); err != nil {
							r.Error(err)
						} else {
							r.Check(h.Close())
						}
					}
				})
			})
		}
	}
}

// The directories of a semaphore that is out of use are refused as well, as
// their names are all that is known. The error says what to do: to delete them.
func TestMixingSemaphoreOutOfUse(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		s, err := recipes.NewInterProcessSemaphoreV2(c, dir, 3)
		r.Check(err)
		l, err := s.Acquire(r.Ctx, 3)
		r.Check(err)
		r.Check(l.Release(r.Ctx))
		wait, try := r.acquirers(c, "mutex")
		for _, acquire := range []acquirer{wait, try} {
			h, err := acquire(r.Ctx)
			r.wantRefused("mutex", h, err, "delete these directories if no semaphore uses them", dir+"/locks and "+dir+"/leases belong to a semaphore:")
		}
		time.Sleep(time.Second)
		r.Check(r.Srv.Delete(dir + "/leases"))
		h, err := wait(r.Ctx)
		r.Check(err)
		r.Check(h.Close())
	})
}

// A child with the name of a semaphore's lease directory costs each look one more
// list. Each child of it with the name of a lease costs one more request.
func TestMixingLeasesCostAList(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		for _, path := range []string{"/locks", dir, dir + "/leases", dir + "/leases/config"} {
			r.Check(r.Srv.Create(path, nil))
		}
		for _, asked := range []int{0, 1} {
			for _, kind := range []string{"mutex", "read", "write"} {
				wait, _ := r.acquirers(c, kind)
				time.Sleep(time.Minute) // so that the acquire cannot know its place by its number
				r.Srv.ResetCounts()
				h, err := wait(r.Ctx)
				r.Check(err)
				r.Check(h.Close())
				if n := r.Srv.Count(zktest.OpGetChildren2); n != 2 || r.Srv.Count(zktest.OpExists) != asked {
					r.Errorf("an acquire of a %s: %v, want 2 lists and %d looks", kind, r.Srv.Counts(), asked)
				}
			}
			if asked == 0 {
				r.Check(r.Srv.Create(dir+"/leases/"+curatorsID+"lease-0000000001", nil)) // persistent: no lease
			}
		}
	})
}

// To look for other recipes costs no request. A semaphore alone lists its path
// behind its leases, in the same write, and once before it makes a node.
func TestMixingCostsNoRequest(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		for _, path := range []string{"/locks", dir, dir + "/locks", dir + "/config"} {
			r.Check(r.Srv.Create(path, nil))
		}
		for _, tt := range []struct {
			kind          string
			first, second int // lists of an acquire
		}{{"mutex", 1, 1}, {"read", 1, 1}, {"write", 1, 1}, {"semaphore", 4, 3}} {
			wait, _ := r.acquirers(c, tt.kind)
			if tt.kind == "semaphore" {
				r.Check(r.Srv.Create(dir+"/leases", nil))
			}
			for _, want := range []int{tt.first, tt.second} {
				time.Sleep(time.Minute) // so that the acquire cannot know its place by its number
				r.Srv.ResetCounts()
				h, err := wait(r.Ctx)
				r.Check(err)
				r.Check(h.Close())
				if n := r.Srv.Count(zktest.OpGetChildren2); n != want || r.Srv.Count(zktest.OpExists) != 0 {
					r.Errorf("an acquire of a %s: %v, want %d lists", tt.kind, r.Srv.Counts(), want)
				}
			}
		}
	})
}
