package ui

import (
	"fmt"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/inside"
)

// dirOf makes the directory of a lock as it was read: with pzxid changed.
func dirOf(changed int64) *node {
	return &node{name: "l", read: true, stat: zk.Stat{Czxid: 1, Pzxid: changed}, children: map[string]*node{}}
}

func (n *node) stands(name string, zxid int64, at time.Time) string {
	n.children[name] = &node{name: name, parent: n, read: true, stat: zk.Stat{Czxid: zxid, Ctime: at.UnixMilli(), EphemeralOwner: zxid}}
	return name
}

func named1(tag string, number int) string {
	return fmt.Sprintf("_c_0c708091-6d54-8320-8594-%012x-%s%010d", number, tag, number)
}

func at(minute int) time.Time {
	return time.Date(2026, 1, 2, 12, minute, 0, 0, time.UTC)
}

// A reader that waited for a writer did not hold when its node was made, although the node that the writer
// left for its downgrade has the writer's number.
func TestHeldBehindADowngrade(t *testing.T) {
	t.Parallel()
	dir := dirOf(9) // the writer's node was deleted last
	dir.stands(named1(tagRead, 0), 5, at(10))
	second := dir.stands(named1(tagRead, 1), 3, at(1))
	l := lockAt("/l", dir, dir.stat.Pzxid, nil, time.Time{}, at(20))
	for _, c := range l.queue {
		if c.name == second && c.held.from.Equal(c.held.by) {
			t.Errorf("it waited from %v until %v at the earliest: held %+v", at(1), at(10), c.held)
		}
	}
}

// A holder has no known beginning if the clocks of the servers and of this host contradict each other.
func TestHeldByAnotherClock(t *testing.T) {
	t.Parallel()
	const ahead = time.Hour
	dir := dirOf(9)
	dir.stands(named1(tagLock, 4), 3, at(1).Add(ahead))
	l := lockAt("/l", dir, dir.stat.Pzxid, nil, time.Time{}, at(20)) // it holds since a minute between 1 and 20
	if h := l.queue[0].held; !h.from.IsZero() && h.from.After(at(1)) || h.by.Before(at(20)) {
		t.Errorf("the server's clock is ahead: %+v", h)
	}

	dir = dirOf(9)
	name := dir.stands(named1(tagLock, 4), 3, at(1).Add(-ahead))
	first := dir.stands(named1(tagLock, 3), 2, at(0).Add(-ahead))
	l = lockAt("/l", dir, dir.stat.Pzxid, nil, time.Time{}, at(10))
	delete(dir.children, first)
	dir.stands(named1(tagLock, 5), 11, at(13).Add(-ahead))
	dir.stat.Pzxid = 11
	l = lockAt("/l", dir, dir.stat.Pzxid, l, at(11), at(14))
	if h := l.queue[0].held; l.queue[0].name != name || h.from.After(at(11)) || h.by.Before(at(11)) {
		t.Errorf("the server's clock is behind: %+v", h)
	}
}

// A name that is a number alone may be that of another node by the next look.
func TestHeldByANamesake(t *testing.T) {
	t.Parallel()
	dir := dirOf(3)
	dir.stands("0000000000", 3, at(1))
	dir.stands(named1(tagLock, 1), 4, at(2))
	l := lockAt("/l", dir, 4, nil, time.Time{}, at(2))
	dir = dirOf(12)
	dir.stands("0000000000", 11, at(10))
	dir.stands(named1(tagLock, 1), 12, at(10))
	l = lockAt("/l", dir, 12, l, at(9), at(11))
	if h := l.queue[0].held; !h.from.Equal(at(10)) || !h.by.Equal(h.from) {
		t.Errorf("%+v", h)
	}
}

// Curator makes a lease first and waits then.
func TestHeldCuratorsLease(t *testing.T) {
	t.Parallel()
	dir := dirOf(9)
	leases := &node{name: "leases", parent: dir, read: true, children: map[string]*node{}}
	dir.children["leases"] = leases
	leases.stands("_c_0c708091-6d54-4320-8594-000000000001-lease-0000000001", 3, at(1))
	l := lockAt("/l", dir, dir.stat.Pzxid, nil, time.Time{}, at(20))
	if h := l.queue[0].held; !h.from.Equal(at(1)) || !h.by.Equal(at(20)) {
		t.Errorf("%+v", h)
	}
}

// A list that is yet to be read may have changed before other answers came: what is seen of it
// is not of their time.
func TestLookBehindAList(t *testing.T) {
	t.Parallel()
	m := newModel("/", limits{nodes: 100, depth: 4})
	m.begin(false)
	first, second := named1(tagLock, 0), named1(tagLock, 1)
	servers := map[want]inside.Answer{
		{"/", theData}:                {Stat: zk.Stat{Czxid: 1, NumChildren: 1}},
		{"/", theChildren}:            {Names: []string{"l"}},
		{"/l", theData}:               {Stat: zk.Stat{Czxid: 1, Pzxid: 3, NumChildren: 2}},
		{"/l", theChildren}:           {Names: []string{first, second}, Stat: zk.Stat{Czxid: 1, Pzxid: 3, NumChildren: 2}},
		{join("/l", first), theData}:  {Stat: zk.Stat{Czxid: 2, Ctime: at(1).UnixMilli(), EphemeralOwner: 1}},
		{join("/l", second), theData}: {Stat: zk.Stat{Czxid: 3, Ctime: at(2).UnixMilli(), EphemeralOwner: 2}},
	}
	read := func(most int) {
		for wants := m.next(most); len(wants) > 0; wants = m.next(most) {
			answers := make([]inside.Answer, len(wants))
			for i, w := range wants {
				answers[i] = servers[w]
			}
			m.answered(wants, answers)
		}
	}
	read(10)
	m.look(at(3), at(3))
	// The first one leaves at 4, of which the model hears. It reads something else at 5.
	servers[want{"/l", theChildren}] = inside.Answer{Names: []string{second}, Stat: zk.Stat{Czxid: 1, Pzxid: 4, NumChildren: 1}}
	m.heard([]inside.FeedEvent{{Kind: inside.FeedChildren, Path: "/l"}})
	m.look(at(5), at(5))
	read(10)
	m.look(at(6), at(6))
	if h := m.locks["/l"].queue[0].held; h.from.After(at(4)) || h.by.Before(at(4)) {
		t.Errorf("it holds since %v: %+v", at(4), h)
	}
}

// A directory of ClickHouse Keeper does not tell that a child was deleted.
func TestHeldOnKeeper(t *testing.T) {
	t.Parallel()
	m := newModel("/", limits{nodes: 100, depth: 4})
	m.counts = false
	m.begin(true)
	m.list("/", inside.Answer{Names: []string{"l"}})
	m.list("/l", inside.Answer{Names: []string{named1(tagLock, 1)}})
	m.data("/l", inside.Answer{Stat: zk.Stat{Czxid: 1, Pzxid: 3, NumChildren: 1}})
	m.data(join("/l", named1(tagLock, 1)), inside.Answer{Stat: zk.Stat{Czxid: 3, Ctime: at(1).UnixMilli(), EphemeralOwner: 1}})
	m.look(at(20), at(20))
	if h := m.locks["/l"].queue[0].held; !h.from.Equal(at(1)) || !h.by.Equal(at(20)) {
		t.Errorf("one may have been ahead of it until %v: %+v", at(20), h)
	}
	m.heard([]inside.FeedEvent{{Kind: inside.FeedDeleted, Path: join("/l", named1(tagLock, 0))}})
	clear(m.reads.wanted)
	m.look(at(21), at(21))
	if n := len(m.reads.wanted); n != 0 {
		t.Errorf("%d parts are read of which nothing can be learned", n)
	}
}
