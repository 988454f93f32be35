package recipes_test

import (
	"context"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// warnings passes on the paths of locks in warnings.
type warnings struct {
	slog.Handler

	locks chan string
}

func (w warnings) Enabled(context.Context, slog.Level) bool { return true }

func (w warnings) Handle(_ context.Context, r slog.Record) error {
	remedy := false
	r.Attrs(func(a slog.Attr) bool {
		remedy = remedy || a.Key == "remedy" && strings.Contains(a.Value.String(), "Release or Close")
		return true
	})
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "lock" && r.Level == slog.LevelWarn && strings.Contains(r.Message, "without a release") {
			w.locks <- a.Value.String()
			if !remedy {
				w.locks <- "no remedy"
			}
		}
		return true
	})
	return nil
}

// A hold that becomes garbage is logged with its lock, whatever waits for it inside,
// and one that was released is not.
func TestDroppedHold(t *testing.T) {
	t.Parallel()
	srv := zktest.NewServer(t)
	said := warnings{slog.DiscardHandler, make(chan string, 16)}
	c, err := client.Connect(t.Context(), "zk", client.WithDialer(srv.Client("a").DialContext), client.WithLogger(slog.New(said)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	drop := func(path string, kind func(path string) (recipes.AnyHold, error), release bool) {
		h, err := kind(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.Guard(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-time.After(50 * time.Millisecond) // its node is watched by then
		if release {
			if err := h.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	mutex := func(path string) (recipes.AnyHold, error) {
		m, err := recipes.NewInterProcessMutex(c, path)
		if err != nil {
			return nil, err
		}
		h, err := m.Acquire(t.Context())
		if err != nil {
			return nil, err
		}
		h.OnRevoke(func() {}) // does not keep it alive
		return m.Acquire(h.Context())
	}
	multi := func(path string) (recipes.AnyHold, error) {
		m, err := recipes.NewInterProcessMutex(c, path)
		if err != nil {
			return nil, err
		}
		all, err := recipes.NewInterProcessMultiLock(m)
		if err != nil {
			return nil, err
		}
		return all.Acquire(t.Context())
	}
	lease := func(path string) (recipes.AnyHold, error) {
		s, err := recipes.NewInterProcessSemaphoreV2(c, path, 2)
		if err != nil {
			return nil, err
		}
		return s.Acquire(t.Context(), 2)
	}
	m, err := recipes.NewInterProcessMutex(c, "/kept/mutex")
	if err != nil {
		t.Fatal(err)
	}
	outer, err := m.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = outer.Close() }() // held until the end, and the one that re-enters is released
	drop("/kept/mutex", func(string) (recipes.AnyHold, error) { return m.Acquire(outer.Context()) }, true)
	drop("/kept/lease", lease, true)
	drop("/kept/multi", multi, true)
	drop("/dropped/mutex", mutex, false) // and the one that it re-entered
	drop("/dropped/multi", multi, false)
	drop("/dropped/lease", lease, false)
	collect(t, said.locks, map[string]int{"/dropped/mutex": 2, "/dropped/multi": 1, "/dropped/lease": 1})
	drop("/dropped/last", multi, false)
	collect(t, said.locks, map[string]int{"/dropped/last": 1}) // and meanwhile no other
}

// collect collects garbage until each lock was warned of so often.
func collect(t *testing.T, said <-chan string, missing map[string]int) {
	t.Helper()
	n := 0
	for _, often := range missing {
		n += often
	}
	for n > 0 {
		runtime.GC()
		select {
		case path := <-said:
			if missing[path]--; missing[path] < 0 {
				t.Errorf("warned of %s", path)
			}
			n--
		case <-time.After(10 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatal(missing)
		}
	}
}
