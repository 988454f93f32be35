// Package client is a session-managing ZooKeeper client over
// [github.com/go-zookeeper/zk].
//
// [Connect] waits for a session and returns a [Client]. The client keeps one
// session alive, replaces it after it is lost, retries what may safely be
// retried, and obeys the context of every call:
//
//	c, err := client.Connect(ctx, "zk1:2181,zk2:2181,zk3:2181/app",
//		client.WithSessionTimeout(15*time.Second))
//	if err != nil {
//		return err // names every server and why it was not reached
//	}
//	defer c.Close()
//	path, err := c.Create(ctx, "/jobs/job-", payload, client.Sequential(), client.Protected())
//
// # Operations
//
//   - read: [Client.Get], [Client.Exists], [Client.Children], [Client.GetACL]; with
//     a watch [Client.GetW], [Client.ExistsW], [Client.ChildrenW]
//   - write: [Client.Create], [Client.CreateStat], [Client.CreateOrSet],
//     [Client.Set], [Client.Delete], [Client.DeleteAll], [Client.SetACL]
//   - several at once, all or none: [Client.Multi]
//   - catch up with the leader: [Client.Sync]
//
// A [Session] has the same operations, for that session only. Paths are absolute,
// below the chroot of the connect string and the namespace.
//
// # Sessions
//
// One [zk.Conn] is one session. go-zookeeper starts a new session silently on
// the same Conn and lets queued requests run in it; here a Conn whose session
// is over never dials again, and the client makes a new Conn for the next
// session. A request can therefore never run in a session that it was not
// meant for. [Client.Session] returns the current one as a value whose context
// ends with it; operations called on a [Session] fail once it is over instead
// of moving to its successor.
//
// A session is over when the server says so, when the client closes it, or,
// whatever the server or go-zookeeper says, when the negotiated timeout has
// passed since the send time of the newest request that was answered. The
// server may expire it from then on, so nothing that hangs on it can be
// trusted any more. ClickHouse Keeper restores no session: there it is over when
// its connection is lost. docs/servers.md says which servers keep which promise.
//
// # The lease
//
// That is enough to notice silence, and not enough to hold a lock: a server
// that is cut off from its leader, or is a leader that was deposed, goes on
// answering while the others end the session. While anything of package
// recipes is held the session is therefore proved by writes that take a
// quorum, and the holds end before the instant at which another client could
// first see the session end. [LeasePolicy] says what is assumed; the argument
// is in docs/losing-a-lock.md.
//
// # Watches
//
// [Client.GetW], [Client.ExistsW] and [Client.ChildrenW] read and leave a watch
// that fires once. They suit a wait for one thing. A caller that gives up waiting
// calls [OneShotWatch.Stop]: the client then removes the watch from the server in the
// background.
//
// [Client.Watch] follows a node, or all nodes below it, with a watch that stays
// on the server (ZooKeeper 3.6). It loses no change silently: after a reconnection,
// in a new session, and when the reader was too slow, it tells the reader by a
// [ChangeMissed] that changes may have been missed. The watch stands again by then,
// and the reader reads everything anew.
// Where the servers lack such watches, and on ClickHouse Keeper, it fails with an
// error that matches [ErrUnsupported].
//
// The watches of a client on the same path are one on the server, however many
// wait for it.
//
// # Errors
//
// A failed operation is an [*OpError], which matches what the server said:
// [ErrNoNode], [ErrNodeExists], [ErrBadVersion] and so on, a [Code] where there is
// no variable. They are the values of go-zookeeper where it has one; nobody needs to
// import it for them.
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
// [SafeToRetry] answers whether the call may be repeated, [UnknownOutcome] whether
// it may have been applied; the [Outcome] in the error has the details. What the
// client repeats by itself is said at each operation.
//
// # Retries and time
//
// Operations are repeated by the policy of [WithRetry] when nothing of them was
// sent, or when doing them twice is no worse than once. What bounds a call is its
// context. By default nothing else does: without a deadline a call waits for a
// connection as long as the client is open. A policy that gives up by itself, such as
// [retry.BoundedExponential], bounds the wait for a connection too.
//
// # Concurrency and cancellation
//
// Everything is safe for concurrent use. Every call that can block takes a
// context and returns promptly when it ends, in a partition too; the returned
// error then matches the context's error and, if there was one, the last
// error of ZooKeeper. A call that gives up leaves no goroutine behind, and the
// bytes that it was given are not read once it has returned.
package client
