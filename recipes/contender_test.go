package recipes_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
)

// standing makes a node by hand, as another library or an operator would.
func (r *rig) standing(name string, data string) string {
	r.Helper()
	r.Check(r.Srv.Create(dir+"/"+name, []byte(data)))
	return dir + "/" + name
}

func (r *rig) queue(list func() ([]recipes.Contender, error)) []recipes.Contender {
	r.Helper()
	all, err := list()
	r.Check(err)
	return all
}

// Names and data of other libraries are read for what they say, and no more.
func TestContenderTells(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		m := r.mutex(r.Connect("a"))
		for i, tt := range []struct {
			name, data string
			family     recipes.Family
			mode       recipes.Mode
			owner      recipes.Owner
		}{
			{"_c_0c708091-6d54-4320-8594-f6fdb71d5f95-lock-", "10.0.0.7", recipes.FamilyCurator, recipes.ModeExclusive, recipes.Owner{Host: "10.0.0.7"}},
			{"_c_0c708091-6d54-8320-8594-f6fdb71d5f95-lock-", "fe80:0:0:0:0:0:0:1%eth0", recipes.FamilyDocent, recipes.ModeExclusive, recipes.Owner{Host: "fe80:0:0:0:0:0:0:1%eth0"}},
			{"_c_0c708091-6d54-8320-c594-f6fdb71d5f95-lock-", "", recipes.FamilyUnknown, recipes.ModeExclusive, recipes.Owner{}}, // no UUID's variant
			{"_c_0c708091-6d54-1320-8594-f6fdb71d5f95-lock-", "host.example", recipes.FamilyUnknown, recipes.ModeExclusive, recipes.Owner{}},
			{"_c_0c7080916d5443208594f6fdb71d5f95-lock-", "x", recipes.FamilyGoZookeeper, recipes.ModeExclusive, recipes.Owner{}},
			{"_c_0c7080916d5443208594f6fdb71d5f9-lock-", "10.0.0.7 pid=12 client=billing eu", recipes.FamilyUnknown, recipes.ModeExclusive, recipes.Owner{Host: "10.0.0.7", PID: 12, Client: "billing eu"}},
			{"_c_0c7080916d5443208594f6fdb71d5f9-lock-", "10.0.0.7 pid=12 host=web-3.example client=billing eu", recipes.FamilyUnknown, recipes.ModeExclusive, recipes.Owner{Host: "10.0.0.7", HostName: "web-3.example", PID: 12, Client: "billing eu"}},
			{"lock-", "10.0.0.7 pid=99999999999 client=x", recipes.FamilyUnknown, recipes.ModeExclusive, recipes.Owner{}},
			{"lock-x-lock-", "10.0.0.7 pid=4294967296 client=x", recipes.FamilyUnknown, recipes.ModeExclusive, recipes.Owner{}},
			{"my-lock-", "10.0.0.7 pid=1 client=a\nb", recipes.FamilyUnknown, recipes.ModeExclusive, recipes.Owner{}},
			{"0c7080916d5443208594f6fdb71d5f95__lock__", "? pid=7 client=b", recipes.FamilyKazoo, recipes.ModeExclusive, recipes.Owner{PID: 7, Client: "b"}},
			{"0c7080916d5443208594f6fdb71d5f95__rlock__", "__REVOKE__", recipes.FamilyKazoo, recipes.ModeRead, recipes.Owner{}},
			{"my2-lock-", "__REVOKE__x", recipes.FamilyUnknown, recipes.ModeExclusive, recipes.Owner{}},
		} {
			if i == 0 {
				r.Check(r.held(m).Release(r.Ctx))    // makes the directory
				r.standing("__lock__0000000007", "") // a name of no recipe: no contender
			}
			path := r.standing(fmt.Sprintf("%s%010d", tt.name, 7), tt.data)
			q := r.queue(func() ([]recipes.Contender, error) { return m.Queue(r.Ctx) })
			if len(q) != 1 {
				t.Fatalf("%s: queue %v", tt.name, q)
			}
			got := q[0]
			if got.Path != path || got.Sequence != 7 || got.Family != tt.family || got.Mode != tt.mode || got.Owner != tt.owner ||
				got.QueuedSince.IsZero() || got.HeldSince != got.QueuedSince || !got.Held.Exact() || // no contender has come or gone since
				!got.Holder || got.Session != 0 || string(got.Data) != tt.data || got.ReleaseRequested() != (tt.data == "__REVOKE__") {
				t.Errorf("%s with %q: %+v, want %v, %v, %+v", tt.name, tt.data, got, tt.family, tt.mode, tt.owner)
			}
			text := got.String()
			for _, want := range []string{"holder " + path + ", of no session, so that it stays until it is deleted, queued since ", ", " + tt.mode.String() + " by " + tt.family.String()} {
				if !strings.Contains(text, want) {
					t.Errorf("String = %q, want it to say %q", text, want)
				}
			}
			if asked := strings.HasSuffix(text, ", asked to release"); asked != got.ReleaseRequested() || strings.ContainsAny(text, "\n\x00") {
				t.Errorf("String = %q", text)
			}
			r.Check(r.Srv.Delete(path))
		}
		for text, got := range map[string]fmt.Stringer{
			"an unknown library": recipes.FamilyUnknown, "Docent": recipes.FamilyDocent, "Curator": recipes.FamilyCurator,
			"go-zookeeper": recipes.FamilyGoZookeeper, "kazoo": recipes.FamilyKazoo,
			"unknown": recipes.Mode(0), "exclusive": recipes.ModeExclusive, "read": recipes.ModeRead,
			"write": recipes.ModeWrite, "lease": recipes.ModeLease,
		} {
			if got.String() != text {
				t.Errorf("%q, want %q", got, text)
			}
		}
	})
}

// Modes, names and ages of contenders that stand in the queue. A refused
// TryAcquire names the contender in its way with all of it.
func TestContenderOfOurs(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		l, err := recipes.NewInterProcessReadWriteLock(r.Connect("a", client.WithName("billing eu")), dir)
		r.Check(err)
		read, err := l.ReadLock().Acquire(r.Ctx)
		r.Check(err)
		time.Sleep(time.Minute)
		waits := make(chan error, 1)
		go func() {
			w, err := l.WriteLock().Acquire(r.Ctx)
			if err == nil {
				err = w.Release(r.Ctx)
			}
			waits <- err
		}()
		time.Sleep(time.Second)
		q := r.queue(func() ([]recipes.Contender, error) { return l.Queue(r.Ctx) })
		if len(q) != 2 {
			t.Fatalf("queue %v", q)
		}
		host, err := os.Hostname()
		r.Check(err)
		want := recipes.Owner{HostName: host, PID: os.Getpid(), Client: "billing eu"}
		for i, c := range q {
			if c.Family != recipes.FamilyDocent || c.Owner != want || c.Holder != (i == 0) {
				t.Errorf("%+v", c)
			}
		}
		if q[0].Mode != recipes.ModeRead || q[1].Mode != recipes.ModeWrite {
			t.Errorf("modes %v, %v", q[0].Mode, q[1].Mode)
		}
		if old, young := q[0].Age(time.Now()), q[1].Age(time.Now()); old < time.Minute || old > time.Minute+2*time.Second || young > 2*time.Second {
			t.Errorf("ages %v, %v", old, young)
		}
		_, err = l.WriteLock().TryAcquire(r.Ctx)
		var busy *recipes.BusyError
		if !errors.As(err, &busy) || busy.Holder.Owner != want || busy.Holder.Mode != recipes.ModeRead ||
			!strings.HasSuffix(err.Error(), fmt.Sprintf("read by Docent, ? pid=%d host=%s client=billing eu", os.Getpid(), host)) {
			t.Errorf("TryAcquire = %v", err)
		}
		r.Check(read.Release(r.Ctx))
		r.Check(<-waits)
	})
}
