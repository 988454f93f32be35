package interop_test

import (
	"context"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/integration/harness"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/shared"
)

var scenes = []scene{
	{name: "mutex", waiter: true, counts: true, make: func(ctx context.Context, t *testing.T, p *party, path string) []*contender {
		t.Helper()
		if p.side == curator {
			return curators(ctx, t, curatorLock(path, "mutex", path), p)
		}
		m, err := recipes.NewInterProcessMutex(p.client, path)
		return twice(t, p, docentMutex(m, path), err)
	}},
	{name: "read", waiter: true, counts: true, make: func(ctx context.Context, t *testing.T, p *party, path string) []*contender {
		t.Helper()
		return readersOrWriters(ctx, t, p, path, 0)
	}},
	{name: "write", waiter: true, counts: true, make: func(ctx context.Context, t *testing.T, p *party, path string) []*contender {
		t.Helper()
		return readersOrWriters(ctx, t, p, path, 100)
	}},
	{name: "semaphore", counts: true, make: func(ctx context.Context, t *testing.T, p *party, path string) []*contender {
		t.Helper()
		const most = 1
		if p.side == curator {
			f := curatorSemaphore(path, most, path, "1")
			return curators(ctx, t, f, p)
		}
		s, err := recipes.NewInterProcessSemaphoreV2(p.client, path, 1)
		return twice(t, p, docentSemaphore(s, path, most), err)
	}},
	{name: "semaphore mutex", counts: true, make: func(ctx context.Context, t *testing.T, p *party, path string) []*contender {
		t.Helper()
		if p.side == curator {
			return curators(ctx, t, curatorSemaphoreMutex(path, path), p)
		}
		m, err := recipes.NewInterProcessSemaphoreMutex(p.client, path)
		return twice(t, p, docentMutex(m, path), err)
	}},
	{name: "latch", waiter: true, counts: true, make: func(ctx context.Context, t *testing.T, p *party, path string) []*contender {
		t.Helper()
		if p.side == curator {
			return curators(ctx, t, curatorLeaders(path, "latch", path), p)
		}
		l, err := recipes.NewLeaderLatch(p.client, path, recipes.WithID("")) // Curator's default
		check(t, err)
		return twice(t, p, docentLeader(l.Election, path), nil)
	}},
	{name: "selector", waiter: true, counts: true, make: func(ctx context.Context, t *testing.T, p *party, path string) []*contender {
		t.Helper()
		if p.side == curator {
			return curators(ctx, t, curatorLeaders(path, "selector", path), p)
		}
		s, err := recipes.NewLeaderSelector(p.client, path)
		check(t, err)
		return twice(t, p, docentLeader(s.Election, path), nil)
	}},
	// Docent's tries all locks in one transaction and withdraws behind the first that is taken.
	{name: "multi lock", waiter: true, make: func(ctx context.Context, t *testing.T, p *party, path string) []*contender {
		t.Helper()
		locks := []member{{"a", "mutex", path + "/a"}, {"b", "rw", path + "/b"}, {"c", "semaphore-mutex", path + "/c"}}
		if p.side == curator {
			all, err := curatorMulti(ctx, locks, true, []*party{p})
			check(t, err)
			return []*contender{all[0], curatorMultiContender(p, "second", locks)}
		}
		all, err := docentMulti(locks, []*party{p})
		check(t, err)
		return []*contender{all[0], all[0]}
	}},
}

// curators makes two contenders of one client of Curator's.
func curators(ctx context.Context, t *testing.T, f foreign, p *party) []*contender {
	t.Helper()
	all, err := f.contenders(ctx, []*party{p})
	check(t, err)
	return all
}

// twice makes two contenders of one client of Docent's.
func twice(t *testing.T, p *party, acquire acquirer, err error) []*contender {
	t.Helper()
	check(t, err)
	all, err := natives([]*party{p}, func(*party) (acquirer, error) { return acquire, nil })
	check(t, err)
	return all
}

func readersOrWriters(ctx context.Context, t *testing.T, p *party, path string, writers int) []*contender {
	t.Helper()
	if p.side == curator {
		all, err := curatorReadWrite(ctx, "rw"+path, path, writers, []*party{p})
		check(t, err)
		return all
	}
	l, err := recipes.NewInterProcessReadWriteLock(p.client, path)
	return twice(t, p, docentReadWrite(l, path, writers), err)
}

var counters = regexp.MustCompile(`(cversion )\d+|((?:lock-|__WRIT__|lease-))\d{10}`)

// uncounted is a picture of nodes without what the directories have counted.
func uncounted(picture string) string {
	return counters.ReplaceAllString(picture, "$1$2<count>")
}

// TestLayout compares the nodes of both libraries. The server sweeps nothing meanwhile.
func TestLayout(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	a := newArena(ctx, t, harness.StartServer(ctx, t, harness.WithContainerInterval(time.Hour)))
	p, q := a.docents(ctx, t, 1)[0], a.curators(ctx, t, 1)[0]
	for _, s := range scenes {
		t.Run(s.name, func(t *testing.T) {
			at := "/layout/" + strings.ReplaceAll(s.name, " ", "-")
			docent := s.play(ctx, t, a, p, at+"/docent")
			curator := s.play(ctx, t, a, q, at+"/curator")
			if !s.counts {
				docent, curator = uncounted(docent), uncounted(curator)
			}
			if docent != curator {
				t.Errorf("Docent leaves\n%s\nCurator leaves\n%s", docent, curator)
			}
		})
	}
}

// TestLayoutSwept shows that all that is left of any lock are containers, which a server
// sweeps away.
func TestLayoutSwept(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	a := newArena(ctx, t, harness.StartServer(ctx, t, harness.WithContainerInterval(500*time.Millisecond)))
	for _, p := range []*party{a.docents(ctx, t, 1)[0], a.curators(ctx, t, 1)[0]} {
		for _, s := range scenes {
			g, err := s.make(ctx, t, p, "/layout/"+string(p.side)+"/"+strings.ReplaceAll(s.name, " ", "-"))[0].acquire(ctx, stuck)
			check(t, err)
			check(t, g.release(ctx))
		}
	}
	a.swept(ctx, t, "/layout")
}

// TestLayoutCount compares the nodes of shared counts, also nodes with a value
// that the other side reads.
func TestLayoutCount(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	a := newArena(ctx, t, harness.StartServer(ctx, t))
	ours, java := a.docents(ctx, t, 1)[0], a.curators(ctx, t, 1)[0]
	count, err := shared.NewSharedCount(ours.client, "/docent/count", seed)
	check(t, err)
	th := java.peer.Thread("t")
	trees := map[side]string{}
	for _, set := range []struct {
		side side
		at   string
		set  func() error
		get  func() (int32, error)
	}{
		{
			docent, "/docent", func() error {
				if _, err := count.Get(ctx); err != nil {
					return err
				}
				return count.Set(ctx, 258)
			},
			func() (int32, error) {
				check(t, java.peer.Make(ctx, "other", java.name, "count", "/docent/count", "1"))
				v, err := th.Get(ctx, "other")
				return v.Value, err
			},
		},
		{
			curator, "/curator", func() error {
				check(t, java.peer.Make(ctx, "own", java.name, "count", "/curator/count", strconv.Itoa(seed)))
				return th.Set(ctx, "own", 258)
			},
			func() (int32, error) {
				other, err := shared.NewSharedCount(ours.client, "/curator/count", 1)
				check(t, err)
				v, err := other.Get(ctx)
				return v.Value, err
			},
		},
	} {
		check(t, set.set())
		if v, err := set.get(); v != 258 || err != nil {
			t.Errorf("the other side reads %d of %s's count: %v", v, set.side, err)
		}
		l := &layout{arena: a, at: set.at}
		trees[set.side] = strings.Join(l.tree(t, set.at, ""), "\n")
	}
	if trees[docent] != trees[curator] {
		t.Errorf("Docent leaves\n%s\nCurator leaves\n%s", trees[docent], trees[curator])
	}
	if !strings.Contains(trees[docent], `data "\x00\x00\x01\x02"`) {
		t.Errorf("258 is written as\n%s", trees[docent])
	}
}
