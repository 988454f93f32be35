package cache

import (
	"time"

	"github.com/docent-go/docent/client"
)

// sums say what has happened to a cache since it was made. The versions carry them, so that an
// observer that is slower than the cache misses none.
type sums struct {
	snapshots, resyncs, gaps, limits int64
	// of the newest snapshot
	cause client.CacheCause
	delay time.Duration
}

// snapshot counts a snapshot.
func (s *sums) snapshot(resynced, first, back bool, delay time.Duration) {
	s.snapshots++
	s.cause, s.delay = client.CacheChanged, delay
	switch {
	case first:
		s.cause = client.CacheStarted
	case resynced:
		s.cause = client.CacheResync
		s.resyncs++
	}
	if back {
		s.gaps++
	}
}

// update is what an observer is told of v that was told of the sums before.
func (v *version[V]) update(before sums) client.CacheUpdate {
	u := client.CacheUpdate{
		Err: v.state.Err, Zxid: v.zxid, Nodes: v.Len(),
		Snapshots: v.sums.snapshots - before.snapshots, Cause: v.sums.cause, Delay: v.sums.delay,
		Resyncs: v.sums.resyncs - before.resyncs, Gaps: v.sums.gaps - before.gaps, Limits: v.sums.limits - before.limits,
	}
	switch {
	case v.over:
		u.State = client.CacheEnded
	case v.state.Phase == Synced:
		u.State = client.CacheSynced
	case v.state.Phase == Stale:
		u.State = client.CacheStale
	}
	return u
}

// observe tells the hook of the client's observer of each version, until the life ends. It has
// a goroutine of its own, as the hook may block. v is the version with which the life began.
func (f *follower[V]) observe(l *life[V], v *version[V], hook func(client.CacheInfo) func(client.CacheUpdate)) {
	tell := hook(client.CacheInfo{Recipe: f.recipe, Path: f.path})
	if tell == nil {
		return
	}
	for before := v.sums; ; {
		tell(v.update(before))
		if before = v.sums; v.over {
			return
		}
		select {
		case <-v.superseded:
		case <-l.ended:
		}
		v = f.latest.Load()
		select {
		case <-l.ended: // v may be of another life
			last := l.last.update(before)
			if last.State = client.CacheEnded; !l.last.over {
				last.Err = l.err
			}
			if limited(l.err) {
				last.Limits++
			}
			tell(last)
			return
		default:
		}
	}
}
