//go:build foreign

// Package foreign_test lets clients in other languages run their own recipes
// against zktest and against a real server. It compares what they see and leave
// there.
//
// A program of named steps, one for Curator and one for kazoo, runs twice. Both
// servers must give the same reports in each step, tree at chosen instants and at
// the end, and table of watches. The programs connect through a proxy, which cuts
// connections and loses replies the same way on either side.
//
// A step reports only what the protocol determines. It waits for a condition
// before it looks, never for a time. Where a client's own threads decide how
// often it asks the server, the step asks for a looser comparison, with the
// reason.
package foreign_test

import (
	"context"
	"embed"
	"io/fs"
	"slices"
	"testing"
	"time"

	"github.com/docent-go/docent/integration/peers"
	"github.com/docent-go/docent/internal/zoodefs"
)

//go:embed java/*.java
var javaSources embed.FS

//go:embed python/*.py
var pythonSources embed.FS

func TestCurator(t *testing.T) {
	t.Parallel() // a program mostly waits
	start := func(ctx context.Context, t *testing.T, s *server) *peers.Script {
		return peers.StartCuratorScript(ctx, t, javaSources, "Steps", s.proxy.Addr(), s.addr)
	}
	both(t, settings{}, start, []zoodefs.Op{
		zoodefs.OpDelete, zoodefs.OpExists, zoodefs.OpGetData, zoodefs.OpSetData, zoodefs.OpGetACL, zoodefs.OpSetACL,
		zoodefs.OpSync, zoodefs.OpGetChildren2, zoodefs.OpMulti, zoodefs.OpCreate2, zoodefs.OpReconfig, zoodefs.OpCheckWatches,
		zoodefs.OpRemoveWatches, zoodefs.OpCreateContainer, zoodefs.OpCreateTTL, zoodefs.OpMultiRead, zoodefs.OpAuth,
		zoodefs.OpSetWatches, zoodefs.OpGetEphemerals, zoodefs.OpGetAllChildrenNumber, zoodefs.OpSetWatches2, zoodefs.OpAddWatch,
		zoodefs.OpWhoAmI, zoodefs.OpCloseSession,
	})
}

func TestCuratorSweeping(t *testing.T) {
	t.Parallel() // a program mostly waits
	start := func(ctx context.Context, t *testing.T, s *server) *peers.Script {
		return peers.StartCuratorScript(ctx, t, javaSources, "Steps", s.proxy.Addr(), s.addr,
			"sweep-containers", "sweep-ttl", "sweep-recipes", "sweep-under-load")
	}
	both(t, settings{sweep: 500 * time.Millisecond}, start, []zoodefs.Op{zoodefs.OpCreateContainer, zoodefs.OpCreateTTL})
}

func TestKazoo(t *testing.T) {
	t.Parallel() // a program mostly waits
	sources, err := fs.Sub(pythonSources, "python")
	if err != nil {
		t.Fatal(err)
	}
	start := func(ctx context.Context, t *testing.T, s *server) *peers.Script {
		return peers.StartKazooScript(ctx, t, sources, "steps.py", s.proxy.Addr(), s.addr)
	}
	both(t, settings{}, start, []zoodefs.Op{
		zoodefs.OpCreate, zoodefs.OpDelete, zoodefs.OpExists, zoodefs.OpGetData, zoodefs.OpSetData, zoodefs.OpGetACL, zoodefs.OpSetACL,
		zoodefs.OpGetChildren, zoodefs.OpSync, zoodefs.OpGetChildren2, zoodefs.OpMulti, zoodefs.OpCreate2, zoodefs.OpAuth,
		zoodefs.OpCloseSession,
	})
}

// both runs a program on either kind of server and compares. The program must have sent
// requests of all the types named, or it does not test what it should.
func both(t *testing.T, s settings, start starter, wanted []zoodefs.Op) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), runLimit)
	defer cancel()
	servers := startBoth(ctx, t, s)
	reports := make([]*report, len(servers))
	t.Run("on", func(t *testing.T) {
		for i, server := range servers {
			t.Run(server.name, func(t *testing.T) {
				t.Parallel()
				reports[i] = runOn(ctx, t, server, start, wanted)
			})
		}
	})
	t.Run("same", func(t *testing.T) {
		for _, r := range reports {
			if r == nil || len(r.steps) == 0 {
				t.Fatal("there are no two reports to compare")
			}
		}
		for _, d := range differences(reports[0], reports[1]) {
			t.Error(d)
		}
		if !slices.ContainsFunc(reports[0].steps, func(s *step) bool { return len(s.seen) > 0 }) {
			t.Error("the steps have observed nothing")
		}
	})
}

func runOn(ctx context.Context, t *testing.T, server *server, start starter, wanted []zoodefs.Op) *report {
	t.Helper()
	begun := time.Now()
	r := run(ctx, t, server, start(ctx, t, server))
	requests := server.proxy.Stats().Requests
	t.Logf("%d of %d steps passed in %v, requests: %v", r.passed(), len(r.steps), time.Since(begun).Round(time.Millisecond), requests)
	for _, op := range wanted {
		if requests[op] == 0 {
			t.Errorf("the program has sent no %v", op)
		}
	}
	return r
}
