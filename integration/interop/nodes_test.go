package interop_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/integration/harness"
	registry "github.com/docent-go/docent/recipes/nodes"
)

// kind is a mode by the names of both libraries.
type kind struct {
	mode      registry.Mode
	curator   string
	protected bool
}

// kinds are the modes that both have. Docent has PersistentSequential with protection
// only.
var kinds = []kind{
	{registry.Ephemeral, "EPHEMERAL", false},
	{registry.Ephemeral, "EPHEMERAL", true},
	{registry.EphemeralSequential, "EPHEMERAL_SEQUENTIAL", false},
	{registry.EphemeralSequential, "EPHEMERAL_SEQUENTIAL", true},
	{registry.Persistent, "PERSISTENT", false},
	{registry.Persistent, "PERSISTENT", true},
	{registry.PersistentSequential, "PERSISTENT_SEQUENTIAL", true},
	{registry.Container, "CONTAINER", false},
	{registry.Container, "CONTAINER", true},
}

func (k kind) String() string { return fmt.Sprintf("%v protected %v", k.mode, k.protected) }

// children waits until a directory has no child, or one that was made after czxid. It
// returns the name and the czxid of that.
func (a *arena) children(ctx context.Context, t *testing.T, dir string, want int, czxid int64) (string, int64) {
	t.Helper()
	for {
		names, _, err := a.raw.Children(dir)
		if err == nil && len(names) == 0 && want == 0 {
			return "", 0
		}
		if err == nil && len(names) == want {
			_, stat, err := a.raw.Exists(dir + "/" + names[0])
			check(t, err)
			if stat != nil && stat.Czxid > czxid {
				return names[0], stat.Czxid
			}
		}
		select {
		case <-time.After(10 * time.Millisecond): // no event tells of all that is waited for
		case <-ctx.Done():
			t.Fatalf("%s has the children %v: %v", dir, names, err)
		}
	}
}

// TestLayoutNodes compares the nodes of both libraries in all modes: made, set, made
// again after an operator has deleted them, and closed.
func TestLayoutNodes(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	a := newArena(ctx, t, harness.StartServer(ctx, t, harness.WithContainerInterval(time.Hour)))
	ours, java := a.docents(ctx, t, 1)[0], a.curators(ctx, t, 1)[0]
	for i, k := range kinds {
		t.Run(k.String(), func(t *testing.T) {
			docent := a.playNode(ctx, t, ours, fmt.Sprintf("/nodes/%d/docent", i), func(path string) (func(string) error, func() error) {
				var opts []registry.Option
				if k.protected {
					opts = append(opts, registry.WithProtection())
				}
				n, err := registry.NewPersistentNode(ours.client, k.mode, path, []byte("one"), opts...)
				check(t, err)
				check(t, n.Start(ctx))
				return func(data string) error { return n.Set(ctx, []byte(data)) }, func() error { return n.CloseContext(ctx) }
			})
			curator := a.playNode(ctx, t, java, fmt.Sprintf("/nodes/%d/curator", i), func(path string) (func(string) error, func() error) {
				name := fmt.Sprintf("n%d", i)
				check(t, java.peer.Make(ctx, name, java.name, "persistent-node", k.curator, strconv.FormatBool(k.protected), path, "one"))
				return func(data string) error { return java.peer.SetRegistered(ctx, name, data) },
					func() error { return java.peer.CloseRegistered(ctx, name) }
			})
			if docent != curator {
				t.Errorf("Docent leaves\n%s\nCurator leaves\n%s", docent, curator)
			}
		})
	}
}

// playNode lets a node be made below dir, and looks at each step.
func (a *arena) playNode(ctx context.Context, t *testing.T, p *party, dir string, register func(path string) (func(string) error, func() error)) string {
	t.Helper()
	session, err := p.session(ctx)
	check(t, err)
	l := &layout{arena: a, at: dir, known: map[int64]bool{session: true}}
	set, closed := register(dir + "/w1")
	first, czxid := a.children(ctx, t, dir, 1, 0)
	l.see(t, "made")
	check(t, set("two"))
	a.data(ctx, t, dir+"/"+first, "two")
	l.see(t, "set")
	check(t, a.raw.Delete(dir+"/"+first, -1))
	again, _ := a.children(ctx, t, dir, 1, czxid)
	a.data(ctx, t, dir+"/"+again, "two")
	l.see(t, "made again")
	check(t, closed())
	a.children(ctx, t, dir, 0, 0)
	l.see(t, "closed")
	return strings.Join(l.seen, "\n")
}

// data waits until a node has that data.
func (a *arena) data(ctx context.Context, t *testing.T, path, want string) {
	t.Helper()
	for {
		data, _, changed, err := a.raw.GetW(path)
		if err == nil && string(data) == want {
			return
		}
		check(t, err)
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("%s has %q, want %q", path, data, want)
		}
	}
}

// TestNodeOfTheOther shows what each does with a node of the other at its path. Docent
// leaves it alone. Curator sets its data, and deletes it at the end; Docent makes its own
// again.
func TestNodeOfTheOther(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	a := newArena(ctx, t, harness.StartServer(ctx, t))
	ours, java := a.docents(ctx, t, 1)[0], a.curators(ctx, t, 1)[0]
	const path = "/workers/w1"
	check(t, java.peer.Make(ctx, "n", java.name, "persistent-node", "EPHEMERAL", "false", path, "java"))
	n, err := registry.NewPersistentNode(ours.client, registry.Ephemeral, path, []byte("go"), registry.WithLazyStart())
	check(t, err)
	check(t, n.Start(ctx))
	until(ctx, t, n, registry.Foreign)
	data, stat, err := a.raw.Get(path)
	check(t, err)
	if string(data) != "java" || stat.Version != 0 {
		t.Errorf("%q, %+v", data, stat)
	}
	check(t, java.peer.CloseRegistered(ctx, "n"))
	check(t, n.Wait(ctx))
	a.data(ctx, t, path, "go")
	check(t, java.peer.Make(ctx, "n", java.name, "persistent-node", "EPHEMERAL", "false", path, "java"))
	a.data(ctx, t, path, "java")
	if now := n.Status(); now.State != registry.Ours {
		t.Errorf("%+v", now)
	}
	check(t, n.Set(ctx, []byte("go again")))
	a.data(ctx, t, path, "go again")
	before := n.Status().Czxid
	check(t, java.peer.CloseRegistered(ctx, "n"))
	for now := range n.Changes(ctx) {
		if now.State == registry.Ours && now.Czxid != before {
			break
		}
	}
	a.data(ctx, t, path, "go again")
	check(t, n.CloseContext(ctx))
	a.children(ctx, t, "/workers", 0, 0)
}

// until waits until a node has that state.
func until(ctx context.Context, t *testing.T, n *registry.PersistentNode, state registry.State) {
	t.Helper()
	for now := range n.Changes(ctx) {
		if now.State == state {
			return
		}
	}
	t.Fatalf("%+v, want %v", n.Status(), state)
}

// listed are members as "id=data" in order.
func listed(now registry.Members) string {
	var all []string
	for _, id := range slices.Sorted(maps.Keys(now)) {
		all = append(all, id+"="+string(now[id]))
	}
	return strings.Join(all, " ")
}

// TestGroupTogether lets members of both libraries be in one group. Each sees all, with
// new data, and again after the sessions of either were killed.
func TestGroupTogether(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	a := newArena(ctx, t, harness.StartServer(ctx, t))
	ours, java := a.docents(ctx, t, 1)[0], a.curators(ctx, t, 1)[0]
	me, err := registry.NewGroupMember(ours.client, "/group", "go", []byte("1"))
	check(t, err)
	check(t, me.Start(ctx))
	check(t, java.peer.Make(ctx, "m", java.name, "group-member", "/group", "java", "1"))
	all := func(want string) {
		t.Helper()
		for now, err := range me.MemberChanges(ctx) {
			if err == nil && listed(now) == want {
				break
			}
		}
		for {
			got, err := java.peer.Members(ctx, "m")
			check(t, err)
			if got == want {
				break
			}
			select {
			case <-time.After(10 * time.Millisecond): // Curator has no listener
			case <-ctx.Done():
				t.Fatalf("Curator sees %q, want %q", got, want)
			}
		}
		if now, err := me.Members(ctx); err != nil || listed(now) != want {
			t.Fatalf("Docent sees %q, want %q: %v", listed(now), want, err)
		}
	}
	all("go=1 java=1")
	check(t, me.Set(ctx, []byte("2")))
	check(t, java.peer.SetRegistered(ctx, "m", "2"))
	all("go=2 java=2")
	for range 5 {
		for _, p := range []*party{ours, java} {
			check(t, p.kill(ctx, a.witness, a.node.Addr()))
			a.standsIn(ctx, t, p, "/group/"+map[side]string{docent: "go", curator: "java"}[p.side])
			all("go=2 java=2")
		}
	}
	check(t, java.peer.CloseRegistered(ctx, "m"))
	for now, err := range me.MemberChanges(ctx) {
		if err == nil && listed(now) == "go=2" {
			break
		}
	}
	check(t, me.CloseContext(ctx))
	a.children(ctx, t, "/group", 0, 0)
}

// standsIn waits until a node stands in a party's session of now.
func (a *arena) standsIn(ctx context.Context, t *testing.T, p *party, path string) {
	t.Helper()
	for {
		there, stat, changed, err := a.raw.ExistsW(path)
		check(t, err)
		session, err := p.session(ctx)
		check(t, err)
		if there && stat.EphemeralOwner == session {
			return
		}
		select {
		case <-changed:
		case <-time.After(100 * time.Millisecond): // Curator may not know yet that its session is over
		case <-ctx.Done():
			t.Fatalf("%s: %+v, want it in session %#x", path, stat, session)
		}
	}
}
