// Package seqqueue is the queue of ephemeral sequential nodes on which every lock recipe of
// Curator is built (LockInternals, StandardLockInternalsDriver).
//
// A contender joins by creating "_c_<uuid>-<prefix><number>" in the queue's
// directory. The server assigns the number, which is the contender's place. A waiter
// watches the nearest contender ahead that blocks it. It uses a getData watch: on a node that
// is gone, unlike an exists watch, that leaves no watch behind. The end of the only
// contender ahead is the waiter's turn. With more contenders ahead, the nearest may only have
// given up when it goes, so the waiter has to list the directory again. It does that early:
// it also watches the contender before the nearest one, and lists when that goes. A contender
// leaves by deleting its node.
//
// # One acquire, file by file
//
//   - window.go: an acquire waits in the process while its client has many nodes there.
//   - join.go: Join makes the node.
//   - await.go: Await waits for the turn, by the parts that follow.
//   - next.go: next decides what the member does: list, wait, or take its turn.
//   - front.go, place.go, chain.go, chains.go: behind a member of the same session it waits in
//     the process, without a request.
//   - line.go: judge finds in a list which contenders are ahead and block.
//   - ahead.go: behind any other contender it waits by a watch.
//   - lookafter.go: meanwhile it looks after its own node.
//   - itself.go: a warning, if it may wait for a hold of its own caller.
//   - own.go: the delete of the node, which ends the acquire or the hold.
//   - foreign.go: locks of other recipes and libraries in the directory.
//
// # Order
//
// Contenders have Curator's order: by the text after the last occurrence of the prefix,
// compared as text. Numbers have ten digits, so that is also their order as numbers, until
// the directory's counter comes to its end at 2147483647. Then current servers assign the
// same number again and again (DataTree since ZOOKEEPER-3249). Older servers go negative. In
// either case several contenders see themselves first. So near that end a queue refuses to
// grant anything: [ErrExhausted].
//
// # Foreign children
//
// A child whose whole name is such a number is a contender: programs with a lock of their own
// name their nodes so, and Curator waits for them. Any other child without the prefix, or
// without a number after it, is no contender, and is passed over. Curator counts some of these
// children as contenders, depending on how their names compare, and waits for them. Then a
// contender of this package goes first, which does no harm.
//
// # Sessions
//
// A member is of the session that made its node. When that session is over, every call of
// the member fails, and no part of it goes on in the next session. A list may show its node
// for a moment more, until the server deletes the node (CURATOR-604).
package seqqueue
