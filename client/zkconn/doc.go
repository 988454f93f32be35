// Package zkconn hands a client to code that was written for go-zookeeper.
//
// [New] returns a [Conn], which has every method of [zk.Conn] with the same signature. So it
// fits where code takes an interface of that, and lives on through lost sessions:
//
//	conn, events := zkconn.New(ctx, c)
//	defer conn.Close() // c stays open
//	registry := theirs.New(conn)
//
// Code that takes a concrete *zk.Conn cannot have it: Go knows no other value of that type.
// [PerSession] runs such code once for each session, with the zk.Conn of that session.
//
// # What is as in go-zookeeper
//
// Errors are go-zookeeper's own values, so that == works. The channel of a watch has one event
// and is closed. A watch outlasts a reconnection: the event of a change that was missed comes
// after it. At the end of a session the event is zk.EventNotWatching with
// zk.ErrSessionExpired, and it comes when the next session stands. So a loop that reads again
// at once finds a server. Ephemeral nodes end with their session.
//
// # What differs
//
//   - Paths are those of the client, in its namespace and below its chroot.
//   - The client retries what may be repeated. Without a server a call waits as long as the
//     policy of the client allows, by default for ever. Pass client.Retrying(policy) for calls
//     that fail soon, with zk.ErrNoServer.
//   - Create with zk.FlagContainer makes a container. go-zookeeper makes a persistent node.
//   - Protected nodes are named as the client names them: "_c_", an id with hyphens, a hyphen.
//   - The channel of New has session events only, and none of watches.
//   - A watch whose channel is dropped costs a goroutine until its event, or [Conn.Close].
//   - SetLogger does nothing: the client logs.
//   - The stat of IncrementalReconfig and Reconfig has the version of the configuration as Mzxid.
//     An empty change is refused with zk.ErrBadArguments.
package zkconn
