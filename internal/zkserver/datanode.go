package zkserver

// Stat is the metadata of a node as a client sees it. Times are milliseconds since
// the Unix epoch by the server's wall clock.
type Stat struct {
	Czxid          int64
	Mzxid          int64
	Ctime          int64
	Mtime          int64
	Version        int32
	Cversion       int32
	Aversion       int32
	EphemeralOwner int64
	DataLength     int32
	NumChildren    int32
	Pzxid          int64
}

// Values of a stored ephemeral owner that are not sessions.
const (
	containerOwner = int64(-1 << 63)
	ttlOwnerMask   = int64(-1) << 56
	maxTTL         = int64(1)<<40 - 1
)

// storedStat is the metadata that a node keeps. cversion counts creations of
// children only: it is the counter behind sequential names.
type storedStat struct {
	czxid, mzxid, pzxid         int64
	ctime, mtime                int64
	version, cversion, aversion int32
	owner                       int64
}

func newStoredStat(zxid, now, owner int64) storedStat {
	return storedStat{czxid: zxid, mzxid: zxid, pzxid: zxid, ctime: now, mtime: now, owner: owner}
}

// ownerKind tells what a stored owner means.
type ownerKind int

const (
	ownerNone ownerKind = iota
	ownerSession
	ownerContainer
	ownerTTL
)

func kindOf(owner int64) ownerKind {
	switch {
	case owner == 0:
		return ownerNone
	case owner == containerOwner:
		return ownerContainer
	case owner&ttlOwnerMask == ttlOwnerMask:
		return ownerTTL
	default:
		return ownerSession
	}
}

// dataNode is one node of the tree.
type dataNode struct {
	data     []byte
	acl      []acl
	stat     storedStat
	children map[string]uint64 // name and age, see dataTree.made
}

// stat translates the stored counters. The cversion that clients see counts
// deletions of children too.
func (t *dataTree) stat(n *dataNode) Stat {
	kids := int32(len(n.children))
	owner := n.stat.owner
	switch kindOf(owner) {
	case ownerSession:
	case ownerContainer:
		if !t.showsContainers {
			owner = 0
		}
	case ownerNone, ownerTTL:
		owner = 0
	}
	return Stat{
		Czxid: n.stat.czxid, Mzxid: n.stat.mzxid, Pzxid: n.stat.pzxid,
		Ctime: n.stat.ctime, Mtime: n.stat.mtime,
		Version: n.stat.version, Aversion: n.stat.aversion,
		Cversion:       n.stat.cversion*2 - kids,
		EphemeralOwner: owner,
		DataLength:     int32(len(n.data)),
		NumChildren:    kids,
	}
}
