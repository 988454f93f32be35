package wire_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/internal/wire"
)

// exchangeAfter sends requests now and delivers the answers later.
func (r *rig) exchangeAfter(c interface {
	Read([]byte) (int, error)
	Write([]byte) (int, error)
}, p *peer, later time.Duration, requests, answers [][]byte,
) (sent []time.Time) {
	r.t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, q := range requests {
			p.expect(q)
		}
		time.Sleep(later)
		for _, a := range answers {
			p.write(a)
		}
	}()
	for _, q := range requests {
		sent = append(sent, time.Now())
		if _, err := c.Write(q); err != nil {
			r.t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	for _, a := range answers {
		got := make([]byte, len(a))
		for n := 0; n < len(a); {
			k, err := c.Read(got[n:])
			if err != nil {
				r.t.Fatal(err)
			}
			n += k
		}
	}
	<-done
	return sent
}

func (r *rig) wantEvidence(want time.Time, when string) {
	r.t.Helper()
	if got := r.link.Evidence().At; !got.Equal(want) {
		r.t.Errorf("%s: evidence off by %v", when, got.Sub(want))
	}
}

func TestEvidenceIsTheSendTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		c, p := r.dial()
		asked := time.Now()
		go func() {
			_, _ = p.next()
			time.Sleep(300 * time.Millisecond)
			p.write(connectResponse(sessionID, timeout))
		}()
		_, _ = c.Write(connectRequest(0))
		r.wantRead(c, connectResponse(sessionID, timeout))
		r.wantEvidence(asked, "handshake")

		sent := r.exchangeAfter(c, p, time.Second, [][]byte{frame(1, 9, "/")}, [][]byte{reply(1, 5, 0)})
		r.wantEvidence(sent[0], "reply")

		// Answers out of order never move the evidence back.
		sent = r.exchangeAfter(c, p, time.Second, [][]byte{frame(2, 9, "/"), frame(3, 9, "/")}, [][]byte{reply(3, 5, 0), reply(2, 5, -101)})
		r.wantEvidence(sent[1], "out of order")

		// Neither an event, nor an unknown xid, nor a second answer is evidence.
		r.exchangeAfter(c, p, time.Second, [][]byte{frame(4, 9, "/")}, [][]byte{reply(-1, -1, 0, 1, 3, "/"), reply(99, 5, 0), reply(3, 5, 0), reply(-2, 5, 0)})
		r.wantEvidence(sent[1], "no answer")

		// A server answers an auth request without a look at the session.
		r.exchangeAfter(c, p, time.Second, [][]byte{frame(7, 100, 0, "x", "y")}, [][]byte{reply(7, 0, 0)})
		r.wantEvidence(sent[1], "auth")

		// A server that says the session is gone does not vouch for it.
		r.exchangeAfter(c, p, 0, [][]byte{frame(5, 9, "/"), frame(6, 9, "/")}, [][]byte{reply(5, 5, -112), reply(6, 5, -118)})
		r.wantEvidence(sent[1], "expired")
	})
}

func TestEvidenceOfPingsIsFirstInFirstOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		c, p := r.establish()
		ping, pong := frame(-2, 11), reply(-2, 0, 0)
		sent := r.exchangeAfter(c, p, time.Second, [][]byte{ping, ping, ping}, [][]byte{pong})
		r.wantEvidence(sent[0], "first pong")
		// The queue never runs empty here, as under a slow server.
		for range 20 {
			more := r.exchangeAfter(c, p, time.Second, [][]byte{ping}, [][]byte{pong})
			sent = append(sent[1:], more[0])
			r.wantEvidence(sent[0], "pong")
		}
		r.exchangeAfter(c, p, 0, nil, [][]byte{pong, pong})
		r.wantEvidence(sent[2], "last pong")
		r.exchangeAfter(c, p, 0, nil, [][]byte{pong})
		r.wantEvidence(sent[2], "pong too many")
	})
}

// A reused xid must not let an old answer vouch for a new request.
func TestEvidenceOfReusedXid(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		c, p := r.establish()
		time.Sleep(time.Second)
		sent := r.exchangeAfter(c, p, 0, [][]byte{frame(1, 9, "/"), frame(1, 9, "/")}, [][]byte{reply(1, 5, 0)})
		r.wantEvidence(sent[0], "reused xid")
	})
}

func TestOutstandingRequestsDieWithTheirConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		c, p := r.establish()
		time.Sleep(time.Second)
		r.exchangeAfter(c, p, 0, [][]byte{frame(1, 9, "/"), frame(-2, 11)}, nil)
		_ = c.Close()
		time.Sleep(time.Second)
		c, p = r.establish()
		want := time.Now()
		r.wantEvidence(want, "handshake")
		time.Sleep(time.Second)
		r.exchangeAfter(c, p, 0, nil, [][]byte{reply(1, 5, 0), reply(-2, 5, 0)})
		r.wantEvidence(want, "answers of the old connection")
	})
}

func TestRefusedHandshakeIsNoEvidence(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(cfg *wire.Config) { cfg.OnUp = nil })
	c, p := r.dial()
	go func() {
		_, _ = p.next()
		p.write(connectResponse(0, 0))
	}()
	_, _ = c.Write(connectRequest(0))
	_, _ = c.Read(make([]byte, 4))
	r.wantEvidence(time.Time{}, "refused")
}
