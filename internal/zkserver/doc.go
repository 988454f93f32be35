// Package zkserver is the engine of package zktest: a ZooKeeper server, or an
// ensemble of them, in memory and in this process.
//
// Package zktest is the only user. It owns what a test sees: options and their
// checks, rules for faults, errors, and the types that describe requests and nodes.
// The engine owns what happens. Where the two meet:
//
//   - A [Config] makes a [Server] or an [Ensemble]; the methods of these, of
//     [Member] and of [ClientLink] disturb and inspect it.
//   - A [Judge] decides with a [Verdict] about every request. Rules are its only user.
//   - Observers get a [Request] or a [Commit].
//   - Operations return a [zoodefs.Code] and no error.
//
// Texts that reach a user, such as errors, name zktest.
//
// # The way of a request
//
// A [ClientLink] makes connections of two halves (room pipe), each with a latency of
// its own. A conn reads frames, asks the judge, and submits requests
// (conn.go, handshake.go). The records are read and written by room jute. Who the
// client is follows from its proofs (login.go, room sasl). What it may do follows from
// the lists of the nodes (room access). The preparation turns a write into a
// transaction and checks it against the tree as it will be (prep.go). From the log
// (final.go) or through a quorum (replicate.go) it comes to the tree (datatree.go),
// which tells the watches (room watch). The answer leaves in the order of the requests
// (output.go). The texts of quotas are in room quota, and those of the members of an
// ensemble in room roster. What the four-letter words tell of all that is counted in room stats.
//
// # One mutex
//
// One mutex guards a server, and all members of an ensemble share it. What it guards is
// in state.go and member.go. No goroutine holds it while it does I/O, runs a hook or waits. A function whose comment does
// not say otherwise, and which does not lock it, is called with the mutex held.
//
// # One order
//
// The same seed gives the same run. That needs three things. No two events that matter
// happen at one instant. Every stream of random numbers has one user. Nothing that is
// drawn or numbered follows the order of a Go map.
package zkserver
