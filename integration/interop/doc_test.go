// Package interop_test lets Docent contend with real Curator and kazoo processes on the
// same paths.
//
// TestMatrix has one case for each kind of lock, all at the same time on one
// server. In each there are two clients of every library, with two threads or
// goroutines each. They take turns at random for 60 s, downgrade and give up
// waiting. Their sessions are killed, half the time while they hold the lock. A
// witness outside of the locks judges every hold by its fencing token and by the
// other holds at that time. It must find nothing, and no contender may be stuck.
// All must have had their turns, also after the last kill.
//
// What a holder does after an administrator killed its session is counted and
// printed. It is no violation, as a holder cannot know of the kill in advance.
// But Docent's holders must be told within a session timeout. Curator's and
// kazoo's are not told: they overtake and are overtaken, which the fence catches.
// Two more things are Curator's own, and are kept apart from violations. One is a
// writer beside a reader that Curator 5.4 made of a writer (CURATOR-621). The
// other is an acquire in which Curator went on in another session.
//
// The other tests take one step after the other: which contender waits for which,
// downgrades, and what Docent refuses. They compare what both libraries leave in
// ZooKeeper, node by node.
//
// TestBarriersMixed lets two members of each library pass a double barrier together, for 20 s
// or as long as -barriers says.
//
// To see what a change does, a case may be shorter:
//
//	go test ./interop -run TestMatrix/rw -v -load 20s
package interop_test
