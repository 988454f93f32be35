package wire

import (
	"time"

	"github.com/docent-go/docent/internal/clock"
)

// ProofKind says what shows that the ensemble kept the session.
type ProofKind int

// The kinds of proof.
const (
	// NoProof: there is none yet.
	NoProof ProofKind = iota
	// SessionCreated: the leader made the session, by a write of its own.
	SessionCreated
	// QuorumWrite: a write was committed. The server that passed it on was in
	// contact with a leader that had its quorum.
	QuorumWrite
	// Answer: a server answered anything at all.
	Answer
)

// String returns the kind in words.
func (k ProofKind) String() string {
	switch k {
	case SessionCreated:
		return "creation of the session"
	case QuorumWrite:
		return "committed write"
	case Answer:
		return "answer of a server"
	default:
		return "no proof"
	}
}

// Proof says since when, at least, the leader's timer of the session has been
// running: no other client sees the session end before Alive plus its timeout.
type Proof struct {
	Kind  ProofKind
	Sent  clock.Stamp // when the request was sent, read before it was
	Alive clock.Stamp // the leader heard of the session then or later
}

// Proof returns the proof that reaches furthest, and the least timeout that
// was ever negotiated for the session.
func (l *Link) Proof() (Proof, time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.proof, l.timeout
}

// prove takes a proof if it reaches further than the one there is, or as far
// and is newer. The caller holds l.mu.
func (l *Link) prove(p Proof) {
	further := p.Alive.At.Compare(l.proof.Alive.At)
	if further > 0 || further == 0 && p.Sent.At.After(l.proof.Sent.At) {
		l.proof = p
	}
}

// sign is a sign of life that a server surely has, because it answered.
type sign struct {
	sent     clock.Stamp
	answered time.Time // zero if the leader itself had it
}

// signs are the newest signs of life on one connection, oldest first.
//
// A server that is not the leader tells the leader of the sessions it heard
// from only when it answers a ping of the leader, and a write that it forwards
// does not count as a sign of life there. So a committed write proves no more
// than that the signs are with the leader which the server had before it
// answered the last ping, one relay interval before the write at the most.
type signs struct {
	ring  [signsKept]sign
	first int
	n     int
}

// signsKept signs, spaced by a signsPerRelay-th of the relay interval, cover
// it twice over; a sign that is left out only shortens what can be proved.
const (
	signsKept     = 64
	signsPerRelay = 32
)

func (s *signs) at(i int) *sign { return &s.ring[(s.first+i)%signsKept] }

// due reports whether a sign is worth to be kept.
func (s *signs) due(sent, answered time.Time, relay time.Duration) bool {
	if s.n == 0 {
		return true
	}
	last := s.at(s.n - 1)
	return sent.After(last.sent.At) && answered.Sub(last.answered) >= relay/signsPerRelay
}

func (s *signs) add(g sign) {
	if s.n == signsKept {
		s.first = (s.first + 1) % signsKept
		s.n--
	}
	s.n++
	*s.at(s.n - 1) = g
}

// before returns the newest sign that was answered at the given time at the
// latest, and forgets those before it.
func (s *signs) before(at time.Time) (sign, bool) {
	for s.n > 1 && !s.at(1).answered.After(at) {
		s.first = (s.first + 1) % signsKept
		s.n--
	}
	if s.n == 0 || s.at(0).answered.After(at) {
		return sign{}, false
	}
	return *s.at(0), true
}

// isQuorumWrite reports whether a server answers requests of type op only
// after a quorum has logged them.
func isQuorumWrite(op int32) bool {
	switch op {
	case opCreate, opDelete, opSetData, opSetACL, opMulti, opCreate2, opReconfig, opCreateContainer, opCreateTTL:
		return true
	}
	return false
}
