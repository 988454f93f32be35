package zkserver

import (
	"fmt"

	"github.com/docent-go/docent/internal/zoodefs"
)

// Version is a ZooKeeper release whose behaviour a server shows. The constants of
// package zktest with the same names say what is particular to each.
type Version int

// Versions.
const (
	ZooKeeper35 Version = iota + 1
	ZooKeeper380
	ZooKeeper384
	ZooKeeper39
)

// Known reports whether there is such a version.
func (v Version) Known() bool {
	_, known := v.traits()
	return known
}

// String returns the release that the version is compared with, such as "3.9.5".
func (v Version) String() string {
	switch v {
	case ZooKeeper35:
		return "3.5.10"
	case ZooKeeper380:
		return "3.8.0"
	case ZooKeeper384:
		return "3.8.6"
	case ZooKeeper39:
		return "3.9.5"
	default:
		return fmt.Sprintf("version%d", int(v))
	}
}

// traits are the differences between releases that clients can see.
type traits struct {
	built string // the time of the build, for four-letter words
	// existsReads is set if exists takes READ on a node that exists
	// (ZOOKEEPER-2590).
	existsReads bool
	// typedMulti is set if a transaction keeps the types of its creates and checks
	// their flags (ZOOKEEPER-4026).
	typedMulti bool
	// refusesCheck is set if a lone check is refused as unknown. Older servers fail
	// while they write the answer.
	refusesCheck bool
	// readsFirst is set if a write is read before it takes a zxid.
	readsFirst bool
	// manyModes is set if a connection may watch a path in several modes at once
	// (ZOOKEEPER-4466).
	manyModes bool
	// eventZxid is set if a watch event carries the zxid of its change.
	eventZxid bool
	ipv6      bool // the ip scheme knows addresses of IPv6
	restores  bool // mntr counts the restores of the admin server
}

// traits returns the traits of the version, and false if there is no such version.
func (v Version) traits() (traits, bool) {
	switch v {
	case ZooKeeper35:
		return traits{built: "2022-05-29 11:06 UTC"}, true
	case ZooKeeper380:
		return traits{built: "2022-03-07 19:32 UTC"}, true
	case ZooKeeper384:
		return traits{built: "2026-01-28 20:21 UTC", existsReads: true, typedMulti: true, refusesCheck: true}, true
	case ZooKeeper39:
		return traits{
			built: "2026-02-11 20:15 UTC", existsReads: true, typedMulti: true, refusesCheck: true,
			readsFirst: true, manyModes: true, eventZxid: true, ipv6: true, restores: true,
		}, true
	default:
		return traits{}, false
	}
}

// unknownTo reports whether op is newer than the version.
func (v Version) unknownTo(op zoodefs.Op) bool {
	switch op {
	case zoodefs.OpMultiRead, zoodefs.OpGetEphemerals, zoodefs.OpGetAllChildrenNumber, zoodefs.OpSetWatches2, zoodefs.OpAddWatch, zoodefs.OpWhoAmI:
		return v == ZooKeeper35
	default:
		return false
	}
}

// versionText is the version in the answers that clients parse.
func (c *config) versionText() string {
	if c.Keeper {
		return "v26.6.1.1-zktest"
	}
	return c.Version.String() + "-zktest, built on " + c.traits.built
}
