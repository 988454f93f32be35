package recipes_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// goLock is go-zookeeper's own lock on dir, by a session of its own.
func (r *rig) goLock(name string) *zk.Lock {
	r.Helper()
	link := r.srv.Client(name)
	conn, _, err := zk.Connect(link.Servers(), sessionTimeout, zktest.Options(link, zk.WithDialer, zk.WithHostProvider, zk.WithLogger)...)
	r.check(err)
	r.Cleanup(conn.Close)
	return zk.NewLock(conn, dir, zk.WorldACL(zk.PermAll))
}

// zk.Lock and the mutex wait for each other in one line, whichever came first.
func TestGoZookeeperLock(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		m, l := r.mutex(r.connect("a")), r.goLock("b")
		h := r.held(m)
		locked := make(chan error, 1)
		go func() { locked <- l.Lock() }()
		time.Sleep(time.Second)
		waits := acquire(r.ctx, m)
		time.Sleep(time.Second)
		q := r.queue(func() ([]recipes.Contender, error) { return m.Queue(r.ctx) })
		if len(q) != 3 || q[0].Family != recipes.FamilyDocent || q[1].Family != recipes.FamilyGoZookeeper || q[2].Family != recipes.FamilyDocent || q[1].Holder {
			t.Errorf("queue: %v", q)
		}
		r.check(h.Release(r.ctx))
		r.check(<-locked)
		_, err := m.TryAcquire(r.ctx)
		var busy *recipes.BusyError
		if !errors.As(err, &busy) || busy.Holder.Family != recipes.FamilyGoZookeeper || !strings.Contains(err.Error(), "exclusive by go-zookeeper") {
			t.Errorf("TryAcquire = %v", err)
		}
		select {
		case <-waits:
			t.Fatal("two holders")
		case <-time.After(time.Second):
		}
		r.check(l.Unlock())
		res := <-waits
		r.check(res.err)
		r.check(res.hold.Release(r.ctx))

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
			ours, theirs := r.mutex(r.connect(name(i))), r.goLock("zk"+name(i))
			all.Go(func() {
				for range rounds {
					h := r.held(ours)
					turn()
					r.check(h.Release(r.ctx))
				}
			})
			all.Go(func() {
				for range rounds {
					r.check(theirs.Lock())
					turn()
					r.check(theirs.Unlock())
				}
			})
		}
		all.Wait()
		if entered != 2*each*rounds {
			t.Errorf("%d turns", entered)
		}
		if left := r.srv.Children(dir); len(left) != 0 {
			t.Errorf("left: %v", left)
		}
	})
}

// zk.Lock fails at a child that it cannot read, and leaves its node. All later
// contenders wait behind that node until its session is over. That is why one
// path is for one recipe.
func TestGoZookeeperLockAndStrangers(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		m := r.mutex(r.connect("a"))
		r.check(r.held(m).Release(r.ctx))
		r.standing("locks", "") // as a semaphore on the same path would make
		r.check(r.held(m).Release(r.ctx))
		if err := r.goLock("b").Lock(); err == nil {
			t.Fatal("zk.Lock takes children that are no contenders: say so in docs/mixing.md")
		}
		q := r.queue(func() ([]recipes.Contender, error) { return m.Queue(r.ctx) })
		if len(q) != 1 || q[0].Family != recipes.FamilyGoZookeeper || !q[0].Holder {
			t.Fatalf("queue: %v; zk.Lock cleans up: say so in docs/mixing.md", q)
		}
		waits := acquire(r.ctx, m)
		time.Sleep(time.Minute)
		r.srv.ExpireSession(q[0].Session)
		res := <-waits
		r.check(res.err)
		r.check(res.hold.Release(r.ctx))
	})
}

// zk.Lock does not know a read/write lock, and counts its nodes as locks. The
// read/write lock refuses to stand beside a node of zk.Lock.
func TestGoZookeeperLockBesideReadWriteLock(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		l, err := recipes.NewInterProcessReadWriteLock(c, dir)
		r.check(err)
		theirs := r.goLock("b")
		r.check(theirs.Lock())
		q := r.queue(func() ([]recipes.Contender, error) { return l.Queue(r.ctx) })
		if len(q) != 1 || q[0].Family != recipes.FamilyGoZookeeper {
			t.Fatalf("queue: %v", q)
		}
		for name, acquire := range foreignAcquires(r, c) {
			if name[0] == 'm' { // the mutex has the same nodes
				continue
			}
			h, err := acquire(r.ctx)
			if h != nil {
				t.Errorf("%s: held beside zk.Lock", name)
			}
			wantErr(t, err, recipes.ErrForeignLock)
			if text := fmt.Sprint(err); !strings.Contains(text, ": "+q[0].Path+" belongs to a mutex of go-zookeeper: ") {
				t.Errorf("%s: %s", name, text)
			}
		}
		r.check(theirs.Unlock())
		read, err := l.ReadLock().Acquire(r.ctx)
		r.check(err)
		locked := make(chan error, 1)
		go func() { locked <- theirs.Lock() }()
		select {
		case <-locked:
			t.Error("zk.Lock does not count readers: say so in docs/mixing.md")
		case <-time.After(time.Minute):
		}
		r.check(read.Release(r.ctx))
		r.check(<-locked)
		r.check(theirs.Unlock())
	})
}
