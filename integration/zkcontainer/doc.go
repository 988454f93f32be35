// Package zkcontainer starts real ZooKeeper servers in containers for tests, one or
// several, and breaks them on request. It is a module for testcontainers-go, and works
// beside any client.
//
//	func TestOrders(t *testing.T) {
//		c := zkcontainer.Start(t, "zookeeper:3.9")
//		conn, _, err := zk.Connect([]string{c.Addr()}, 10*time.Second)
//		...
//	}
//
// [Start] and [StartEnsemble] are for tests: they end the test when a server cannot start,
// and remove everything at its end. [Run] and [RunEnsemble] follow the conventions of
// testcontainers, for TestMain, examples and programs.
//
// A start returns when the servers serve: one leads, the others follow, and each has
// answered a request of a session. That an open port or a line of the log is there does
// not mean that.
//
// Most tests are better off with the package zktest of Docent, a server in the test's own
// process: it starts in microseconds and needs no Docker. A container is worth it for what a
// test server does not have: a disk, TLS, another release's very behaviour.
//
// # Images
//
// The image is an argument. The official image and one of Debian's packages work: this
// package copies its own zoo.cfg and start script into the container, so the variables of
// the official image (ZOO_...) have no effect; use [WithProperty] and [WithSystemProperty].
// Images without bash, or without both zkServer.sh and Debian's jars, do not work. ClickHouse
// Keeper is such a one; the profile ClickHouseKeeper of zktest behaves like it.
//
// The servers are set up for tests: a tick of 500 ms, no limit of connections, no fsync, a
// heap of 192 MiB, every four-letter word allowed, no admin server.
//
// # Addresses
//
// A server keeps its address over stop, kill and start, and while it is cut off: its ports
// on the host are drawn once, between 20000 and 31999. Clients find the host as
// testcontainers does; see [WithHost]. Members of an ensemble know each other by addresses
// of a network of their own, which only members are in. So a client that takes the servers'
// addresses from /zookeeper/config, as Docent's WithEnsembleTracker and Curator's
// EnsembleTracker do, cannot reach them: switch that off.
//
// In a network of the caller's, given with network.WithNetwork of testcontainers, member 2
// has the name zk2, so that other containers reach it as zk2:2181. A proxy such as
// toxiproxy stands there.
//
// # Faults
//
// [Container.Kill], [Container.Stop], [Container.Start], [Container.Restart]: a server
// ends and comes back with its data. [Container.Pause]: it stands still.
// [Container.Partition]: it is cut off from the other members, and clients still reach it.
// A [Link] cuts and delays what passes between one client and the servers.
// [Ensemble.ExpireSession] and [Link.ExpireSession] end sessions. None of these needs
// privileges or another image.
//
// # What is left
//
// Everything carries the label [Label]. It is removed by Terminate, and by Start and
// StartEnsemble at the end of the test, after a failure and a panic of the test's
// goroutine too, and after an interrupt. What ends the process otherwise (SIGKILL, a panic of
// another goroutine, the time limit of go test) leaves the rest to the reaper of
// testcontainers. Where that is switched off, remove it by hand:
//
//	docker rm -fv $(docker ps -aq --filter label=docent.zkcontainer)
//	docker network prune --filter label=docent.zkcontainer
package zkcontainer
