package nodes

import (
	"math"
	"time"

	"github.com/docent-go/docent/client"
)

// Mode is the kind of a node: Curator's CreateMode.
type Mode int

// The modes. A TTL node is a [PersistentTtlNode].
const (
	// Ephemeral: the node is deleted when the session ends.
	Ephemeral Mode = iota
	// EphemeralSequential: an ephemeral node, to whose name the server appends a
	// number of ten digits. A node that is made again keeps its number.
	EphemeralSequential
	// Persistent: the node stays until it is deleted.
	Persistent
	// PersistentSequential: a persistent node with a number. It takes
	// [WithProtection]: without the UUID in its name, no client could tell which
	// object made a node whose answer was lost. The node would stay for ever.
	PersistentSequential
	// Container: the server removes the node some time after its last child is gone.
	Container

	persistentTTL // of a PersistentTtlNode
)

// String returns the mode in lower case.
func (m Mode) String() string {
	names := [...]string{"ephemeral", "ephemeral sequential", "persistent", "persistent sequential", "container", "persistent with ttl"}
	if m < 0 || int(m) >= len(names) {
		return "unknown"
	}
	return names[m]
}

func (m Mode) ephemeral() bool { return m == Ephemeral || m == EphemeralSequential }

func (m Mode) sequential() bool { return m == EphemeralSequential || m == PersistentSequential }

// options are the options of a create. A node that has its number is made without
// another (PersistentNode.getCreateMode).
func (m Mode) options(numbered bool, ttl time.Duration) (opts []client.CreateOption) {
	if m.ephemeral() {
		opts = append(opts, client.Ephemeral())
	}
	if m.sequential() && !numbered {
		opts = append(opts, client.Sequential())
	}
	switch m {
	case Container:
		opts = append(opts, client.Container())
	case persistentTTL:
		opts = append(opts, client.TTL(ttl))
	}
	return opts
}

// ofSession reports whether owner, the ephemeralOwner of a node, is a session. In
// containers and TTL nodes it says what they are (ZooKeeper: EphemeralType).
func ofSession(owner int64) bool {
	return owner != 0 && owner != math.MinInt64 && uint64(owner)>>56 != 0xff //nolint:gosec // the sign is one of the bits
}
