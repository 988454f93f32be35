package interop_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
)

// layout compares what two libraries leave in ZooKeeper, node by node: names,
// owners, versions, data and ACLs. It also compares what remains when all is
// released and swept.
type layout struct {
	arena *arena
	at    string         // the path below which all happens
	known map[int64]bool // sessions that take part
	seen  []string
}

var identity = regexp.MustCompile(`^_c_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-`)

// see records the tree under a heading.
func (l *layout) see(t *testing.T, heading string) {
	t.Helper()
	l.seen = append(l.seen, heading+":")
	l.seen = append(l.seen, l.tree(t, l.at, "")...)
}

func (l *layout) tree(t *testing.T, path, indent string) []string {
	t.Helper()
	data, stat, err := l.arena.raw.Get(path)
	if errors.Is(err, zk.ErrNoNode) {
		return []string{indent + "nothing"}
	}
	check(t, err)
	acl, _, err := l.arena.raw.GetACL(path)
	check(t, err)
	names, _, err := l.arena.raw.Children(path)
	check(t, err)
	owner := "nobody"
	if stat.EphemeralOwner != 0 {
		owner = "a stranger"
		if l.known[stat.EphemeralOwner] {
			owner = "the client"
		}
	}
	out := []string{fmt.Sprintf("%sowner %s, version %d, cversion %d, aversion %d, %d children, acl %v, data %s",
		indent, owner, stat.Version, stat.Cversion, stat.Aversion, stat.NumChildren, acl, describe(data))}
	// By what follows the identity: the order of the identities is chance.
	slices.SortFunc(names, func(a, b string) int {
		return strings.Compare(identity.ReplaceAllString(a, ""), identity.ReplaceAllString(b, ""))
	})
	for _, n := range names {
		out = append(out, indent+"  "+identity.ReplaceAllString(n, "_c_<uuid>-"))
		out = append(out, l.tree(t, path+"/"+n, indent+"    ")...)
	}
	return out
}

// describe names the address of this host, which the two may choose differently where it
// has several, and else gives the bytes.
func describe(data []byte) string {
	switch {
	case data == nil:
		return "null"
	case net.ParseIP(string(data)) != nil:
		return "an address"
	}
	return fmt.Sprintf("%q", bytes.Clone(data))
}

// swept waits until the server has removed a container and all that was below it.
func (a *arena) swept(ctx context.Context, t *testing.T, path string) {
	t.Helper()
	for {
		there, _, changed, err := a.raw.ExistsW(path)
		check(t, err)
		if !there {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			l := &layout{arena: a}
			t.Fatalf("not swept away: %s\n%s", path, strings.Join(l.tree(t, path, ""), "\n"))
		}
	}
}

// scene is a lock whose nodes are compared.
type scene struct {
	name string
	// waiter says that a waiting contender has the same nodes in both libraries.
	waiter bool
	// counts says that both libraries make the same number of nodes. Where one makes
	// more and deletes them at once, the directories' counters differ for good.
	counts bool
	make   func(ctx context.Context, t *testing.T, p *party, path string) []*contender
}

// play lets the first contender take the lock, the second wait for it and get it, if it
// has to wait, and looks in between.
func (s scene) play(ctx context.Context, t *testing.T, a *arena, p *party, path string) string {
	t.Helper()
	session, err := p.session(ctx)
	check(t, err)
	l := &layout{arena: a, at: path, known: map[int64]bool{session: true}}
	all := s.make(ctx, t, p, path)
	first, err := all[0].acquire(ctx, stuck)
	check(t, err)
	l.see(t, "held")
	type outcome struct {
		g   *grant
		err error
	}
	before := nodesBelow(t, a, path)
	done := make(chan outcome, 1)
	go func() {
		g, err := all[1].acquire(ctx, stuck)
		done <- outcome{g, err}
	}()
	var second outcome
	for waiting := true; waiting; {
		select {
		case second = <-done:
			waiting = false
		case <-time.After(10 * time.Millisecond): // no event tells
			waiting = nodesBelow(t, a, path) == before
		}
	}
	if second.g == nil && second.err == nil {
		atRest(t, a, path) // a waiter may make more than one node
	}
	if s.waiter {
		l.see(t, "and the next")
	}
	check(t, first.release(ctx))
	if second.g == nil && second.err == nil {
		second = <-done
	}
	check(t, second.err)
	l.see(t, "handed over")
	check(t, second.g.release(ctx))
	l.see(t, "released")
	return strings.Join(l.seen, "\n")
}

// atRest waits until ten looks in a row find the same number of nodes. On a busy machine
// the looks take longer too.
func atRest(t *testing.T, a *arena, path string) {
	t.Helper()
	have := nodesBelow(t, a, path)
	for same := 0; same < 10; same++ {
		<-time.After(10 * time.Millisecond)
		if now := nodesBelow(t, a, path); now != have {
			same, have = 0, now
		}
	}
}

func nodesBelow(t *testing.T, a *arena, path string) int {
	t.Helper()
	names, _, err := a.raw.Children(path)
	if errors.Is(err, zk.ErrNoNode) {
		return 0
	}
	check(t, err)
	n := len(names)
	for _, name := range names {
		n += nodesBelow(t, a, path+"/"+name)
	}
	return n
}
