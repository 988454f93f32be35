package wire_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/internal/clock"
	"github.com/docent-go/docent/internal/wire"
)

const relay = 1100 * time.Millisecond

func withRelay(cfg *wire.Config) { cfg.Relay = func(time.Duration) time.Duration { return relay } }

// The write of the tests and its answer.
var (
	someWrite = func(xid int) []byte { return frame(xid, 5, "/n", "", -1) }
	committed = func(xid int) []byte { return reply(xid, 5, 0, make([]byte, 68)) }
)

func (r *rig) wantProof(when string, kind wire.ProofKind, sent, alive time.Time) {
	r.t.Helper()
	p, _ := r.link.Proof()
	if p.Kind != kind || !p.Sent.At.Equal(sent) || !p.Alive.At.Equal(alive) {
		r.t.Errorf("%s: %v, sent off by %v, alive off by %v", when, p.Kind, p.Sent.At.Sub(sent), p.Alive.At.Sub(alive))
	}
}

// A committed write that a learner passed on vouches for earlier signs of life,
// by their send time. The learner had answered them one relay interval earlier.
func TestProofOfAWriteThroughALearner(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, withRelay)
		begun := time.Now()
		c, p := r.establish()
		r.wantProof("created", wire.SessionCreated, begun, begun)
		write := func(xid int, answer []byte, later time.Duration) time.Time {
			return r.exchangeAfter(c, p, later, [][]byte{someWrite(xid)}, [][]byte{answer})[0]
		}
		time.Sleep(time.Second)
		// Sent 1.5 s before the write, answered 0.5 s later: known in time.
		early := r.exchangeAfter(c, p, 300*time.Millisecond, [][]byte{frame(1, 9, "/")}, [][]byte{reply(1, 5, 0)})[0]
		time.Sleep(200 * time.Millisecond)
		// Answered less than a relay interval before the write: too young.
		r.exchangeAfter(c, p, 0, [][]byte{frame(2, 9, "/")}, [][]byte{reply(2, 5, 0)})
		r.wantProof("reads only", wire.SessionCreated, begun, begun)
		time.Sleep(relay - 20*time.Millisecond)
		w := write(3, committed(3), 700*time.Millisecond)
		r.wantProof("write", wire.QuorumWrite, w, early)

		time.Sleep(2 * relay)
		for _, answer := range [][]byte{reply(4, 5, -112), reply(4, 5, -101)} {
			write(4, answer, 0)
			r.wantProof("refused", wire.QuorumWrite, w, early)
		}
		// The header of the answer to a transaction of go-zookeeper's does not
		// tell whether the leader knows the session.
		for _, results := range [][]any{append(failedPart(-112), partsEnd...), append(checked, partsEnd...)} {
			r.exchangeAfter(c, p, 0, [][]byte{frame(5, 14, 13, false, -1, "/n", -1, -1, true, -1)}, [][]byte{reply(5, 5, 0, results...)})
			r.wantProof("transaction", wire.QuorumWrite, w, early)
		}
		// A request that was sent in time and answered late was on its way, for
		// all we know, when the learner last told the leader.
		late := time.Now()
		go func() {
			p.expect(frame(5, 9, "/"))
			p.expect(someWrite(6))
			time.Sleep(time.Second)
			p.write(reply(5, 5, 0))
			p.write(committed(6))
		}()
		_, _ = c.Write(frame(5, 9, "/"))
		time.Sleep(relay + time.Second)
		w = time.Now()
		_, _ = c.Write(someWrite(6))
		r.wantRead(c, reply(5, 5, 0))
		r.wantRead(c, committed(6))
		if q, _ := r.link.Proof(); !q.Sent.At.Equal(w) || !q.Alive.At.Before(late) {
			t.Errorf("sent off by %v; a request whose answer came late is believed to be known, off by %v", q.Sent.At.Sub(w), q.Alive.At.Sub(late))
		}
	})
}

// Without relays every committed write vouches for itself; answers do only
// where they are trusted.
func TestProofWithoutRelay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for trust, kind := range map[bool]wire.ProofKind{false: wire.QuorumWrite, true: wire.Answer} {
			r := newRig(t, func(cfg *wire.Config) { cfg.TrustAnswers = trust })
			c, p := r.establish()
			time.Sleep(time.Second)
			w := r.exchangeAfter(c, p, time.Second, [][]byte{someWrite(1)}, [][]byte{committed(1)})[0]
			r.wantProof("write", kind, w, w)
			read := r.exchangeAfter(c, p, time.Second, [][]byte{frame(2, 9, "/")}, [][]byte{reply(2, 5, 0)})[0]
			if trust {
				r.wantProof("read", wire.Answer, read, read)
			} else {
				r.wantProof("read", wire.QuorumWrite, w, w)
			}
		}
	})
}

// Coming back to the session shows that a leader has it, not that this leader has
// a quorum. With a write behind the handshake, the proof counts from the
// handshake.
func TestProofAfterAReconnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, withRelay)
		begun := time.Now()
		c, _ := r.establish()
		_ = c.Close()
		time.Sleep(2 * time.Second)
		back := time.Now()
		c, p := r.establish()
		r.wantProof("back", wire.SessionCreated, begun, begun)
		time.Sleep(50 * time.Millisecond)
		w := r.exchangeAfter(c, p, 0, [][]byte{someWrite(1)}, [][]byte{committed(1)})[0]
		r.wantProof("write", wire.QuorumWrite, w, back)
	})
}

// What was sent before a suspension is older by it.
func TestProofCountsSuspension(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var slept time.Duration
		ck := &clock.Clock{Slept: func() time.Duration { return slept }}
		r := newRig(t, withRelay, func(cfg *wire.Config) { cfg.Clock = ck })
		c, p := r.establish()
		time.Sleep(time.Second)
		r.exchangeAfter(c, p, 0, [][]byte{frame(1, 9, "/")}, [][]byte{reply(1, 5, 0)})
		slept = 3 * time.Second
		time.Sleep(2 * relay)
		r.exchangeAfter(c, p, 0, [][]byte{someWrite(2)}, [][]byte{committed(2)})
		q, _ := r.link.Proof()
		if age := ck.Now().Since(q.Alive); q.Kind != wire.QuorumWrite || age < slept+2*relay {
			t.Errorf("%v, age %v: the suspension between sign and write does not count", q.Kind, age)
		}
	})
}

// Heavy traffic does not wash out the sign that a write needs.
func TestSignsAreSpaced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, withRelay)
		c, p := r.establish()
		for xid := range 500 {
			r.exchangeAfter(c, p, 0, [][]byte{frame(xid+1, 9, "/")}, [][]byte{reply(xid+1, 5, 0)})
		}
		w := r.exchangeAfter(c, p, 0, [][]byte{someWrite(1000)}, [][]byte{committed(1000)})[0]
		q, _ := r.link.Proof()
		if lag := w.Sub(q.Alive.At); q.Kind != wire.QuorumWrite || lag < relay || lag > relay+relay/8 {
			t.Errorf("%v reaches back %v before the write, want little more than %v", q.Kind, lag, relay)
		}
	})
}
