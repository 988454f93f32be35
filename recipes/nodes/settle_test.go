package nodes_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/nodes"
)

// settle ends all faults, and checks that all stand within a session timeout and two
// round trips.
func (g *game) settle() {
	g.Helper()
	g.heal()
	for _, v := range g.rivals {
		g.again(v)
	}
	g.leave()
	time.Sleep(testrig.SessionTimeout + 4*time.Millisecond)
	all := g.tree().Children("/workers")
	standing := 0
	for _, v := range g.rivals {
		status := v.node.Status()
		if g.contested() && status.State == nodes.Foreign {
			continue
		}
		standing++
		if status.State != nodes.Ours || !slices.Contains(all, strings.TrimPrefix(status.Path, "/workers/")) {
			g.Fatalf("%v, group %v, after faults %v: %s is %+v, nodes %v", g.mode, g.group, g.faults, v.name, status, all)
		}
		node, _ := g.tree().Node(status.Path)
		if node.Stat.Czxid != status.Czxid || string(node.Data) != v.data && g.distinct() {
			g.Fatalf("%v after faults %v: %s has %q at %+v, want %q at %+v", g.mode, g.faults, v.name, node.Data, node.Stat, v.data, status)
		}
		if err := g.set(v, time.Second); err != nil {
			g.Fatalf("%v after faults %v: set %s: %v", g.mode, g.faults, v.name, err)
		}
	}
	want := len(g.rivals)
	if !g.distinct() {
		want = 1
	}
	if len(all) != want || standing < want {
		g.Fatalf("%v, group %v, after faults %v: nodes %v, %d stand", g.mode, g.group, g.faults, all, standing)
	}
	g.wantTold()
	g.kept()
}

// distinct reports whether each rival has a node of its own.
func (g *game) distinct() bool {
	return g.group || g.mode == nodes.EphemeralSequential || len(g.opts) != 0
}

// again starts a new object for a rival whose object was closed.
func (g *game) again(v *rival) {
	g.Helper()
	if g.closes(v.name) {
		g.end(v)
		time.Sleep(10 * time.Millisecond) // what was held of the old object arrives, and is not taken for the new one's
		g.start(v)
	}
}

// leave deletes the stranger's nodes.
func (g *game) leave() {
	g.Helper()
	ctx, cancel := context.WithTimeout(g.ctx, time.Minute)
	defer cancel()
	if err := g.passer.Sync(ctx, "/workers"); err != nil { // a create may be on its way
		g.Fatal(err)
	}
	for _, name := range g.tree().Children("/workers") {
		path := "/workers/" + name
		node, there := g.tree().Node(path)
		if !there || string(node.Data) != "stranger's" {
			continue
		}
		err := g.passer.Delete(ctx, path, client.AnyVersion)
		if err != nil && !errors.Is(err, client.ErrNoNode) {
			g.Fatal(err)
		}
	}
}

// wantTold checks that every member was told of all.
func (g *game) wantTold() {
	g.Helper()
	if !g.group {
		return
	}
	time.Sleep(time.Second)
	want := nodes.Members{}
	for _, v := range g.rivals {
		want[v.name] = []byte(v.data)
	}
	for _, v := range g.rivals {
		now, err := v.member.Members(g.ctx)
		v.mu.Lock()
		told := v.told
		v.mu.Unlock()
		if err != nil || listed(now) != listed(want) || told != listed(want) {
			g.Fatalf("after faults %v: %s sees %v, was told %q, want %v: %v", g.faults, v.name, slices.Sorted(maps.Keys(now)), told, listed(want), err)
		}
	}
}
