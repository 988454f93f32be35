package recipes_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// goLock is go-zookeeper's own lock on dir, by a session of its own.
func (r *rig) goLock(name string) *zk.Lock {
	r.Helper()
	link := r.Srv.Client(name)
	conn, _, err := zk.Connect(link.Servers(), testrig.SessionTimeout, zktest.Options(link, zk.WithDialer, zk.WithHostProvider, zk.WithLogger)...)
	r.Check(err)
	r.Cleanup(conn.Close)
	return zk.NewLock(conn, dir, zk.WorldACL(zk.PermAll))
}

// zk.Lock and the mutex wait for each other in one line, whichever came first.
func TestGoZookeeperLock(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		m, l := r.mutex(r.Connect("a")), r.goLock("b")
		h := r.held(m)
		locked := make(chan error, 1)
		go func() { locked <- l.Lock() }()
		time.Sleep(time.Second)
		waits := acquire(r.Ctx, m)
		time.Sleep(time.Second)
		q := r.queue(func() ([]recipes.Contender, error) { return m.Queue(r.Ctx) })
		if len(q) != 3 || q[0].Family != recipes.FamilyDocent || q[1].Family != recipes.FamilyGoZookeeper || q[2].Family != recipes.FamilyDocent || q[1].Holder {
			t.Errorf("queue: %v", q)
		}
		r.Check(h.Release(r.Ctx))
		r.Check(<-locked)
		_, err := m.TryAcquire(r.Ctx)
		var busy *recipes.BusyError
		if !errors.As(err, &busy) || busy.Holder.Family != recipes.FamilyGoZookeeper || !strings.Contains(err.Error(), "exclusive by go-zookeeper") {
			t.Errorf("TryAcquire = %v", err)
		}
		select {
		case <-waits:
			t.Fatal("two holders")
		case <-time.After(time.Second):
		}
		r.Check(l.Unlock())
		res := <-waits
		r.Check(res.err)
		r.Check(res.hold.Release(r.Ctx))

		// All at once.
		inside, entered := 0, 0
		turn := func() {
			if inside++; inside != 1 {
				t.Errorf("%d inside", inside)
			}
			entered++
			time.Sleep(time.Millisecond)
			inside--
		}
		const each, rounds = 3, 20
		var all sync.WaitGroup
		for i := range each {
			ours, theirs := r.mutex(r.Connect(name(i))), r.goLock("zk"+name(i))
			all.Go(func() {
				for range rounds {
					h := r.held(ours)
					turn()
					r.Check(h.Release(r.Ctx))
				}
			})
			all.Go(func() {
				for range rounds {
					r.Check(theirs.Lock())
					turn()
					r.Check(theirs.Unlock())
				}
			})
		}
		all.Wait()
		if entered != 2*each*rounds {
			t.Errorf("%d turns", entered)
		}
		r.WantNoChild(dir)
	})
}

// zk.Lock fails at a child that it cannot read, and leaves its node. All later
// contenders wait behind that node until its session is over. That is why one
// path is for one recipe.
func TestGoZookeeperLockAndStrangers(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		m := r.mutex(r.Connect("a"))
		r.Check(r.held(m).Release(r.Ctx))
		r.standing("locks", "") // as a semaphore on the same path would make
		r.Check(r.held(m).Release(r.Ctx))
		if err := r.goLock("b").Lock(); err == nil {
			t.Fatal("zk.Lock takes children that are no contenders: say so in docs/mixing.md")
		}
		q := r.queue(func() ([]recipes.Contender, error) { return m.Queue(r.Ctx) })
		if len(q) != 1 || q[0].Family != recipes.FamilyGoZookeeper || !q[0].Holder {
			t.Fatalf("queue: %v; zk.Lock cleans up: say so in docs/mixing.md", q)
		}
		waits := acquire(r.Ctx, m)
		time.Sleep(time.Minute)
		r.Srv.ExpireSession(q[0].Session)
		res := <-waits
		r.Check(res.err)
		r.Check(res.hold.Release(r.Ctx))
	})
}

// zk.Lock does not know a read/write lock, and counts its nodes as locks. The
// read/write lock refuses to stand beside a node of zk.Lock.
func TestGoZookeeperLockBesideReadWriteLock(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		l, err := recipes.NewInterProcessReadWriteLock(c, dir)
		r.Check(err)
		theirs := r.goLock("b")
		r.Check(theirs.Lock())
		q := r.queue(func() ([]recipes.Contender, error) { return l.Queue(r.Ctx) })
		if len(q) != 1 || q[0].Family != recipes.FamilyGoZookeeper {
			t.Fatalf("queue: %v", q)
		}
		for name, acquire := range foreignAcquires(r, c) {
			if name[0] == 'm' { // the mutex has the same nodes
				continue
			}
			h, err := acquire(r.Ctx)
			if h != nil {
				t.Errorf("%s: held beside zk.Lock", name)
			}
			testrig.WantErr(t, err, recipes.ErrForeignLock)
			if text := fmt.Sprint(err); !strings.Contains(text, ": "+q[0].Path+" belongs to a mutex of go-zookeeper: ") {
				t.Errorf("%s: %s", name, text)
			}
		}
		r.Check(theirs.Unlock())
		read, err := l.ReadLock().Acquire(r.Ctx)
		r.Check(err)
		locked := make(chan error, 1)
		go func() { locked <- theirs.Lock() }()
		select {
		case <-locked:
			t.Error("zk.Lock does not count readers: say so in docs/mixing.md")
		case <-time.After(time.Minute):
		}
		r.Check(read.Release(r.Ctx))
		r.Check(<-locked)
		r.Check(theirs.Unlock())
	})
}
