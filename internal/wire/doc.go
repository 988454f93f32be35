// Package wire stands between go-zookeeper and the network. A [Link] is
// go-zookeeper's dialer, and reads every frame in both directions. So one
// zk.Conn is one ZooKeeper session, and never silently becomes another.
//
// The client's own requests do not pass through go-zookeeper. [Link.Do] encodes
// them in the caller and writes them to the same connection. The goroutine in
// which go-zookeeper reads hands each answer to its [Exchange]. go-zookeeper
// sees neither.
//
// The Link also adds:
//
//   - a gate: the answer to a handshake is judged before go-zookeeper sees it,
//     and after the session is over the Link never dials again;
//   - a limit on dial, TLS and handshake together, in place of deadlines that
//     go-zookeeper sets too long or not at all;
//   - evidence, on which a session can rest, and proof, on which a lock can;
//   - authentication, put into the stream before anything else;
//   - refusal of frames that would break the peer or this process.
//
// # Words
//
//   - evidence: the time at which the newest answered request was sent. Some server
//     has heard of the session then or later;
//   - sign of life: a request that a server has answered. A server that is not the
//     leader may keep it to itself;
//   - relay: the longest time for which it does;
//   - proof: since when, at least, the leader's timer of the session has been running.
//     Only a committed write is proof, unless one answer is enough (TrustAnswers).
//
// Package client makes a lease of these; its room lease has the formula.
//
// # Failure
//
// A failed connection leaves the session alive: go-zookeeper dials again
// through the same Link. A Link that is over stays over, whatever ended it, and
// [Link.Cause] says why.
//
// # Concurrency
//
// The methods of Link are safe for concurrent use. A connection returned by
// [Link.Dial] takes Read from one goroutine at a time; its other methods are
// safe for concurrent use.
package wire
