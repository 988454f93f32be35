// Package simulation judges what locks did in a simulated schedule of faults.
//
// A schedule is a seed. Its test runs one zktest server, a few clients and
// several goroutines on each in a bubble of virtual time. The test disturbs them
// for a while, heals everything, lets them work in peace and closes them.
// Meanwhile it writes a [History]. [Check] compares the history with what the
// lock promises. Each promise is one error, whose text is the promise broken, and
// one short function. The function reads the history and nothing else. So every
// check has tests of its own, with histories that break it.
//
// # Two witnesses
//
// Exclusion is seen in two ways. The [Witness] stands for the resource that a
// lock guards: holders open it with their token and close it. At every opening
// the Witness asks whether another visitor still believes to hold the lock. And
// the server's own log says when the node of a hold was gone. After that another
// client may be granted, so the hold must have ended before.
//
// # Shares
//
// Every hold has a share of its lock: a mutex or a writer all of it, a reader
// little, a permit one of as many as there are. Holds exclude each other if they
// are more than the lock together. So one check is enough for each promise,
// whatever the kind of lock. What only some kinds promise has checks of its own.
// A downgrade lets no writer in between. No more permits stand than there are. A
// caller that asked for several has all or nothing. A multi-lock has a hold of
// each of its locks, which all end when the first does.
//
// A seed draws the kind, in settings of their own: the seeds of mutexes play what
// they always have.
//
// # Crowds
//
// A crowd plays every exported call of recipes and recipes/shared, on one kind of
// lock or on several that meet. Each call is counted by the function that is
// called, and compared with the sources: a new call must be played, or needs a
// reason in unspoken. A ledger counts the situations of contenders, and lists
// those that can be. What calls answer is judged at once, where the log of the
// server tells: who stands in a line, whether a hold was confirmed, what a number is.
//
// # One server, or an ensemble
//
// A schedule runs on a setting: a server on its own or an ensemble, each with
// faults of its own, and a check. On an ensemble what happened to nodes is read
// from the log of commits, because members may not live to answer. A member that
// is cut off, or was deposed, goes on answering. So an ensemble puts the lease to
// the test. It has the tick and the syncLimit that the default policy assumes,
// and some clients know one member only.
//
// [Check] asks for every promise. A hold's context has ended before another
// contender is granted. No other client takes the hold's node before the deadline
// that the hold named. The latter has no safety margin, so it sees errors that
// the margin would hide. [CheckFenced] leaves out the promises about what holders
// believe, and keeps what a resource relies on that looks at tokens. No contender
// is granted while an older one stands. A lease that takes any answer for proof
// keeps that.
//
// All timers of a bubble go by one clock. So a client that stands still is one
// whose network and actors do; its lease still ends by itself. Clocks that sleep,
// jump or run fast are tested in package client.
//
// # Force
//
// No library can promise that a holder hears in advance of an operator that
// deletes its node or ends its session. Such a [Force] excuses the hold it
// strikes for the time it takes to hear of it, and nothing else.
package simulation
