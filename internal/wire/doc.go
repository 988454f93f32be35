// Package wire stands between go-zookeeper and the network. A [Link] is handed
// to go-zookeeper as its dialer and reads every frame in both directions, so
// that one zk.Conn is one ZooKeeper session and never silently becomes another.
//
// The client's own requests do not pass through go-zookeeper. [Link.Do] encodes
// them in the caller, writes them to the same connection, and hands each answer
// to its [Exchange] on the goroutine in which go-zookeeper reads. go-zookeeper
// sees neither.
//
// What the Link adds beside that:
//
//   - a gate: the answer to a handshake is judged before go-zookeeper sees it,
//     and after the session is over the Link never dials again;
//   - a limit on dial, TLS and handshake together, in place of deadlines that
//     go-zookeeper sets too long or not at all;
//   - evidence: the time at which the newest answered request was sent, on
//     which a local lease can rest, and proof: since when at least the leader
//     has been counting down the session's timeout, on which a lock can;
//   - authentication, put into the stream before anything else;
//   - refusal of frames that would break the peer or this process.
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
