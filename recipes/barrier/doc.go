// Package barrier lets processes wait for each other on ZooKeeper. Its barriers
// are compatible on the wire with Apache Curator's package barriers. Java and Go
// processes may use the same paths at the same time. Types keep Curator's names.
//
//	start, err := barrier.NewDistributedDoubleBarrier(c, "/jobs/night/start", 5)
//	member, err := start.Enter(ctx) // until five have entered
//	defer member.Close()
//	work(member.Context())
//	err = member.Leave(ctx) // until all have left
//
// A [DistributedBarrier] is one node: while it stands, all wait. At a
// [DistributedDoubleBarrier] a number of members wait for each other, before their
// work and after it.
//
// docs/barriers.md says what is true after a failure; docs/internals/barriers.md has the rules.
package barrier
