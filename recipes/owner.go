package recipes

import (
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

// Owner is the process that made a contender's node, as far as its data tells. Data that
// says nothing of the kind leaves it zero. kazoo's data is whatever its user calls an
// identifier, and go-zookeeper's is empty. A request to release may replace the data,
// see [Contender.ReleaseRequested].
type Owner struct {
	Host   string // its address, "" if not known
	PID    int    // process id, 0 if not told
	Client string // its name, "" if not told; see client.WithName
}

// named is what client.WithName writes.
var named = regexp.MustCompile(`^(\S+) pid=(\d{1,10}) client=(.+)$`)

// parseOwner reads a node's data. An address alone is what Curator writes, and
// Docent without a name.
func parseOwner(data []byte) Owner {
	text := string(data)
	if m := named.FindStringSubmatch(text); m != nil && printable(text) {
		pid, err := strconv.ParseInt(m[2], 10, 32)
		if err != nil {
			return Owner{}
		}
		return Owner{Host: strings.Trim(m[1], "?"), PID: int(pid), Client: m[3]}
	}
	if _, err := netip.ParseAddr(text); err == nil {
		return Owner{Host: text}
	}
	return Owner{}
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
