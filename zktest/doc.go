// Package zktest is a ZooKeeper server in the test's own process, with faults on request.
// It speaks the wire protocol, so that any client works with it.
//
//	func TestLoss(t *testing.T) {
//		srv := zktest.NewServer(t)
//		c, err := client.Connect(t.Context(), "zk:2181", // the name is never looked up
//			client.WithDialer(srv.Client("a").DialContext))
//		...
//		srv.Client("a").ExpireSession() // what does the program do now?
//	}
//
// Where to go on:
//
//   - A first test, and what to assert: docs/testing.md. Every fault:
//     docs/testing-faults.md.
//   - Break something: [ClientLink], [Server.LoseReply], [Server.NewGate]; see Faults.
//   - Look inside: [Server.Tree], [Server.Sessions], [Server.OnCommit].
//   - Minutes in microseconds, by testing/synctest: see Simulation.
//   - Several servers: [NewEnsemble]. Other releases and products: [WithVersion],
//     [WithProfile].
//   - Other programs connect by TCP to [Server.Addr], go-zookeeper by [Options].
//
// The server behaves like ZooKeeper 3.9 in everything that clients can see: sessions,
// watches, transactions, sequential names, ACLs, containers, error codes and their order.
// It depends on the standard library only. Connections in memory, by [Server.Client] and
// [Server.DialContext], are faster and work in places without sockets.
//
// # Faults
//
// A rule waits for a request and disturbs it. [Server.LoseReply] applies the request
// and drops the connection without the reply, [Server.DropBefore] drops it before.
// [Server.BeforeReply] runs code of yours between the effect and the reply. There are
// more. [Match] says which request: by type, path, client, count or chance.
//
//	lost := srv.LoseReply(zktest.Match{Op: zktest.OpCreate, PathPrefix: "/locks/a/"})
//	...
//	if lost.Fired() != 1 { ... }
//
// Other methods disturb the whole server or, on a [ClientLink], one client:
// Partition, Freeze, Refuse, HangHandshake, CutAll, Stop, SlowLog, ExpireSession,
// SetCounter, JumpClock and their opposites. What has been held is delivered later,
// as TCP would deliver it. Several of them make a client hear nothing:
//
//	                 a dial       open connections      models
//	Partition        waits        stand still           a network that drops packets
//	Freeze           no answer    stand still           a server that stands still
//	HangHandshake    no answer    go on                 a server that is starting
//	Refuse           is refused   go on                 a port without a process
//	Stop             is refused   are closed            a process that has ended
//	StallReply       succeeds     one stands still      an answer that is stuck
//	Pause (a link)   no answer    stand still, and so   a client that stands still
//	                              do their deadlines
//
// A [Gate] parks requests, replies and events until the test lets them go on, so that it
// decides in which order clients meet.
//
// # Logins
//
// With [WithSASLUser] clients log in by SASL, with the mechanism DIGEST-MD5. The server
// answers as the Java classes do that ZooKeeper takes for it. [WithRequiredAuth] makes it
// refuse everybody else. [Server.WrongProof] and [Server.NullToken] are what a client must
// not take for a login. Other rules cut, stall or refuse it:
//
//	half := zktest.Match{Op: zktest.OpSASL, Where: func(r zktest.Request) bool { return r.Step == 2 }}
//	srv.DropBefore(half)
//
// # Looking inside
//
// [Server.Tree], [Server.Children], [Server.Sessions] and [Server.Watches] show what
// a test has left behind. [Server.Counts], [Server.Log] and [Server.OnRequest] show
// what it has asked for.
//
// # Simulation
//
// Inside a bubble of testing/synctest a session of a minute expires in microseconds,
// and a run can be repeated from its seed:
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
// To get the same run from the same seed:
//
//   - Keep server, clients and their goroutines in one bubble, and make the server
//     with the bubble's own t.
//   - Set a latency. Without it the scheduler orders what happens at one instant. With it
//     no two frames arrive at one instant, and each connection draws from its own generator.
//   - Give every client a name of its own with [Server.Client], and let one goroutine
//     of a client dial at a time.
//   - If one cause wakes several goroutines of your own, let each of them wait a
//     different time first, drawn from the seed too.
//   - Use [ClientLink.Hosts]. Go's resolver cannot be used in two bubbles of one
//     process, and go-zookeeper's own provider resolves and shuffles.
//   - Do not call [Server.Addr] or [Server.Listen]: a socket stops the clock.
//   - Give the simulation a deadline in virtual time. A client that only sends pings
//     never comes to rest, so a hang looks like work.
//
// If the server may choose an order, of children or of the ephemeral nodes of an ended
// session, it draws one from the seed. So code that relies on an order fails here.
//
// # The sequence counter
//
// The suffix of a sequential node is the parent's count of creations. The documentation of
// ZooKeeper says that it wraps. Servers since 3.6.0 stick at 2147483647 instead: the next
// create finds its name taken or, after a deletion, gets the name again. Creates that
// overlap get negative numbers there. [Server.SetCounter] and [Server.SlowLog] show it.
//
// # Ensembles
//
// [NewEnsemble] starts several servers over one log: a leader, and followers that
// forward writes to it and answer reads from what they have applied.
//
//	e := zktest.NewEnsemble(t, 3, zktest.WithSyncLimit(5))
//	link := e.Client("a")
//	conn, _, err := zk.Connect(link.Servers(), 4*time.Second,
//		zktest.Options(link, zk.WithDialer, zk.WithHostProvider, zk.WithLogger)...)
//	e.Isolate(1) // zk1 serves stale reads until it notices
//
// An ensemble shows what one server cannot:
//
//   - stale reads ([Member.Lag], [Member.HoldCommits]);
//   - a follower or leader that is cut off and keeps answering for a while
//     ([Ensemble.Cut], [Ensemble.CutOneWay], [Ensemble.Isolate]);
//   - elections ([Ensemble.ChangeLeader]), and no quorum;
//   - members that stand still ([Member.Halt]), or that crash and lose what they had
//     logged ([Member.Crash]);
//   - sessions that move between members.
//
// A follower tells the leader of its clients' signs of life twice per tick. So a
// session can be over while its client still reads its own ephemeral node.
//
// If a session moves to another member, its older connection stays open, as on the real
// server, and reads of a follower go on there. Its first request that reaches the leader
// ends the connection. Members exchange messages without delay unless a cut or a lag holds
// them up. With [WithReadOnlyMode] a member without a leader serves reads. Observers and
// snapshots are missing. An ensemble keeps every transaction for [Member.Crash], some 300
// bytes and the data of each.
//
// # Other servers
//
// [WithVersion] selects the release of ZooKeeper, [WithProfile] another product. With
// [ClickHouseKeeper] a client that comes back gets a new session, and a server that
// is stopped ends the sessions of its clients. [WithQuirks] turns on one such
// difference alone, and [WithoutOps] takes requests away. If your code finds out
// which server it has, test it on several:
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
// Tests named TestConform run against the real server that DOCENT_ZK names, too. `make
// differential` sends random requests, malformed and overlapping ones among them, to two
// real servers and to this one, while sessions come, go and expire. It compares every
// frame. Recorded answers of 3.8.0, 3.8.6 and 3.9.5 are compared in every run. Oddities are
// shared: characters beyond the basic plane come back as surrogates. As ZooKeeper 3.8.0
// the server never answers a lone check request, and loses the zxid of a transaction with
// a null path.
//
// Known differences, all on purpose:
//
//   - A createTTL request without a TTL flag and with ttl -1 is refused. It kills a
//     real server.
//   - The order of children, and of the deletions of an ended session, is drawn. On a
//     real server it is that of a hash table.
//   - A real server may hear of the end of an older connection after its session has
//     come back. Then it forgets the newer connection, and leaves that open when the
//     session comes back once more. This server closes it.
//   - Every four-letter word is enabled. Answers have the lines of a server on its
//     own, and values that follow from the server's state are true. But the counters
//     and summaries of mntr stay at zero, and hash is empty. envi and conf have no
//     values for a Java machine and a disk.
//   - A reconfig changes the configuration and no member. A real server that leaves an
//     ensemble goes on alone, and a leader that leaves makes way for another.
//   - A request of type -10, which servers use among themselves for a new session, is
//     refused as unknown.
//   - Connections are not limited; see [Server.SetMaxConns].
//   - Ensembles follow the source of ZooKeeper and measured runs. They have not been
//     compared with a real ensemble request by request.
//   - A client in memory has the address 127.0.0.1 for the ip scheme.
//
// # What is missing
//
// There is no disk, and nothing survives Close. Kerberos is missing, and so are local
// sessions of a server that has its quorum. TLS is missing too; the example of the name
// tls has a listener that puts it in front of a server.
package zktest
