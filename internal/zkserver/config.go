package zkserver

import (
	"fmt"
	"slices"
	"time"

	"github.com/docent-go/docent/internal/zkserver/access"
	"github.com/docent-go/docent/internal/zkserver/roster"
	"github.com/docent-go/docent/internal/zkserver/sasl"
	"github.com/docent-go/docent/internal/zoodefs"
)

// Config is what a server or an ensemble is made with. Package zktest fills it
// in and checks it; a zero is a default only where a field says so.
type Config struct {
	Seed    uint64  // of all random draws
	Version Version // the release to behave like
	Quirks  Quirk   // what is different from Apache ZooKeeper
	// Keeper makes the four-letter words name ClickHouse Keeper as the product.
	Keeper bool
	// Lacking has the requests that the server does not know.
	Lacking map[zoodefs.Op]bool

	Tick                   time.Duration // ZooKeeper's tickTime, a millisecond at least
	MinTimeout, MaxTimeout time.Duration // the range of session timeouts
	MinLatency, MaxLatency time.Duration // of a frame; zero means none
	SweepEvery             time.Duration // between two looks for empty containers
	CommitDelay            time.Duration // of a write in the log; zero means none

	Zxid          int64 // of the transaction before the first; an ensemble begins with the epoch behind it
	MaxFrame      int   // jute.maxbuffer
	LogSize       int   // how many requests the log keeps; zero means none
	ExtendedTypes bool  // whether there are TTL nodes
	EnforceQuota  bool  // whether hard limits are more than numbers
	ReadOnlyMode  bool  // whether a member without a leader serves reads; for an ensemble
	// GlobalSessions is set if a server without a quorum has no local sessions to give.
	GlobalSessions bool
	Reconfig       bool   // whether reconfig is enabled
	SuperDigest    string // "user:base64" of the super user; empty means none
	SASL           sasl.Config
	// RequiredAuth has the schemes of which a client must prove an identity before it
	// sends anything but its proof. If there are none, nothing is required.
	RequiredAuth []string
	Clock        func() time.Time

	SyncLimit    int           // in ticks; for an ensemble
	ElectionTime time.Duration // for an ensemble
}

// config is a Config with what follows from it.
type config struct {
	Config

	traits traits        // of the version
	roster roster.Roster // of an ensemble
}

func newConfig(c Config) config {
	t, known := c.Version.traits()
	if !known {
		panic("zkserver: " + c.Version.String() + " is not known")
	}
	return config{Config: c, traits: t}
}

// has reports whether a quirk is on.
func (c *config) has(q Quirk) bool { return c.Quirks&q != 0 }

// requires reports whether an identity of the scheme lets a client in.
func (c *config) requires(scheme string) bool { return slices.Contains(c.RequiredAuth, scheme) }

// lacks reports whether op is a request that other servers know and this one
// does not.
func (c *config) lacks(op zoodefs.Op) bool { return c.Lacking[op] || c.Version.unknownTo(op) }

// schemes returns the schemes that the server knows besides those of every server.
func (c *config) schemes() access.Schemes {
	return access.Schemes{IPv6: c.traits.ipv6, SASL: c.SASL.Scheme}
}

// lifetime is the root of the contexts that hooks get. It never ends by itself;
// [Server.Close] ends the contexts that are derived from it.
type lifetime struct{}

// Deadline reports that there is none.
func (lifetime) Deadline() (time.Time, bool) { return time.Time{}, false }

// Done returns nil: a lifetime does not end.
func (lifetime) Done() <-chan struct{} { return nil }

// Err returns nil: a lifetime does not end.
func (lifetime) Err() error { return nil }

// Value returns nil: a lifetime carries nothing.
func (lifetime) Value(any) any { return nil }

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
	ownLogins bool // logins share nothing (ZOOKEEPER-4839)
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
			readsFirst: true, manyModes: true, eventZxid: true, ipv6: true, restores: true, ownLogins: true,
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

// Quirk is a set of ways in which a server differs from Apache ZooKeeper. The
// constants of package zktest with the same names say what each does.
type Quirk uint16

// Quirks.
const (
	QuirkNoReattach Quirk = 1 << iota
	QuirkCloseOnStop
	QuirkCloseOnUnknown
	QuirkAnswerLeaderless
	QuirkEventOfWatch
	QuirkContainerOwner
	QuirkKeeperNodes
)

// AllQuirks is the set of all quirks.
const AllQuirks = QuirkKeeperNodes<<1 - 1

// leaderlessProtocol is the version in the answer to a handshake that Keeper
// turns away.
const leaderlessProtocol = 42
