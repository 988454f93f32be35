package wire_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/wire"
)

// An answer may say that the session has expired, in its header or about a part
// of a transaction. Such an answer ends the Link before its caller is told, and
// is neither evidence nor proof. OnOver has returned by then.
func TestExpiredAnswerEndsTheLink(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		x      *wire.Exchange
		answer []byte
	}{
		"read":             {asked(wire.OpGetData, "/a"), reply(ownXid(1), 5, -112)},
		"write":            {asked(wire.OpDelete, "/a"), reply(ownXid(1), 5, -112)},
		"transaction":      {checks("/a", "/b"), reply(ownXid(1), 5, -112)},
		"first part":       {checks("/a", "/b"), committedMulti(1, failedPart(-112), failedPart(-2))},
		"second part":      {checks("/a", "/b"), committedMulti(1, failedPart(0), failedPart(-112))},
		"part, cut short":  {checks("/a", "/b"), reply(ownXid(1), 5, 0, failedPart(-112)...)},
		"part, and header": {checks("/a", "/b"), reply(ownXid(1), 5, -112, failedPart(-112)...)},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			c, p := r.establish()
			r.view(c)
			evidence := r.link.Evidence()
			other := asked(wire.OpSync, "/other")
			lost := r.do(t.Context(), other)
			p.expect(request(1, other))
			told := make(chan struct{})
			go func() {
				defer close(told)
				if err := r.link.Do(t.Context(), tt.x); err != nil && !errors.Is(err, zk.ErrSessionExpired) {
					t.Errorf("%s: Do = %v", name, err)
				}
				if err := r.link.Cause(); !errors.Is(err, zk.ErrSessionExpired) {
					t.Errorf("%s: the caller was told while the Link's cause was %v", name, err)
				}
				if !tt.x.Answered() || tt.x.Reply.Code != -112 {
					t.Errorf("%s: answered %v, %+v", name, tt.x.Answered(), tt.x.Reply)
				}
			}()
			p.expect(request(2, tt.x))
			setXid(tt.answer, ownXid(2))
			p.write(tt.answer)
			<-told
			if err := <-lost; !errors.Is(err, zk.ErrSessionExpired) || !errors.Is(err, wire.ErrOver) {
				t.Errorf("%s: Do of another request = %v", name, err)
			}
			wantFate(t, name, other, true, false)
			synctest.Wait()
			r.wantOver(zk.ErrSessionExpired)
			r.wantCalls("up", "down", "over")
			if !r.link.Evidence().At.Equal(evidence.At) {
				t.Errorf("%s: evidence was moved", name)
			}
			if q, _ := r.link.Proof(); q.Kind != wire.SessionCreated {
				t.Errorf("%s: proof %v", name, q.Kind)
			}
		})
	}
}

// setXid changes the xid of a frame.
func setXid(b []byte, xid int) {
	u := uint32(int32(xid))
	b[4], b[5], b[6], b[7] = byte(u>>24), byte(u>>16), byte(u>>8), byte(u)
}

// A session that is found to have moved goes on: only this connection is of no
// use any more, and the server closes it.
func TestMovedAnswerDoesNotEndTheLink(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		c, p := r.establish()
		r.view(c)
		x := asked(wire.OpDelete, "/a")
		done := r.do(t.Context(), x)
		p.expect(request(1, x))
		p.write(reply(ownXid(1), 5, -118))
		if err := <-done; err != nil || x.Reply.Code != -118 {
			t.Errorf("Do = %v, %+v", err, x.Reply)
		}
		r.wantAlive()
		r.wantCalls("up")
	})
}

// If the session is over by the time that its closing is confirmed, the close
// did not end it, and says so in words.
func TestCloseSessionAfterAnExpiredAnswer(t *testing.T) {
	t.Parallel()
	for _, code := range []int{0, -112} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			c, p := r.establish()
			r.view(c)
			x := asked(wire.OpDelete, "/a")
			done := r.do(t.Context(), x)
			p.expect(request(1, x))
			errs := startClose(t.Context(), r, 1)
			p.expect(closeRequest(2))
			p.write(append(reply(ownXid(1), 5, -112), reply(ownXid(2), 5, code)...))
			<-done
			if err := <-errs; !errors.Is(err, zk.ErrSessionExpired) || !errors.Is(err, wire.ErrOver) {
				t.Errorf("CloseSession = %v", err)
			}
			synctest.Wait()
			r.wantOver(zk.ErrSessionExpired)
		})
	}
}
