// Package simulation judges what a lock did in a simulated schedule of
// faults.
//
// A schedule is a seed. Its test runs one zktest server, a few clients and
// several goroutines on each in a bubble of virtual time, disturbs them for a
// while, heals everything, lets them work in peace and closes them. Meanwhile
// it writes a [History]. [Check] compares the history with what the lock
// promises: each promise is one error, whose text is the promise broken, and
// one short function that reads the history and nothing else, so that every
// check has tests of its own with histories that break it.
//
// # Two witnesses
//
// Exclusion is seen in two ways. The [Witness] stands for the resource that a
// lock guards: holders open it with their token and close it, and it asks, at
// every opening, whether another visitor still believes to hold the lock. And
// the server's own log says when the node of a hold was gone, after which
// anybody may be granted: a hold must have ended before.
//
// # Force
//
// Nobody can promise that a holder hears in advance of an operator who deletes
// its node or ends its session. Such a [Force] excuses the hold it strikes for
// the time it takes to hear of it, and nothing else.
package simulation
