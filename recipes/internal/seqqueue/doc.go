// Package seqqueue is the queue of ephemeral-sequential children that every
// lock recipe of Curator is built on (LockInternals,
// StandardLockInternalsDriver).
//
// A contender joins by creating "_c_<uuid>-<prefix><number>" in the queue's
// directory. The server assigns the number, which is the contender's place. A waiter
// watches the nearest contender ahead that blocks it. It uses a getData watch: unlike an
// exists watch, that leaves nothing behind on a node that is gone. The end of the only
// contender ahead is the waiter's turn. With more contenders ahead, the one that goes may
// have given up, so the waiter has to list the directory again. It does that early, when
// the last but one goes, which it watches for that. A contender leaves by deleting its node.
//
// # Order
//
// Contenders are ordered as Curator orders them, by the text after the last
// occurrence of the prefix, compared as text. Numbers have ten digits, so that
// is their order as numbers too, until the counter of the directory comes to
// its end at 2147483647. Current servers then assign the same number again
// and again (DataTree since ZOOKEEPER-3249). Older servers go negative. In
// either case several contenders see themselves first. A queue near that end
// therefore refuses to grant anything: [ErrExhausted].
//
// # Foreign children
//
// Children whose text after the prefix is not a number of that form, or that
// lack the prefix, are not contenders and are passed over. Curator counts
// some of them as contenders, depending on how their names compare, and waits
// for them; a contender of this package then goes first, which does no harm.
//
// # Sessions
//
// A member is bound to the session that made its node. When that session is
// over every call fails, and nothing of the member is carried over into the
// next session. Its node may still be listed for a moment, but the server is about to
// delete it (CURATOR-604).
package seqqueue
