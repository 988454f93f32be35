package interop_test

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
	"github.com/docent-go/docent/integration/harness"
	"github.com/docent-go/docent/integration/peers"
	"github.com/docent-go/docent/recipes"
)

// mixed is a recipe of Curator's on a path.
type mixed struct {
	kind string
	args []string // behind the path
	lock string   // what is acquired, if making it makes several
	line string   // what Docent's refusal calls it, and the recipes of Docent that it excludes
}

var mixedKinds = []mixed{
	{kind: "latch", line: "LeaderLatch"},
	{kind: "selector", line: "mutex"},
	{kind: "mutex", line: "mutex"},
	{kind: "rw", lock: ".read", line: "read/write lock"},
	{kind: "rw", lock: ".write", line: "read/write lock"},
	{kind: "semaphore", args: []string{"1"}, line: "semaphore"},
	{kind: "semaphore-mutex", line: "semaphore"},
}

// ourRecipe is a recipe of Docent's on a path.
type ourRecipe struct {
	name, line   string
	acquire, try func(context.Context) (io.Closer, error)
}

func closer[H io.Closer](f func(context.Context) (H, error)) func(context.Context) (io.Closer, error) {
	return func(ctx context.Context) (io.Closer, error) {
		h, err := f(ctx)
		if err != nil {
			return nil, err
		}
		return h, nil
	}
}

func ourRecipes(t *testing.T, c *client.Client, path string) []ourRecipe {
	t.Helper()
	m, err := recipes.NewInterProcessMutex(c, path)
	check(t, err)
	rw, err := recipes.NewInterProcessReadWriteLock(c, path)
	check(t, err)
	s, err := recipes.NewInterProcessSemaphoreMutex(c, path)
	check(t, err)
	latch, err := recipes.NewLeaderLatch(c, path)
	check(t, err)
	selector, err := recipes.NewLeaderSelector(c, path)
	check(t, err)
	return []ourRecipe{
		{"latch", "LeaderLatch", closer(latch.Campaign), closer(latch.TryCampaign)},
		{"selector", "mutex", closer(selector.Campaign), closer(selector.TryCampaign)},
		{"mutex", "mutex", closer(m.Acquire), closer(m.TryAcquire)},
		{"read", "read/write lock", closer(rw.ReadLock().Acquire), closer(rw.ReadLock().TryAcquire)},
		{"write", "read/write lock", closer(rw.WriteLock().Acquire), closer(rw.WriteLock().TryAcquire)},
		{"semaphore mutex", "semaphore", closer(s.Acquire), closer(s.TryAcquire)},
	}
}

// TestMixing puts each recipe of Curator's beside each of Docent's on one path,
// whichever came first. Recipes that wait in one line exclude each other. Docent
// refuses all others, and a hold that was there before is not disturbed.
func TestMixing(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	a := newArena(ctx, t, harness.StartServer(ctx, t))
	p, j := a.docents(ctx, t, 1)[0], a.curators(ctx, t, 1)[0]
	for _, k := range mixedKinds {
		for i := range ourRecipes(t, p.client, "/any") {
			path := fmt.Sprintf("/mixing/%d", paths.Add(1))
			o := ourRecipes(t, p.client, path)[i]
			name := strings.ReplaceAll(strings.Trim(path, "/"), "/", "-")
			check(t, j.peer.Make(ctx, name, j.name, k.kind, append([]string{path}, k.args...)...))
			t.Run(k.kind+k.lock+"/"+o.name, func(t *testing.T) {
				m := mixture{ours: o, theirs: j.peer.Thread(name), lock: name + k.lock, kind: k}
				m.curatorFirst(ctx, t)
				m.docentFirst(ctx, t)
			})
			check(t, p.client.DeleteAll(ctx, path))
		}
	}
}

// mixture is a recipe of each library on one path.
type mixture struct {
	ours   ourRecipe
	theirs *peers.Thread
	lock   string
	kind   mixed
}

func (m *mixture) oneLine() bool { return m.kind.line == m.ours.line }

func (m *mixture) share() bool { return m.kind.lock == ".read" && m.ours.name == "read" }

// curatorFirst has Docent come to a path that Curator holds.
func (m *mixture) curatorFirst(ctx context.Context, t *testing.T) {
	t.Helper()
	nodes, err := m.theirs.Acquire(ctx, m.lock, 1, peers.Forever)
	check(t, err)
	m.wantOurs(ctx, t, nodes)
	check(t, m.theirs.Release(ctx, m.lock))
}

// wantOurs acquires for Docent while Curator's nodes are there.
func (m *mixture) wantOurs(ctx context.Context, t *testing.T, nodes []string) {
	t.Helper()
	for what, acquire := range map[string]func(context.Context) (io.Closer, error){"Acquire": m.ours.acquire, "TryAcquire": m.ours.try} {
		limit := stuck
		if m.oneLine() && !m.share() {
			limit = soon
		}
		short, cancel := context.WithTimeout(ctx, limit)
		h, err := acquire(short)
		cancel()
		switch {
		case !m.oneLine():
			if text := fmt.Sprint(err); !errors.Is(err, recipes.ErrForeignLock) || !strings.Contains(text, m.kind.line) || !m.names(text, nodes) {
				t.Errorf("%s beside Curator's %v: %v", what, nodes, err)
			}
		case m.share():
			if err != nil {
				t.Errorf("%s beside Curator's reader: %v", what, err)
			}
		case !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, recipes.ErrBusy):
			t.Errorf("%s beside Curator's %v: %v", what, nodes, err)
		}
		if h != nil {
			check(t, h.Close())
		}
	}
}

// names reports whether a refusal says which nodes it is about.
func (m *mixture) names(text string, nodes []string) bool {
	if m.kind.line == "semaphore" { // it is known by its directories
		return strings.Contains(text, "/locks and ") && strings.Contains(text, "/leases ")
	}
	return slices.ContainsFunc(nodes, func(node string) bool { return strings.Contains(text, node) })
}

// docentFirst has Curator come to a path that Docent holds, and then Docent again.
func (m *mixture) docentFirst(ctx context.Context, t *testing.T) {
	t.Helper()
	if m.kind.line == "semaphore" && !m.oneLine() {
		return // the directories that Curator has just left there are refused
	}
	held, err := m.ours.acquire(ctx)
	check(t, err)
	limit := stuck
	if m.oneLine() && !m.share() {
		limit = soon
	}
	nodes, err := m.theirs.Acquire(ctx, m.lock, 1, limit)
	switch {
	case m.oneLine() && !m.share():
		if !errors.Is(err, peers.ErrTimeUp) {
			t.Errorf("Curator acquired beside Docent: %v, %v", nodes, err)
		}
	case err != nil:
		t.Errorf("Curator waits for Docent: %v; say so in docs/mixing.md", err)
	case !m.oneLine() && m.ours.line != "semaphore": // a semaphore's value looks once
		m.wantOurs(ctx, t, nodes)
	}
	if h, ok := held.(interface{ Err() error }); !ok || h.Err() != nil {
		t.Error("Docent's hold was disturbed")
	}
	if err == nil {
		check(t, m.theirs.Release(ctx, m.lock))
	}
	check(t, held.Close())
}
