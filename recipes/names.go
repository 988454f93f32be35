package recipes

import (
	"regexp"
	"strings"

	"github.com/docent-go/docent/internal/inside"
	"github.com/docent-go/docent/recipes/internal/seqqueue"
)

// The tags that stand before the numbers.
const (
	lockTag   = "lock-"    // InterProcessMutex, LeaderSelector, go-zookeeper's Lock
	readTag   = "__READ__" // InterProcessReadWriteLock
	writeTag  = "__WRIT__"
	kazooLock = "__lock__" // kazoo's Lock and WriteLock
	kazooRead = "__rlock__"
)

// latchTag stands before the number of a LeaderLatch's node. The participant with
// the lowest leads, beside the holder of a lock on the same path.
const latchTag = "latch-"

// leaseTag stands before the number of a semaphore's lease.
const leaseTag = "lease-"

func isRead(tag string) bool { return tag == readTag || tag == kazooRead }

// rule says which contenders ahead block one with the given tag. Readers do not block
// each other; every other pair does.
func rule(tag string) seqqueue.Blocks {
	if isRead(tag) {
		return func(ahead seqqueue.Node) bool { return !isRead(ahead.Tag) }
	}
	return seqqueue.AllBlock
}

// Family is the library that made a node, as far as the node's name tells. A
// name is easily imitated: it is for people and for diagnosis.
type Family int

// The libraries whose names are known.
const (
	FamilyUnknown     Family = iota
	FamilyDocent             // "_c_", a UUID of version 8
	FamilyCurator            // "_c_", a UUID of version 4 (ProtectedUtils)
	FamilyGoZookeeper        // "_c_", 32 hex digits (Conn.CreateProtectedEphemeralSequential)
	FamilyKazoo              // 32 hex digits, "__lock__" or "__rlock__" (kazoo.recipe.lock)
)

// String is the name of the library.
func (f Family) String() string {
	switch f {
	case FamilyDocent:
		return "Docent"
	case FamilyCurator:
		return "Curator"
	case FamilyGoZookeeper:
		return "go-zookeeper"
	case FamilyKazoo:
		return "kazoo"
	default:
		return "an unknown library"
	}
}

// The beginnings of names.
var (
	docentName      = regexp.MustCompile(`^_c_[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}-`)
	curatorName     = regexp.MustCompile(`^_c_[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}-`)
	movableName     = regexp.MustCompile(`^_c_[0-9a-f]{8}-[0-9a-f]{4}-8[89a-f]`) // of the Docent names (inside.Node.Movable)
	goZookeeperName = regexp.MustCompile(`^_c_[0-9a-f]{32}-`)
	kazooName       = regexp.MustCompile(`^[0-9a-f]{32}__r?lock__`)
)

// movable reports, by the name or the path of a node, whether it is of a participant of an
// election of this library. A mutex does not watch its own node in its first moments. If
// that is deleted then, the mutex may be granted all the same.
func movable(path string) bool {
	name := path[strings.LastIndexByte(path, '/')+1:]
	return familyOf(name) == FamilyDocent && movableName.MatchString(name)
}

// familyOf tells by the name or the path of a node.
func familyOf(path string) Family {
	name := path[strings.LastIndexByte(path, '/')+1:]
	switch {
	case docentName.MatchString(name):
		return FamilyDocent
	case curatorName.MatchString(name):
		return FamilyCurator
	case goZookeeperName.MatchString(name):
		return FamilyGoZookeeper
	case kazooName.MatchString(name):
		return FamilyKazoo
	default:
		return FamilyUnknown
	}
}

// leaseNumber is the number of a child that has the name of a lease, ours or
// Curator's. It is negative where the counter has passed its end: unlike
// places in a queue, leases are good without an order.
func leaseNumber(name string) (string, bool) {
	const uuid = 36
	rest, ok := strings.CutPrefix(name, inside.ProtectedPrefix)
	if !ok || len(rest) < uuid || !isUUID(rest[:uuid]) {
		return "", false
	}
	number, ok := strings.CutPrefix(rest[uuid:], "-"+leaseTag)
	return number, ok && len(number) >= 10 && strings.Trim(strings.TrimPrefix(number, "-"), "0123456789") == ""
}

// isUUID reports whether s, of 36 bytes, is a UUID as Java and we write it.
func isUUID(s string) bool {
	for i := range len(s) {
		switch dash := i == 8 || i == 13 || i == 18 || i == 23; {
		case dash != (s[i] == '-'):
			return false
		case !dash && !strings.ContainsRune("0123456789abcdef", rune(s[i])):
			return false
		}
	}
	return true
}
