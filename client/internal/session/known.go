package session

import (
	"fmt"
	"sync"
)

// Known is what a client knows of its servers. It goes from session to session. The zero value
// is ready for use.
type Known struct {
	mu      sync.Mutex
	product string           // of the servers that answered last
	lacking map[Feature]bool // what they lack
}

// learn forgets which features other servers lacked.
func (k *Known) learn(product string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.product != product {
		k.product, k.lacking = product, map[Feature]bool{}
	}
}

func (k *Known) lacks(f Feature) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.lacking[f]
}

func (k *Known) lack(f Feature) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.lacking == nil {
		k.lacking = map[Feature]bool{}
	}
	k.lacking[f] = true
}

// Feature is something that not every server has. A client asks
// [Session.Supports] before it sends a request that needs one.
type Feature int

const (
	// ContainerNodes are made by createContainer (19).
	ContainerNodes Feature = iota
	// TTLNodes are made by createTTL (21).
	TTLNodes
	// WatchRemoval is removeWatches (18) and checkWatches (17).
	WatchRemoval
	// PersistentWatches are made by addWatch (106), recursive or not.
	PersistentWatches
	// MultiReads are multiRead (22).
	MultiReads
	// Reconfiguration is reconfig (16).
	Reconfiguration
	// EphemeralLists are getEphemerals (103).
	EphemeralLists
	// NodeCounts are getAllChildrenNumber (104).
	NodeCounts
	// Identities are whoAmI (107).
	Identities
	// Quotas are kept in nodes.
	Quotas
)

// String names the feature and the servers that have it.
func (f Feature) String() string {
	switch f {
	case ContainerNodes:
		return "container nodes (Apache ZooKeeper 3.5.1 or later)"
	case TTLNodes:
		return "TTL nodes (Apache ZooKeeper 3.5.3 or later with extendedTypesEnabled=true)"
	case WatchRemoval:
		return "removal of watches (Apache ZooKeeper 3.5.0 or later)"
	case PersistentWatches:
		return "persistent watches (Apache ZooKeeper 3.6.0 or later)"
	case MultiReads:
		return "many reads by one request (Apache ZooKeeper 3.6.0 or later)"
	case Reconfiguration:
		return "reconfiguration (Apache ZooKeeper 3.5.0 or later)"
	case EphemeralLists:
		return "lists of a session's ephemeral nodes (Apache ZooKeeper 3.6.0 or later)"
	case NodeCounts:
		return "counts of the nodes below a node (Apache ZooKeeper 3.6.0 or later)"
	case Identities:
		return "the question who the client is (Apache ZooKeeper 3.7.0 or later)"
	case Quotas:
		return "quotas (Apache ZooKeeper)"
	default:
		return fmt.Sprintf("feature %d", int(f))
	}
}
