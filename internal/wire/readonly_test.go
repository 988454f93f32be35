package wire_test

import (
	"errors"
	"testing"

	"github.com/docent-go/docent/internal/wire"
)

// A server without a quorum is no server for a Link that has not asked for one. That says
// nothing about the session.
func TestReadOnlyServerIsRefused(t *testing.T) {
	t.Parallel()
	for name, greeting := range map[string][]byte{
		"reply header": reply(0, 0x4ffffff89, -119),
		"session":      frame(0, int(timeout.Milliseconds()), sessionID, password, true),
	} {
		for _, first := range []bool{true, false} {
			r := newRig(t)
			if !first {
				c, _ := r.establish()
				_ = c.Close()
			}
			c, p := r.dial()
			go func() {
				_, _ = p.next()
				p.write(greeting)
			}()
			_, _ = c.Write(connectRequest(r.link.SessionID()))
			if n, err := c.Read(make([]byte, 256)); n != 0 || !errors.Is(err, wire.ErrReadOnly) {
				t.Errorf("%s: Read = %d, %v", name, n, err)
			}
			r.wantAlive()
			r.establish() // the next server
		}
	}
}

// Another reply header is no answer to a handshake.
func TestHeaderIsNoGreeting(t *testing.T) {
	t.Parallel()
	for _, greeting := range [][]byte{reply(0, 0, -118), reply(1, 0, -119), reply(0, 0, 0)} {
		r := newRig(t)
		c, p := r.dial()
		go func() {
			_, _ = p.next()
			p.write(greeting)
		}()
		_, _ = c.Write(connectRequest(0))
		if _, err := c.Read(make([]byte, 256)); !errors.Is(err, wire.ErrProtocol) || errors.Is(err, wire.ErrReadOnly) {
			t.Errorf("%x: %v", greeting, err)
		}
	}
}

// A session of a server without a quorum proves nothing about a quorum.
func TestReadOnlySessionProvesNothing(t *testing.T) {
	t.Parallel()
	for _, readOnly := range []bool{true, false} {
		up := make(chan wire.Handshake, 1)
		r := newRig(t, func(cfg *wire.Config) {
			cfg.ReadOnly, cfg.TrustAnswers = true, true
			cfg.OnUp = func(h wire.Handshake) { up <- h }
		})
		c, p := r.dial()
		answer := frame(0, int(timeout.Milliseconds()), sessionID, password, readOnly)
		go func() {
			asked, _ := p.next()
			if asked[len(asked)-1] != 1 {
				t.Errorf("asked %x", asked)
			}
			p.write(answer)
		}()
		_, _ = c.Write(connectRequest(0))
		r.wantRead(c, answer)
		if h := <-up; h.ReadOnly != readOnly {
			t.Errorf("handshake %+v", h)
		}
		if proof, _ := r.link.Proof(); proof.Sent.At.IsZero() != readOnly {
			t.Errorf("read-only %v: proof %+v", readOnly, proof)
		}
	}
}
