package wire

import "github.com/docent-go/docent/internal/clock"

// pingQueue holds the send times of unanswered pings, which all have the same
// xid and are answered in order. The zero value is empty.
type pingQueue struct {
	at   []clock.Stamp
	head int
}

func (q *pingQueue) push(at clock.Stamp) {
	if q.head > 0 && len(q.at) == cap(q.at) {
		// Reuse the room of answered pings before growing.
		q.at = q.at[:copy(q.at, q.at[q.head:])]
		q.head = 0
	}
	q.at = append(q.at, at)
}

func (q *pingQueue) pop() (at clock.Stamp, ok bool) {
	if q.head == len(q.at) {
		return clock.Stamp{}, false
	}
	at = q.at[q.head]
	q.head++
	if q.head == len(q.at) {
		q.at, q.head = q.at[:0], 0
	}
	return at, true
}
