package wire

import (
	"time"

	"github.com/docent-go/docent/internal/clock"
	"github.com/docent-go/docent/internal/zoodefs"
)

// ProofKind says what shows that the ensemble kept the session, in words.
type ProofKind string

// The kinds of proof.
const (
	// NoProof: there is none yet.
	NoProof ProofKind = ""
	// SessionCreated: the leader made the session, by a write of its own.
	SessionCreated ProofKind = "creation of the session"
	// QuorumWrite: a write was committed. The server that passed it on was in
	// contact with a leader that had its quorum.
	QuorumWrite ProofKind = "committed write"
	// Answer: a server answered anything at all.
	Answer ProofKind = "answer of a server"
)

// Proof says since when, at least, the leader's timer of the session has been
// running. No other client sees the session end before Alive plus its timeout.
type Proof struct {
	Kind  ProofKind
	Sent  clock.Stamp // when the request was sent; read before that
	Alive clock.Stamp // the leader heard of the session then or later
}

// Proof returns the proof that reaches furthest, and the least timeout that
// was ever negotiated for the session.
func (l *Link) Proof() (Proof, time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.proof, l.timeout
}

// prove takes p if it reaches further than the present proof, or as far and is newer.
// The caller holds l.mu.
func (l *Link) prove(p Proof) {
	further := p.Alive.At.Compare(l.proof.Alive.At)
	if further > 0 || further == 0 && p.Sent.At.After(l.proof.Sent.At) {
		l.proof = p
	}
}

// sign is a sign of life: a request that a server surely has, because it answered.
type sign struct {
	sent     clock.Stamp
	answered time.Time // zero if the leader itself had it
}

// signs are the newest signs of life on one connection, oldest first.
//
// A server that is not the leader learns of sessions from their requests. It tells
// the leader of them only when it answers a ping of the leader. A write that it
// forwards does not count as a sign of life at the leader. So a committed write
// proves only this much. The leader has all signs that the server had before it
// answered the last ping, at most one relay interval before the write.
type signs []sign

// signsKept signs, spaced by a signsPerRelay-th of the relay interval, cover it twice
// over. A sign that is left out only shortens what can be proved.
const (
	signsKept     = 64
	signsPerRelay = 32
)

// due reports whether a sign is worth keeping.
func (s *signs) due(sent, answered time.Time, relay time.Duration) bool {
	if len(*s) == 0 {
		return true
	}
	last := (*s)[len(*s)-1]
	return sent.After(last.sent.At) && answered.Sub(last.answered) >= relay/signsPerRelay
}

func (s *signs) add(g sign) {
	if len(*s) == signsKept {
		*s = (*s)[1:]
	}
	*s = append(*s, g)
}

// before returns the newest sign that was answered at or before the given time, and
// forgets the signs before it.
func (s *signs) before(at time.Time) (sign, bool) {
	for len(*s) > 1 && !(*s)[1].answered.After(at) {
		*s = (*s)[1:]
	}
	if len(*s) == 0 || (*s)[0].answered.After(at) {
		return sign{}, false
	}
	return (*s)[0], true
}

// isQuorumWrite reports whether a server answers requests of type op only
// after a quorum has logged them.
func isQuorumWrite(op Op) bool {
	switch op {
	case OpCreate, OpDelete, OpSetData, OpSetACL, OpMulti, zoodefs.OpCreate2, zoodefs.OpReconfig, OpCreateContainer, OpCreateTTL:
		return true
	}
	return false
}
