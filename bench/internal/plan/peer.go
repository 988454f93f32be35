package plan

import (
	"slices"
	"time"

	"github.com/docent-go/docent/bench/internal/load"
	"github.com/docent-go/docent/bench/internal/servers"
)

// Language is what a peer's process is written in.
type Language string

// The languages.
const (
	Go     Language = "Go"
	Java   Language = "Java"
	Python Language = "Python"
)

// Peer is who is measured.
type Peer struct {
	Name     string
	Title    string
	Family   servers.Family
	Language Language
	Kinds    []load.Kind
	Floor    bool // of ZooKeeper's requests, with no lock or half a lock around them
}

// inFlight is how many requests the floor of pipelining has on their way.
const inFlight = 16

// Peers returns every peer.
func Peers() []Peer {
	locks := []load.Kind{load.Mutex, load.ReadWrite, load.Semaphore, load.Multi}
	every := append(slices.Clone(locks), load.Counter, load.Promoted)
	mutex := []load.Kind{load.Mutex}
	queues := []load.Kind{load.Mutex, load.Semaphore, load.Multi}
	return []Peer{
		{"docent", "Docent", servers.ZooKeeper, Go, every, false},
		{"raw", "floor: create and delete with go-zookeeper, no lock; of a number: get and set", servers.ZooKeeper, Go, every, true},
		{"pipe16", "floor: the same with 16 in flight", servers.ZooKeeper, Go, mutex, true},
		{"rawho", "floor: a queue where each knows its predecessor", servers.ZooKeeper, Go, queues, true},
		{"zklock", "go-zookeeper's zk.Lock", servers.ZooKeeper, Go, mutex, false},
		{"curator", "Curator's recipes", servers.ZooKeeper, Java, every, false},
		{"kazoo", "kazoo's recipes", servers.ZooKeeper, Python, []load.Kind{load.Mutex, load.Semaphore}, false},
		{"etcd", "etcd's concurrency.Mutex", servers.Etcd, Go, mutex, false},
		{"redsync", "redsync's Mutex", servers.Redis, Go, mutex, false},
	}
}

// Does says whether the peer has what the workload asks for, or is a floor of it.
func (p *Peer) Does(w *Workload) bool {
	if w.Lone && !slices.Contains([]string{"docent", "rawho", "curator"}, p.Name) {
		return false // each would have two more processes, that stay for the whole workload
	}
	switch p.Name {
	case "raw":
		return !w.Queue() && slices.Contains(p.Kinds, w.Kind)
	case "rawho":
		return w.Queue()
	case "pipe16":
		return w.Name == "free"
	case "kazoo":
		// The read lock of Debian's kazoo, 2.8, also waits for writers behind it, which
		// wait for it: python-zk/kazoo#649. It would never end.
		if w.Kind == load.Semaphore && w.Permits > 1 {
			return false // its semaphore gives one permit
		}
	}
	return slices.Contains(p.Kinds, w.Kind)
}

// Spec is what a process of the peer is told.
func (p *Peer) Spec(w *Workload, addrs []string, root string, timeout time.Duration) *load.Spec {
	s := &load.Spec{
		Peer: p.Name, Addrs: addrs, Kind: w.Kind, Root: root, Contenders: w.Contenders, Sessions: w.Sessions,
		Locks: w.Locks, Permits: w.Permits, Limit: w.Limit, Timeout: timeout,
	}
	if p.Name == "pipe16" {
		s.Peer, s.Contenders = "raw", inFlight
	}
	return s
}
