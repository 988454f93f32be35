// Package client is a ZooKeeper client over [github.com/go-zookeeper/zk]. It keeps one
// session alive, replaces it after it is lost, retries what may safely be retried, and
// obeys the context of every call.
//
//	c, err := client.Connect(ctx, "zk1:2181,zk2:2181,zk3:2181/app") // /app must exist
//	if err != nil {
//		return err // names every server and why it was not reached
//	}
//	defer c.Close()
//	path, err := c.Create(ctx, "/jobs/job-", payload, client.Sequential(), client.Protected())
//
// Where to go on:
//
//   - Read: [Client.Get], [Client.Exists], [Client.Children]. Write: [Client.Create],
//     [Client.Set], [Client.Delete]; all or none: [Client.Multi].
//   - Follow changes: [Client.Watch], or package recipes/cache.
//   - Locks, elections and other recipes: package recipes and those below it.
//   - Options of [Connect], and how to do common things: docs/client.md.
//   - Errors: below, and docs/troubleshooting.md. From go-zookeeper:
//     docs/from-go-zookeeper.md.
//
// # Operations
//
// Besides those above there are [Client.GetACL], [Client.SetACL], [Client.CreateStat],
// [Client.CreateOrSet], [Client.ChildrenData] and [Client.DeleteAll]. [Client.Sync] catches up with the leader.
// A [Session] has the same operations, for that session only. Paths are absolute, below
// the chroot of the connect string and the namespace.
//
// # Sessions
//
// One [zk.Conn] is one session. go-zookeeper starts a new session silently on the same
// Conn and lets queued requests run in it. Here a Conn whose session is over never dials
// again, and the client makes a new Conn for the next session. So a request never runs in
// a session that it was not meant for. [Client.Session] returns the current one as a
// value whose context ends with it, and whose operations then fail.
//
// A session is over when the server says so, or when the client closes it. It is also
// over when the negotiated timeout has passed since the newest answered request was
// sent, whatever the server or go-zookeeper says: the server may expire it from then on.
// ClickHouse Keeper restores no session, so there it is over with its connection.
// docs/servers.md says which servers keep which promise.
//
// # The lease
//
// A server that is cut off from its leader goes on answering while the other servers end
// the session, and so does a leader that was deposed. So while anything of package
// recipes is held, the client proves the session by writes that take a quorum. The holds
// end before the instant at which another client could first see the session end.
// [LeasePolicy] says what is assumed; the argument is in docs/internals/lease.md.
//
// # Watches
//
// [Client.GetW], [Client.ExistsW] and [Client.ChildrenW] read a node and leave a
// watch that fires once, a [OneShotWatch]. A caller that gives up waiting calls
// [OneShotWatch.Stop], and the client removes the watch in the background.
//
// [Client.Watch] returns a [Changes]. It follows a node, or all nodes below it, with a
// watch that stays on the server (ZooKeeper 3.6), and loses no change silently. Changes
// may be missed after a reconnection, in a new session, and when the reader was too slow.
// A [ChangeMissed] tells the reader, which then reads everything again; the watch stands by
// then. Where the servers lack such watches, and on ClickHouse Keeper, Watch fails with
// [ErrUnsupported].
//
// All watches of a client on the same path are one watch on the server.
//
// # Errors
//
// A failed operation is an [*OpError]. It matches what the server said: [ErrNoNode],
// [ErrNodeExists], [ErrBadVersion] and so on, or a [Code] where there is no variable.
// The variables have the values of go-zookeeper where it has them, so callers need
// not import it.
//
//	_, err := c.Create(ctx, path, data)
//	switch {
//	case errors.Is(err, client.ErrNodeExists):
//		return nil // another process was first
//	case client.SafeToRetry(err):
//		return later(job) // nothing has happened, and it may work next time
//	case client.UnknownOutcome(err):
//		return lookUp(path) // it may or may not have happened
//	default:
//		return err
//	}
//
// [SafeToRetry] answers whether the call may be repeated, [UnknownOutcome] whether it may
// have been applied. The [Outcome] in the error has the details. Each operation says what
// the client repeats by itself.
//
// # Retries and time
//
// The client repeats operations by the policy of [WithRetry] when nothing of them was
// sent, or when doing them twice is no worse than once. The context of a call bounds
// the call, and by default nothing else does: without a deadline it waits for a
// connection as long as the client is open. A policy that gives up by itself, such as
// [retry.BoundedExponential], bounds the wait for a connection too.
//
// # Concurrency and cancellation
//
// Everything is safe for concurrent use. Every call that can block takes a context
// and returns promptly when the context ends, in a partition too. The error then
// matches the context's error and the last error of ZooKeeper, if there was one. A
// call that gives up leaves no goroutine behind, and after it has returned the client
// reads no bytes that it was given.
package client
