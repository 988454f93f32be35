// Package harness starts real ZooKeeper servers in containers for one test and
// breaks them on request: kill, pause, partition, silence towards clients.
//
// It is for the tests of this module only, a thin layer over the package zkcontainer, which
// users have. What it adds needs root: silence between a node and its clients, one way if
// wanted. [StartServer] gives one standalone
// server, [StartEnsemble] a replicated one. When Docker or the image is
// missing, both fail the test, never skip it, and say what to do. Everything
// they make is removed when the test ends. The servers' logs are printed when
// it failed.
//
// # Image
//
// ZOOKEEPER_IMAGE names the image, by default the official zookeeper:3.9. The
// harness never pulls. Where no registry can be reached,
//
//	export ZOOKEEPER_IMAGE=$(scripts/zookeeper-image.sh)
//
// makes one from Debian's packages. The reaper of testcontainers is switched off
// when its image is not in the engine. A test binary that is killed then leaves
// containers and networks behind; they carry the label [Label]:
//
//	docker rm -fv $(docker ps -aq --filter label=docent.integration)
//	docker network prune --filter label=docent.integration
//
// # Faults
//
// Clients reach every node at a fixed port of 127.0.0.1, which survives
// [Node.Kill] and [Node.Start]. Docker's own proxy listens there, and accepts
// while the container runs. So a cut or paused node looks to a client like a
// server that accepts and is silent. A stopped node refuses.
//
// [Node.Partition] is that of zkcontainer and needs no privileges. [Node.CutClients] drops
// packets with iptables inside the node's network namespace, entered from the host by
// nsenter. It needs root on the machine where the engine runs, and both tools. Nothing is
// reset: established connections fall silent both ways, as with a broken switch. Both stay
// in force over Kill and Start: the server is held back until they are in place.
package harness
