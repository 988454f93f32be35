// Package zktest is a ZooKeeper server in the test's own process.
//
// It speaks the wire protocol, so any client works with it, and behaves like
// ZooKeeper 3.9 (or an older release, see [WithVersion]) in what clients can see:
// sessions, watches, transactions, sequential names, ACLs, containers, error
// codes and their order. It depends on the standard library only.
//
//	func TestLock(t *testing.T) {
//		srv := zktest.NewServer(t, zktest.WithTick(100*time.Millisecond))
//		conn, _, err := zk.Connect([]string{srv.Addr()}, time.Second)
//		...
//	}
//
// [Server.Addr] is a TCP address. [Server.DialContext] and [Server.Client]
// connect in memory, which is faster and works where sockets do not.
//
// # Faults
//
// A rule waits for a request and spoils it: [Server.LoseReply] applies it and
// drops the connection without the reply, [Server.DropBefore] drops it
// unapplied, [Server.BeforeReply] runs code of yours between its effect and its
// reply, and so on. [Match] says which request: by type, path, client, count
// or chance.
//
//	lost := srv.LoseReply(zktest.Match{Op: zktest.OpCreate, PathPrefix: "/locks/a/"})
//	...
//	if lost.Fired() != 1 { ... }
//
// Other methods disturb the whole server or, on a [ClientLink], one client:
// Partition, Freeze, Refuse, HangHandshake, CutAll, Stop, SlowLog,
// ExpireSession, SetCounter, JumpClock and their opposites. What has been held
// is delivered later, as TCP would.
//
// # Looking inside
//
// [Server.Tree], [Server.Children], [Server.Sessions] and [Server.Watches] show
// what a test has left behind; [Server.Counts], [Server.Log] and
// [Server.OnRequest] what it has asked for.
//
// # Simulation
//
// Inside a bubble of testing/synctest a session of a minute expires in
// microseconds, and a run can be repeated from its seed:
//
//	synctest.Test(t, func(t *testing.T) {
//		srv := zktest.NewServer(t, zktest.WithSeed(seed),
//			zktest.WithLatency(50*time.Microsecond, 2*time.Millisecond))
//		link := srv.Client("a")
//		conn, _, err := zk.Connect(link.Servers(), time.Minute,
//			zktest.Options(link, zk.WithDialer, zk.WithHostProvider, zk.WithLogger)...)
//		...
//	})
//
// Rules for that to hold:
//
//   - Server, clients and their goroutines live in one bubble, and the bubble's
//     own t makes the server.
//   - Set a latency. Two things that happen at the same instant happen in an
//     order nobody controls; with a latency no two frames arrive at one, and
//     each connection draws from a generator of its own.
//   - Give every client a name of its own with [Server.Client], and let one
//     goroutine of a client dial at a time.
//   - Where one cause wakes several goroutines of your own, let each wait a
//     different time first, drawn from the seed too.
//   - Use [ClientLink.Hosts]: Go's resolver cannot be used in two bubbles of
//     one process, and go-zookeeper's own provider resolves and shuffles.
//   - Do not call [Server.Addr] or [Server.Listen]: a socket stops the clock.
//   - Give the simulation a deadline in virtual time. A client that only sends
//     pings never comes to rest, so a hang looks like work.
//
// The order in which the server is free to choose (children,
// ephemerals of an ended session) is drawn from the seed too, so code that
// relies on it fails here.
//
// # The sequence counter
//
// The suffix of a sequential node is the parent's count of creations. The
// documentation says it wraps; servers since 3.6.0 stick at 2147483647
// instead, where the next create finds its name taken or, after a deletion,
// gets it again, unless creates overlap, which then get negative numbers. All
// of that can be seen here, with [Server.SetCounter] and [Server.SlowLog].
//
// # Ensembles
//
// [NewEnsemble] starts several servers over one log: a leader, and followers
// that forward writes to it and answer reads from what they have applied.
//
//	e := zktest.NewEnsemble(t, 3, zktest.WithSyncLimit(5))
//	link := e.Client("a")
//	conn, _, err := zk.Connect(link.Servers(), 4*time.Second,
//		zktest.Options(link, zk.WithDialer, zk.WithHostProvider, zk.WithLogger)...)
//	e.Isolate(1) // zk1 serves stale reads until it notices
//
// It shows what one server cannot: stale reads ([Member.Lag],
// [Member.HoldCommits]), a follower or leader that is cut off and keeps
// answering for a while ([Ensemble.Cut], [Ensemble.CutOneWay],
// [Ensemble.Isolate]), elections ([Ensemble.ChangeLeader]), no quorum, members
// that stand still ([Member.Halt]) or crash and have lost what they had logged
// ([Member.Crash]), sessions that move between members. A
// follower tells the leader of its clients' signs of life twice per tick, so a
// session can be over while its client reads its own ephemeral node.
//
// A session that is attached to another member keeps its older connection
// there, as on the real server: reads of a follower go on, and the first request
// that reaches the leader finds that the session has moved and ends it. Members
// exchange messages without delay unless a cut or a lag holds them up, and
// observers, reconfiguration and snapshots are missing.
//
// # Other servers
//
// [WithVersion] selects the release of ZooKeeper, [WithProfile] another product:
// with [ClickHouseKeeper] a client that comes back gets a new session, and a server
// that is stopped ends the sessions of its clients. [WithQuirks] turns on one such
// thing alone, and [WithoutOps] takes requests away. A test that finds out which
// server it has should run on several:
//
//	for _, opt := range []zktest.Option{
//		zktest.WithVersion(zktest.ZooKeeper39),
//		zktest.WithVersion(zktest.ZooKeeper35), // no addWatch
//		zktest.WithProfile(zktest.ClickHouseKeeper),
//	} {
//		srv := zktest.NewServer(t, opt)
//		...
//	}
//
// # How far to trust it
//
// The package's own tests run against real servers as well, which they ask for
// their release. TestConform tests go to the server that DOCENT_ZK names, and
// `make differential` sends random requests, malformed and overlapping ones too,
// to two real servers and to this one, and compares every frame; sessions are
// left, come back and expire on the way. Answers of servers of 3.8.0, 3.8.6 and
// 3.9.5 recorded that way are compared in every run. What the package cannot tell
// apart from a real server includes the oddities: characters beyond the basic
// plane come back as surrogates, and as ZooKeeper 3.8.0 it never answers a lone
// check request and loses the zxid of a transaction with a null path.
//
// Known differences, all on purpose:
//
//   - A createTTL request without a TTL flag and with ttl -1 is refused; it kills
//     a real server.
//   - The order of children and of an ended session's deletions is drawn, not
//     that of a hash table.
//   - A real server that hears of the end of an older connection after its
//     session has come back forgets the newer one, and does not close it when
//     the session comes back once more. This one closes it.
//   - Every four-letter word is enabled. Answers have the lines of a server on its
//     own, and what follows from the server's state is true; but the counters and
//     summaries of mntr stay at zero, hash is empty, and envi and conf have no Java
//     machine and no disk to tell of.
//   - reconfig is refused with -123, as by a server where it is not enabled; a
//     standalone server with reconfigEnabled=true says -6.
//   - A request of type -10, which is the server's own for a new session, is refused
//     as unknown.
//   - Connections are not limited; see [Server.SetMaxConns].
//   - Ensembles follow the source of ZooKeeper and measured runs; they have not
//     been compared with a real one request by request.
//   - A client over memory has the address 127.0.0.1 for the ip scheme.
//
// # What it is not
//
// There is no disk. Quotas, SASL, TLS and reconfiguration are missing (a rule
// with [Server.Fail] can pretend), and nothing survives Close. A member of an
// ensemble without a quorum turns clients away; the read-only mode of
// readonlymode.enabled, in which it would serve those that ask for it, is missing.
package zktest
