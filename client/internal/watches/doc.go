// Package watches is which watches a client keeps on the servers, and who hears of them.
//
// The table ([table], a machine without I/O) decides. [Watches] is the table of one client with its
// lock. A [Hub] does the I/O for it in one session: it sends what the table wants, and gives the
// table what the servers answer and tell. Readers are of three kinds: a [Wait] for a one-shot watch
// that many share, a [Reader] of a persistent watch, and an [inside.Feed], which caches read by.
//
// After a reconnection [Hub.Up] tells the readers of one-shot watches to read again, and their reads
// set these. The goroutine of Hub.arm sets the persistent ones and then tells their readers. Hub.sweep
// removes what has no reader.
package watches
