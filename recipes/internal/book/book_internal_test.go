package book

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/go-zookeeper/zk"
)

type (
	book    = Book[int, int]
	waiter  = Waiter[int]
	release = Release[int, int]
	grants  = Grants[int, int]
)

// line is a book, and the waiters of its client in the order of the queue.
type line struct {
	testing.TB
	book

	waiters []*waiter
}

const (
	session      = 1 // of the waiters
	otherSession = 2
)

// newLine makes waiters that want so many permits each of max. The first has its turn.
func newLine(tb testing.TB, limit int, wanted ...int) *line {
	tb.Helper()
	l := &line{TB: tb}
	l.book = *New[int, int](func(w *waiter) *waiter {
		if i := slices.Index(l.waiters, w) + 1; i < len(l.waiters) {
			return l.waiters[i]
		}
		return nil
	})
	for i, n := range wanted {
		l.waiters = append(l.waiters, &waiter{N: n, Max: limit, Session: session, Number: int64(i), Czxid: int64(100 + i)})
	}
	return l
}

// turn lets the first waiter list the leases.
func (l *line) turn(leases ...string) *line {
	l.See(l.waiters[0], leases)
	l.First(l.waiters[0])
	return l
}

func stat(owner int64) *zk.Stat { return &zk.Stat{EphemeralOwner: owner} }

func names(prefix string, n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprint(prefix, i))
	}
	return all
}

// ends notes a release that waits for the next grant.
func (l *line) ends(of int64, leases ...string) *release {
	l.Helper()
	r := &release{Names: leases, Session: of}
	if !l.Release(r, stat(of)) {
		l.Errorf("the release of %v does not wait", leases)
	}
	return r
}

// send returns the next transaction.
func (l *line) send() *grants {
	l.Helper()
	g, _ := l.Next()
	if g == nil {
		l.Fatal("there is no transaction")
	}
	return g
}

func (l *line) wantGrant(g *grants, waiters []int, released ...*release) {
	l.Helper()
	var got []int
	if g != nil {
		for _, w := range g.Waiters {
			got = append(got, slices.Index(l.waiters, w))
		}
	}
	if !slices.Equal(got, waiters) {
		l.Errorf("the transaction grants %v, want %v", got, waiters)
	}
	if g != nil && !slices.Equal(g.Released, released) {
		l.Errorf("the transaction deletes the leases of %d releases, want %d", len(g.Released), len(released))
	}
}

func (l *line) wantStates(want ...Standing) {
	l.Helper()
	for i, state := range want {
		if l.waiters[i].state != state {
			l.Errorf("waiter %d is in state %d, want %d", i, l.waiters[i].state, state)
		}
	}
}

func (l *line) wantReady(want ...int) {
	l.Helper()
	var got []int
	for _, w := range l.ready {
		got = append(got, slices.Index(l.waiters, w))
	}
	if !slices.Equal(got, want) {
		l.Errorf("ready are %v, want %v", got, want)
	}
}

func (l *line) wantLeases(own, view []string) {
	l.Helper()
	for what, c := range map[string]struct {
		got  map[string]*zk.Stat
		want []string
	}{"own": {l.own, own}, "view": {l.view, view}} {
		if got := slices.Sorted(maps.Keys(c.got)); !slices.Equal(got, c.want) {
			l.Errorf("%s is %v, want %v", what, got, c.want)
		}
	}
}

// As many waiters get permits as there is room for, and nobody is overtaken.
func TestBookFillsTheRoom(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		limit  int
		wanted []int
		stand  int
		want   []int
	}{
		{limit: 1, wanted: []int{1, 1}, want: []int{0}},
		{limit: 1, wanted: []int{1, 1}, stand: 1},
		{limit: 4, wanted: []int{1, 2, 1, 1}, want: []int{0, 1, 2}},
		{limit: 4, wanted: []int{1, 2, 1, 1}, stand: 1, want: []int{0, 1}},
		{limit: 4, wanted: []int{1, 3, 1}, stand: 1, want: []int{0}}, // the third does not overtake
		{limit: 4, wanted: []int{4}, want: []int{0}},
		{limit: 4, wanted: []int{4, 1}, stand: 1},
		{limit: 1000, wanted: []int{mostTogether - 1, 1, 1}, want: []int{0, 1}},
		{limit: 1000, wanted: []int{mostTogether, 1}, want: []int{0}},
		{limit: 1000, wanted: []int{mostTogether + 1, 1}, want: []int{0}}, // alone it may be that large
	} {
		l := newLine(t, c.limit, c.wanted...).turn(names("s", c.stand)...)
		before := l.used()
		g, decided := l.Next()
		l.wantGrant(g, c.want)
		if len(decided) > 0 {
			t.Errorf("%d releases are decided, and there is none", len(decided))
		}
		permits := 0
		for _, i := range c.want {
			l.wantStates(slices.Repeat([]Standing{Promised}, i+1)...)
			permits += c.wanted[i]
		}
		if g == nil {
			l.wantReady(0)
			continue
		}
		l.wantReady()
		if g.permits != permits || l.used() != before+permits || before != c.stand {
			t.Errorf("%d, then %d permits are used, want %d more", before, l.used(), permits)
		}
		if g.Alone != (len(c.want) == 1) {
			t.Errorf("alone is %v for %v", g.Alone, c.want)
		}
	}
}

// Who is not in the queue, was refused with others, or has another session, is not granted
// along with the first.
func TestBookGroupEnds(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(w *waiter){
		"departed":         func(w *waiter) { w.state = Departed },
		"another session":  func(w *waiter) { w.Session = otherSession },
		"refused together": func(w *waiter) { w.alone = true },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			l := newLine(t, 4, 1, 1, 1, 1)
			change(l.waiters[2])
			l.wantGrant(l.turn().send(), []int{0, 1})
			l.wantStates(Promised, Promised, l.waiters[2].state, InQueue)
		})
	}
}

// One transaction is under way at a time. Releases wait for its end.
func TestBookOneTransaction(t *testing.T) {
	t.Parallel()
	l := newLine(t, 2, 1, 2).turn()
	l.wantGrant(l.send(), []int{0})
	r := l.ends(session, "own")
	if g, decided := l.Next(); g != nil || decided != nil || r.by != nil {
		t.Errorf("a second transaction %v is sent, and %v are decided", g, decided)
	}
	l.Granted([]string{"a"}, stat(session), 1, false)
	l.wantStates(Served, InQueue)
	l.wantLeases([]string{"a", "own"}, nil)
	if !l.Knows(l.waiters[1]) || l.Knows(l.waiters[0]) {
		t.Error("the successor is not known, or another is")
	}
	l.First(l.waiters[1])
	g, decided := l.Next() // one permit is missing
	l.wantGrant(g, nil)
	if len(decided) != 1 || decided[0] != r || r.by != nil {
		t.Errorf("decided are %v, and %v deletes", decided, r.by)
	}
	l.wantLeases([]string{"a", "own"}, nil)
	l.Ended(r.Names)
	r = l.ends(session, "a")
	l.wantGrant(l.send(), []int{1}, r)
}

// A release lets its leases be deleted by a transaction only while there is one, or a waiter
// that is ready.
func TestBookRelease(t *testing.T) {
	t.Parallel()
	l := newLine(t, 1, 1)
	r := &release{Names: []string{"own"}, Session: session}
	if l.Release(r, stat(session)) {
		t.Error("the release waits, and nobody is ready")
	}
	l.wantLeases(nil, nil)
	l.turn("own")
	l.wantLeases(nil, []string{"own"})
	if !l.Release(r, stat(session)) || l.Withdraw(&release{}) != true {
		t.Error("the release does not wait for the one that is ready, or another withdrew it")
	}
	l.wantLeases([]string{"own"}, nil)
	g := l.send()
	l.wantGrant(g, []int{0}, r)
	if g.Alone {
		t.Error("a transaction that deletes leases of others may be refused for them")
	}
	if l.Withdraw(r) || r.by != g {
		t.Error("the release was withdrawn from the transaction that deletes its leases")
	}
	late := l.ends(session, "late")
	if !l.Withdraw(late) || len(l.pending) != 0 {
		t.Errorf("%d releases are pending after the only one was withdrawn", len(l.pending))
	}
	l.Granted([]string{"new"}, stat(session), -1, false)
	l.wantLeases([]string{"late", "new"}, nil)
}

// A transaction deletes leases of its own session that stand, and not too many.
func TestBookTakesAlong(t *testing.T) {
	t.Parallel()
	l := newLine(t, 1000, 1000).turn("s")
	fits := l.ends(session, names("fits", mostTogether-3)...)
	foreign := l.ends(otherSession, "foreign")
	tooMany := l.ends(session, names("many", 4)...)
	gone := l.ends(session, "stands", "gone")
	last := l.ends(session, names("last", 3)...)
	l.Ended([]string{"gone"})
	l.Lose([]string{"s"})
	l.Gone("s")
	for _, r := range [][]string{foreign.Names, tooMany.Names, {"stands"}} {
		l.Ended(r)
		l.Keep(r, stat(session))
	}
	if g, _ := l.Next(); g != nil { // own leases that are not deleted along leave no room
		t.Fatal("a transaction is sent")
	}
	all := []*release{fits, foreign, tooMany, gone, last}
	l.pending = all
	l.waiters[0].N = 1000 - 6
	g, decided := l.Next()
	l.wantGrant(g, []int{0}, fits, last)
	if !slices.Equal(decided, all) {
		t.Errorf("%d releases are decided, want all", len(decided))
	}
	for _, r := range all {
		if along := r == fits || r == last; along != (r.by == g) {
			t.Errorf("the leases %v are deleted along: %v", r.Names[0], r.by == g)
		}
	}
	if l.used() != 6+mostTogether+994 {
		t.Errorf("%d permits are used", l.used())
	}
	l.Granted([]string{"new"}, stat(session), -1, false)
	l.wantLeases(slices.Concat([]string{"foreign"}, tooMany.Names, []string{"new", "stands"}), nil)
}

// A transaction that was refused changes nothing. What it was for is tried one by one.
func TestBookRefused(t *testing.T) {
	t.Parallel()
	l := newLine(t, 3, 1, 1, 1, 1).turn()
	g := l.send()
	l.wantGrant(g, []int{0, 1, 2})
	l.Leave(l.waiters[2], false)
	l.Refused()
	l.wantStates(Ready, InQueue, Departed, InQueue)
	l.wantReady(0)
	r := l.ends(session, "own")
	g = l.send() // neither others nor leases go along
	l.wantGrant(g, []int{0})
	if !g.Alone || r.by != nil {
		t.Errorf("alone is %v", g.Alone)
	}
	l.Refused()
	l.wantStates(Failed, InQueue, Departed, InQueue)
	l.wantReady()

	l = newLine(t, 3, 1, 1).turn()
	l.send()
	l.Leave(l.waiters[0], false)
	l.Refused()
	l.wantStates(Departed, InQueue)
	l.wantReady()

	l = newLine(t, 1, 1).turn()
	l.send()
	l.Leave(l.waiters[0], false)
	l.Refused()
	l.wantStates(Departed)
}

// A transaction whose result nobody knows serves nobody. The leases are listed again.
func TestBookLost(t *testing.T) {
	t.Parallel()
	l := newLine(t, 2, 1, 1, 1).turn()
	l.send()
	l.Leave(l.waiters[1], false)
	l.First(l.waiters[2]) // both before it have lost their nodes
	l.wantReady(2)
	again := l.Lost()
	if !slices.Equal(again, l.waiters[2:]) {
		t.Errorf("%d waiters list again", len(again))
	}
	l.wantStates(Failed, Departed, InQueue)
	l.wantReady()
	if l.Knows(l.waiters[2]) || l.known {
		t.Error("the leases are known")
	}
	l.wantLeases(nil, nil)
	l.First(l.waiters[2])
	if l.See(l.waiters[2], []string{"s"}); l.used() != 1 {
		t.Errorf("%d permits are used after the list", l.used())
	}
	l.wantGrant(l.send(), []int{2})
	if l.successor = 2; !l.Knows(l.waiters[2]) {
		t.Error("the next without a gap does not know")
	}
	if l.Lost(); l.Knows(l.waiters[2]) {
		t.Error("the next without a gap knows what nobody does")
	}
}

// If another lock is in use on the path, nobody may hold what was granted.
func TestBookMixed(t *testing.T) {
	t.Parallel()
	l := newLine(t, 2, 1, 1).turn("a")
	l.Gone("a")
	l.send()
	l.Leave(l.waiters[1], false)
	l.Granted([]string{"a", "b"}, stat(session), -1, true)
	l.wantStates(Failed, Departed)
	l.wantLeases([]string{"a", "b"}, nil)
}

// What is granted to a waiter that has left has no holder.
func TestBookLeave(t *testing.T) {
	t.Parallel()
	l := newLine(t, 3, 1, 1, 1, 1).turn()
	if l.Leave(l.waiters[3], false) {
		t.Error("nothing was granted")
	}
	l.send()
	if l.Leave(l.waiters[2], false) {
		t.Error("a promise is no grant")
	}
	l.Granted([]string{"a", "b", "c"}, stat(session), -1, false)
	l.wantStates(Served, Served, Departed, Departed)
	if !l.Leave(l.waiters[0], false) || l.Leave(l.waiters[1], true) || l.Leave(l.waiters[2], false) {
		t.Error("of three, the first has left a grant that nobody holds")
	}

	l = newLine(t, 1, 1).turn("s")
	l.Leave(l.waiters[0], false)
	l.wantStates(Departed)
	l.wantReady()
}

// The end of leases that nobody tells is for the first to watch.
func TestBookForsakes(t *testing.T) {
	t.Parallel()
	l := newLine(t, 3, 1, 1)
	l.Keep([]string{"early"}, stat(session))
	l.Lose([]string{"early"}) // nobody has listed: a list will show it
	l.wantLeases(nil, nil)
	if l.view != nil || l.known {
		t.Error("the leases are known before a list")
	}
	l.Keep([]string{"mine", "past", "end"}, stat(session))
	l.Keep([]string{"past"}, stat(otherSession))
	l.turn("mine", "past", "s")
	l.wantLeases([]string{"end", "mine"}, []string{"past", "s"})
	if got := l.view["past"]; got == nil || got.EphemeralOwner != otherSession {
		t.Errorf("the lease of an earlier session is known as %v", got)
	}
	l.Lose([]string{"mine", "unknown"})
	l.Ended([]string{"end"})
	l.wantLeases(nil, []string{"mine", "past", "s"})
	l.Look("s", stat(otherSession))
	l.Look("nowhere", stat(otherSession))
	l.Keep([]string{"kept"}, stat(session))
	if l.Strangers()[0] != "mine" || !slices.IsSorted(l.Strangers()) || len(l.Strangers()) != 3 {
		t.Errorf("watched are %v", l.Strangers())
	}
	var held []string
	for _, x := range l.Held() {
		held = append(held, x.Name)
	}
	if want := []string{"kept", "mine", "past", "s"}; !slices.Equal(held, want) {
		t.Errorf("held are %v, want %v", held, want)
	}
	if l.view["s"].EphemeralOwner != otherSession || l.Held()[0].Stat.EphemeralOwner != session {
		t.Error("the owner of a lease is not known")
	}
	if l.used() != 4 || l.HasRoom(l.waiters[0]) {
		t.Errorf("%d of 3 are used, and there is room", l.used())
	}
	if l.Gone("s"); l.HasRoom(l.waiters[0]) {
		t.Error("3 of 3 are used, and there is room")
	}
	l.Ended([]string{"past", "kept"})
	l.wantLeases(nil, []string{"mine"})
	if l.waiters[0].N = 2; !l.HasRoom(l.waiters[0]) {
		t.Error("1 of 3 is used, and there is no room for 2")
	}
	if l.waiters[0].N = 3; l.HasRoom(l.waiters[0]) {
		t.Error("1 of 3 is used, and there is room for 3")
	}
	l.First(l.waiters[0]) // again
	l.wantReady(0)
}

// A list that is older than the turn of another waiter takes no lease away.
func TestBookOldList(t *testing.T) {
	t.Parallel()
	l := newLine(t, 2, 1, 1, 1)
	l.See(l.waiters[1], []string{"a", "b"})
	l.First(l.waiters[1])
	l.Look("a", stat(otherSession))
	l.See(l.waiters[0], []string{"c"})
	l.wantLeases(nil, []string{"a", "b", "c"})
	l.First(l.waiters[0])
	l.wantReady(0, 1)
	l.See(l.waiters[1], []string{"a", "c"}) // again
	l.wantLeases(nil, []string{"a", "c"})
	if l.view["a"] == nil {
		t.Error("what was read of a lease is forgotten")
	}
	if l.Keep([]string{"own"}, stat(session)); l.used() != 3 {
		t.Errorf("%d are used", l.used())
	}
	l.See(l.waiters[2], []string{"own", "d"})
	l.wantLeases([]string{"own"}, []string{"d"})
	l.First(l.waiters[2])
	l.wantReady(0, 1, 2)

	l = newLine(t, 2, 1, 1)
	l.newest = l.waiters[1].Czxid
	l.See(l.waiters[0], []string{"a"}) // nothing was known
	l.wantLeases(nil, []string{"a"})
}

// If there is no room for the one whose turn came first, the next that is ready may have
// some: the node of the other was deleted.
func TestBookServesTheNextReady(t *testing.T) {
	t.Parallel()
	l := newLine(t, 3, 3, 2).turn("s")
	l.First(l.waiters[1])
	l.wantReady(0, 1)
	l.wantGrant(l.send(), []int{1})
	l.wantStates(Ready, Promised)
	l.wantReady(0)

	l = newLine(t, 3, 1, 1).turn()
	l.First(l.waiters[1])
	l.wantGrant(l.send(), []int{0})
	l.wantReady(1)
}
