package zktest

import (
	"time"

	"github.com/docent-go/docent/internal/zkserver"
	"github.com/docent-go/docent/internal/zoodefs"
)

// Quirk is a difference between Apache ZooKeeper and another server that speaks its
// protocol. [WithQuirks] turns single quirks on, [WithProfile] the quirks of a
// product.
type Quirk uint16

const (
	// QuirkNoReattach makes the server ignore the session, the password and the zxid
	// of a client that comes back. The client gets a new session, and no error. The
	// old session lives on until it expires, with its ephemeral nodes, and with its
	// connection if it has one. Passwords are sixteen zero bytes, and the answer to a
	// handshake ends before the readOnly byte.
	QuirkNoReattach Quirk = 1 << iota
	// QuirkCloseOnStop makes [Server.Stop] and [Member.Stop] end the sessions that
	// are connected there, and delete their ephemeral nodes at once. A crash ends no
	// session.
	QuirkCloseOnStop
	// QuirkCloseOnUnknown makes the server close the connection of a client that
	// sends a request of an unknown type, also within a transaction. Without it the
	// server answers with [CodeUnimplemented] first.
	QuirkCloseOnUnknown
	// QuirkAnswerLeaderless makes a member of an [Ensemble] without a leader answer a
	// handshake before it closes the connection. The answer has protocol version 42,
	// session id -1 and a password of zero bytes.
	QuirkAnswerLeaderless
	// QuirkEventOfWatch makes the event of a recursive watch name the path of the
	// watch, and not the path of the node that has changed.
	QuirkEventOfWatch
	// QuirkContainerOwner makes the Stat of a container show the ephemeral owner
	// -9223372036854775808, not zero.
	QuirkContainerOwner
	// QuirkKeeperNodes replaces /zookeeper and the nodes below it by the nodes
	// /keeper/api_version and /keeper/feature_flags, which cannot be changed.
	QuirkKeeperNodes
)

// WithQuirks turns single quirks on, in addition to the quirks of a profile.
func WithQuirks(quirks ...Quirk) Option {
	return optionFunc(func(c *config) {
		for _, q := range quirks {
			c.Quirks |= zkserver.Quirk(q)
		}
	})
}

// WithoutOps makes the server not know requests of these types, like an older
// server, or a server on which they are disabled. The server answers them with
// [CodeUnimplemented] and closes the connection. A transaction with such a part is
// malformed. Without [OpCreateContainer] or [OpCreateTTL] the flags of such nodes
// are refused with [CodeBadArguments] in other creates. A server without
// [OpAddWatch] has no [OpSetWatches2] either.
func WithoutOps(ops ...Op) Option {
	return optionFunc(func(c *config) {
		for _, op := range ops {
			c.Lacking[zoodefs.Op(op)] = true
		}
	})
}

// Profile selects a product that speaks ZooKeeper's protocol.
type Profile int

const (
	// ClickHouseKeeper is ClickHouse Keeper as of the middle of 2026. It has all
	// quirks. It does not know deleteContainer, SASL, getEphemerals,
	// getAllChildrenNumber and whoAmI, and it knows createTTL only with
	// [WithExtendedTypes]. Session timeouts are negotiated between 10 and 100 seconds
	// unless [WithSessionTimeouts] says otherwise. Earlier versions of Keeper lack
	// more requests, which [WithoutOps] can take away: OpCreateContainer before July
	// 2026; OpCreate2, OpCheckWatches, OpRemoveWatches, OpSetWatches, OpSetWatches2
	// and OpAddWatch before 2026.
	//
	// The profile follows the product's source and has not been compared with a
	// running server. If no quirk names a difference, the server behaves as its
	// [Version]. So three properties of Keeper are missing. Its zxid is a plain
	// counter, which pings advance too. Its session ids are small. The Cversion of a
	// parent counts differently. The Pzxid of a parent is as in Keeper: it stays
	// when a child is deleted.
	ClickHouseKeeper Profile = iota + 1
)

// The range of session timeouts of Keeper.
const (
	keeperMinTimeout = 10 * time.Second
	keeperMaxTimeout = 100 * time.Second
)

// WithProfile makes the server behave like a product other than Apache ZooKeeper.
// Options for single quirks, requests and timeouts add to it.
func WithProfile(p Profile) Option { return optionFunc(func(c *config) { c.profile = p }) }

// applyProfile turns a profile into the settings that single options would make.
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
