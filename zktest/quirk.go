package zktest

import (
	"time"

	"github.com/docent-go/docent/internal/zkserver"
)

// Quirk is something that a server which speaks ZooKeeper's protocol does
// otherwise than Apache ZooKeeper. [WithQuirks] turns single ones on,
// [WithProfile] those of a product.
type Quirk uint16

const (
	// QuirkNoReattach makes the server ignore the session, the password and the
	// zxid that a client comes back with: the client is given a new session, and
	// no error. The old session lives on until it expires, with its ephemerals,
	// and its connection too if it has one. Passwords are sixteen zero bytes, and
	// the answer to a handshake ends before the readOnly byte.
	QuirkNoReattach Quirk = 1 << iota
	// QuirkCloseOnStop makes [Server.Stop] and [Member.Stop] end the sessions
	// that are connected there: their ephemerals are deleted at once. A crash
	// does not.
	QuirkCloseOnStop
	// QuirkCloseOnUnknown makes the server close the connection of a client
	// that sends a request of an unknown type, also within a transaction,
	// instead of answering with [CodeUnimplemented] first.
	QuirkCloseOnUnknown
	// QuirkAnswerLeaderless makes a member of an [Ensemble] that has no leader
	// answer a handshake before it closes the connection: with protocol version
	// 42, session id -1 and a password of zero bytes.
	QuirkAnswerLeaderless
	// QuirkEventOfWatch makes the event of a recursive watch name the path of
	// the watch, not that of the node that has changed.
	QuirkEventOfWatch
	// QuirkContainerOwner makes the Stat of a container show the ephemeral owner
	// -9223372036854775808, not zero.
	QuirkContainerOwner
	// QuirkKeeperNodes puts the nodes /keeper/api_version and
	// /keeper/feature_flags, which cannot be changed, in the place of /zookeeper
	// and what is below it.
	QuirkKeeperNodes
)

// WithQuirks turns single quirks on, in addition to those of a profile.
func WithQuirks(quirks ...Quirk) Option {
	return optionFunc(func(c *config) {
		for _, q := range quirks {
			c.Quirks |= zkserver.Quirk(q)
		}
	})
}

// WithoutOps makes the server not know requests of these types, as an older
// server or one on which they are disabled: they are answered with
// [CodeUnimplemented], and the connection is closed. As parts of a transaction they
// make it malformed. Without [OpCreateContainer] or [OpCreateTTL] the flags
// of such nodes are refused with [CodeBadArguments] in other creates. A server
// without [OpAddWatch] has no [OpSetWatches2] either.
func WithoutOps(ops ...Op) Option {
	return optionFunc(func(c *config) {
		for _, op := range ops {
			c.Lacking[zkserver.Op(op)] = true
		}
	})
}

// Profile selects a product that speaks ZooKeeper's protocol.
type Profile int

const (
	// ClickHouseKeeper is ClickHouse Keeper as of the middle of 2026. It has all
	// quirks. It does not know deleteContainer, SASL, getEphemerals,
	// getAllChildrenNumber and whoAmI, nor createTTL unless [WithExtendedTypes] is
	// given. Session timeouts are negotiated between 10 and 100 seconds unless
	// [WithSessionTimeouts] says otherwise. Earlier ones lack more, which
	// [WithoutOps] can take away: containers before July 2026 (OpCreateContainer);
	// OpCreate2, OpCheckWatches, OpRemoveWatches, OpSetWatches, OpSetWatches2 and
	// OpAddWatch before 2026.
	//
	// It follows the product's source and has not been compared with a running
	// server. In all that no quirk names the server behaves as its [Version].
	// So it does not show that Keeper's zxid is a plain counter, which pings
	// advance too, that session ids are small, and how the Stat of a parent
	// counts there.
	ClickHouseKeeper Profile = iota + 1
)

// The range of session timeouts of Keeper.
const (
	keeperMinTimeout = 10 * time.Second
	keeperMaxTimeout = 100 * time.Second
)

// WithProfile makes the server behave like another product than Apache
// ZooKeeper. Options for single quirks, requests and timeouts add to it.
func WithProfile(p Profile) Option { return optionFunc(func(c *config) { c.profile = p }) }

// applyProfile turns a profile into what single options would have set.
func (c *config) applyProfile() {
	if c.profile != ClickHouseKeeper {
		return
	}
	c.Keeper = true
	c.Quirks |= zkserver.AllQuirks
	WithoutOps(OpDeleteContainer, OpSASL, OpGetEphemerals, OpGetAllChildrenNumber, OpWhoAmI).apply(c)
	if !c.ExtendedTypes {
		WithoutOps(OpCreateTTL).apply(c)
	}
	if c.MinTimeout == 0 {
		c.MinTimeout = keeperMinTimeout
	}
	if c.MaxTimeout == 0 {
		c.MaxTimeout = max(keeperMaxTimeout, c.MinTimeout)
	}
}
