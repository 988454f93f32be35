package cache

import (
	"cmp"
	"errors"
	"time"

	"github.com/docent-go/docent/internal/inside"
)

const (
	leastBatch = 16        // nodes of unknown size in one round, at first
	mostBatch  = 1024      // and at most
	batchBytes = 512 << 10 // of data that the answers to one round should have

	leastPause  = 20 * time.Millisecond // after a fault
	mostPause   = time.Second
	limitPause  = 10 * time.Second // after a LimitError, or a list that is too large; then twice as long
	longPause   = 10 * time.Minute // and at most
	refusedWait = 30 * time.Second // until nodes that may not be read are tried again
)

var (
	// errBehind says that a server has not seen what the snapshot shows.
	errBehind = errors.New("cache: the server is behind the snapshot")
	// errLate says that changes have waited too long for a snapshot.
	errLate = errors.New("cache: the nodes change faster than the cache can read them, or the server is slow; follow less by WithFilter or WithDepth, or take a LooseTree")
)

// keeper is the goroutine of a cache: the shell around [rounds].
type keeper[V any] struct {
	*follower[V]
	*rounds[V]

	feed  inside.Feed // nil while there is none
	batch int         // how many nodes to read next

	late        lateness
	heads       [2]head   // of the last two rounds, the newer first
	doubted     time.Time // since when something waits for a snapshot, zero if nothing does
	interrupted bool      // events may be missing
	resynced    bool      // since the newest version
	lagged      time.Time // since when the server is behind the snapshot
	laggedOn    int       // the connection to it, 0 if none is behind
	restored    bool      // the servers have gone back
	large       bool      // many nodes were in doubt
	again       time.Time // when unreadable nodes are read again
	fault       error
	pause       time.Duration
	long        time.Duration // the last pause after a limit
}

// head is the last transaction that a server had, at a time at the earliest.
type head struct {
	zxid int64
	at   time.Time
}

// asOf is when the servers had nothing newer than zxid, which is the head of a round.
func (k *keeper[V]) asOf(zxid int64) time.Time {
	for _, h := range k.heads {
		if zxid >= h.zxid && !h.at.IsZero() {
			return h.at
		}
	}
	return k.latest.Load().asOf
}

func newKeeper[V any](f *follower[V]) *keeper[V] {
	k := &keeper[V]{follower: f, rounds: newRounds(f, f.drop, f.decode), batch: leastBatch}
	k.loose = f.loose
	k.room = min(knownSize, int64(inner.MaxReply(f.c))/2)
	return k
}

var errNotConnected = errors.New("cache: the client has no connection")

// caughtUp is called with what a sync says of how far the server is. A server that is behind
// the snapshot lags. If that lasts for longer than the session timeout on one connection, the
// servers have gone back: they were restored from a backup, or are new. Then the cache reads what
// they have.
func (k *keeper[V]) caughtUp(zxid int64) error {
	if zxid >= k.latest.Load().zxid {
		k.laggedOn, k.restored = 0, false
		return nil
	}
	if on := k.feed.Connection(); k.laggedOn != on {
		k.lagged, k.laggedOn = time.Now(), on
	}
	if id, timeout := k.feed.Session(); id == 0 || time.Since(k.lagged) <= timeout {
		return errBehind
	}
	k.restored = true
	return nil
}

// publish publishes a new version if the readings are a state that the tree had, or
// if the state of the cache has changed. The error is that of a state that is too
// large.
func (k *keeper[V]) publish(now inside.Contact) error {
	v, why := k.latest.Load(), k.fault
	outdated := k.outdated(time.Now())
	if outdated && why == nil {
		why = errLate
	}
	here := k.feed != nil && !k.interrupted && !outdated && !k.stuck() && now.Connected && now.Connection == k.feed.Connection()
	root, zxid := k.level.root, k.level.zxid
	switch {
	case here && zxid > 0 && (zxid >= v.zxid || k.restored):
		if root != v.root {
			if err := k.exceeded(1); err != nil {
				return err
			}
		}
		if root != v.root || v.state.Phase != Synced || v.connection != now.Connection || zxid > v.zxid && k.next() > 0 {
			k.issue(root, zxid, State{Phase: Synced})
		}
	case v.state.Phase == Synced && !here:
		k.issue(nil, v.zxid, State{Phase: Stale, Err: errors.Join(reason(why), unconnected(now))})
	case v.state.Phase != Synced && news(v.state.Err, why):
		k.issue(nil, v.zxid, State{Phase: v.state.Phase, Since: v.state.Since, Err: why})
	}
	if len(k.doubts) == 0 {
		k.doubted = time.Time{}
	}
	return nil
}

// exceeded is the error of a cache that has become too large. While it reads, the
// cache may have up to one tree of old nodes that it does not know to be gone.
func (k *keeper[V]) exceeded(trees int64) error {
	over := func(what string, limit, n int64) error {
		if limit < 0 || n <= limit {
			return nil
		}
		return &LimitError{What: what, Limit: limit, Path: k.newest}
	}
	return cmp.Or(
		over("nodes", int64(k.limits.Nodes), (int64(k.root.size())+trees-1)/trees),
		over("bytes", k.limits.Bytes, (k.bytes+trees-1)/trees),
	)
}

// outdated reports whether changes have waited too long for their snapshot.
func (k *keeper[V]) outdated(now time.Time) bool {
	if len(k.doubts) > 0 && k.doubted.IsZero() {
		k.doubted = now
	}
	switch found := k.found; {
	case len(k.doubts) == 0:
		k.late.settled()
	case found:
		k.late.found(now)
	default:
		k.late.changed(now)
	}
	k.found = false
	k.late.looked(now)
	return k.late.state == late && k.level.zxid > 0
}

// watch makes the cache stale while an answer is awaited, once changes have waited for too long
// for their snapshot. The caller calls done with the answer, before it uses rounds.
func (k *keeper[V]) watch() (done func()) {
	if k.latest.Load().state.Phase != Synced || k.level.zxid == 0 {
		return func() {}
	}
	over, passed, looks := false, false, 0
	begun, doubted, heard := time.Now(), k.late.state != calm, k.feed.Ready()
	k.issuing.Lock()
	defer k.issuing.Unlock()
	var t *time.Timer
	t = time.AfterFunc(k.late.left(time.Now()), func() {
		k.issuing.Lock()
		defer k.issuing.Unlock()
		if len(heard) > 0 {
			looks++ // with an event that waits
		}
		switch {
		case over:
		case doubted || looks > 4: // an event may have come after the last look
			passed = true
			k.issueLocked(k.latest.Load(), nil, k.latest.Load().zxid, State{Phase: Stale, Err: errLate})
		default:
			t.Reset(lateAfter / 4)
		}
	})
	return func() {
		k.issuing.Lock()
		defer k.issuing.Unlock()
		over = true
		t.Stop()
		if passed {
			k.late.passed()
			if k.doubted.IsZero() {
				k.doubted = begun
			}
		}
	}
}

// news reports whether why says more than was said before. A limit counts for more than what
// befell the cache as it looked again.
func news(said, why error) bool {
	return why != nil && !errors.Is(said, why) && !errors.Is(why, errNotConnected) &&
		(limited(why) || !limited(said))
}

// stuck reports whether the cache knows of changes that it cannot read.
func (k *keeper[V]) stuck() bool { return len(k.doubts) > 0 && reason(k.fault) != nil }

// reason is why, if that says more than how the client stands.
func reason(why error) error {
	if errors.Is(why, errNotConnected) || errors.Is(why, errBehind) {
		return nil
	}
	return why
}

// issue makes a version the newest. If it is Synced, it has root, which is the state at
// zxid.
func (k *keeper[V]) issue(root *treap[V], zxid int64, state State) {
	k.issuing.Lock()
	defer k.issuing.Unlock()
	k.issueLocked(k.latest.Load(), root, zxid, state)
}

// waited is how long the oldest change has waited for a snapshot. Those that wait on wait for another.
func (k *keeper[V]) waited(now time.Time) (delay time.Duration) {
	if !k.doubted.IsZero() {
		delay = now.Sub(k.doubted)
	}
	k.doubted = now
	return delay
}

func (k *keeper[V]) issueLocked(v *version[V], root *treap[V], zxid int64, state State) {
	if v.over {
		return // closed
	}
	next := &version[V]{Snapshot: v.Snapshot, state: state, seq: v.seq, sums: v.sums, superseded: make(chan struct{})}
	if state.Phase == Synced {
		next.root, next.zxid, next.connection = root, zxid, k.feed.Connection()
		next.asOf = k.asOf(zxid)
		if k.resynced || root != v.root || v.zxid == 0 {
			next.sums.snapshot(k.resynced, v.zxid == 0, k.restored, k.waited(time.Now()))
		}
		k.restored, k.long = false, 0
		if k.resynced {
			next.cause, k.resynced = Resync, false
		}
	} else if limited(state.Err) && !limited(v.state.Err) {
		next.sums.limits++
	}
	if next.root != v.root || state.Phase != v.state.Phase {
		next.seq++
	} else {
		next.cause = v.cause // a reader may see this version in place of v
	}
	if state.Phase == v.state.Phase {
		next.state.Since = v.state.Since
	} else {
		next.state.Since = time.Now()
	}
	k.latest.Store(next)
	close(v.superseded)
}
