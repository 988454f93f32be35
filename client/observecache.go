package client

import "time"

// CacheInfo describes a cache of package recipes/cache that starts.
type CacheInfo struct {
	Recipe string // the type: "Tree", "LooseTree", "Children" or "Value"
	Path   string // that it follows, as the caller gave it
}

// CacheState is how a cache stands.
type CacheState int

// The states of a cache.
const (
	CacheSyncing CacheState = iota // it has no snapshot yet
	CacheSynced                    // it hears of each change
	CacheStale                     // it has a snapshot, and does not hear of changes
	CacheEnded                     // by Close, with its client, or as its Start failed; the last update
)

// String returns the state in lower case.
func (s CacheState) String() string {
	if s < CacheSyncing || s > CacheEnded {
		return "unknown"
	}
	return [...]string{"syncing", "synced", "stale", "ended"}[s]
}

// CacheCause is what led to a snapshot.
type CacheCause int

// The causes of snapshots.
const (
	CacheChanged CacheCause = iota // the servers have told of changes
	CacheStarted                   // it is the first one
	CacheResync                    // the cache has read everything again, after a reconnection or a fault
)

// String returns the cause in lower case.
func (c CacheCause) String() string {
	if c < CacheChanged || c > CacheResync {
		return "unknown"
	}
	return [...]string{"changed", "started", "resync"}[c]
}

// CacheUpdate is news of a cache. If the hook is slower than the cache, one update stands for
// several snapshots: it describes the newest, and its counts have all of them.
type CacheUpdate struct {
	State CacheState
	Err   error // why it is not synced, or why its Start failed; nil if that is not known
	Zxid  int64 // of the newest snapshot, 0 if there is none
	Nodes int   // in the newest snapshot

	// Snapshots is how many snapshots there were since the update before. If it is 0, Cause
	// and Delay mean nothing.
	Snapshots int64
	// Cause is what led to the newest of them.
	Cause CacheCause
	// Delay is how long the oldest change that the newest snapshot shows has waited for it, from
	// when the cache heard of it. Of a first snapshot and of a resync it is how long the reading
	// took.
	Delay time.Duration

	// Resyncs, Gaps and Limits say how often, since the update before, the cache has read
	// everything again, has found servers that had gone back, and has found that the nodes
	// exceed a limit of the cache or of the client.
	Resyncs, Gaps, Limits int64
}
