package wire_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/internal/wire"
)

// checks is a transaction that only checks that nodes exist.
func checks(paths ...string) *wire.Exchange {
	x := &wire.Exchange{Request: wire.Request{Op: wire.OpMulti}}
	for _, p := range paths {
		x.Request.Parts = append(x.Request.Parts, wire.Request{Op: wire.OpCheck, Path: p, Version: -1})
	}
	return x
}

// Results of the parts of a transaction.
var (
	checked    = []any{13, false, -1}
	partsEnd   = []any{-1, true, -1}
	failedPart = func(code int) []any { return []any{-1, false, code, code} }
)

// committedMulti is the answer to the n-th exchange of a connection.
func committedMulti(n int, parts ...[]any) []byte {
	var all []any
	for _, p := range append(parts, partsEnd) {
		all = append(all, p...)
	}
	return reply(ownXid(n), 7, 0, all...)
}

// Which answers to a transaction prove that it was committed.
func TestDoMultiOfChecks(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer []byte
		code   int32   // of the reply
		parts  []int32 // codes of the parts
		err    error   // of the exchange
		proof  wire.ProofKind
	}{
		"both there":     {committedMulti(1, checked, checked), 0, []int32{0, 0}, nil, wire.QuorumWrite},
		"second missing": {committedMulti(1, failedPart(0), failedPart(-101)), 0, []int32{0, -101}, nil, wire.QuorumWrite},
		"first missing":  {committedMulti(1, failedPart(-101), failedPart(-2)), 0, []int32{-101, -2}, nil, wire.QuorumWrite},
		"moved":          {committedMulti(1, failedPart(-118), failedPart(-2)), -118, []int32{-118, -2}, nil, wire.SessionCreated},
		"moved, second":  {committedMulti(1, failedPart(0), failedPart(-118)), -118, []int32{0, -118}, nil, wire.SessionCreated},
		"refused whole":  {reply(ownXid(1), 7, -118), -118, nil, nil, wire.SessionCreated},
		"throttled":      {reply(ownXid(1), 7, -127), -127, nil, nil, wire.SessionCreated},
		"refused, body":  {reply(ownXid(1), 7, -127, checked...), -127, nil, nil, wire.SessionCreated},
		"cut short":      {reply(ownXid(1), 7, 0, checked...), 0, nil, wire.ErrProtocol, wire.SessionCreated},
		"other result":   {reply(ownXid(1), 7, 0, 4, false, -1, -1, true, -1), 0, nil, wire.ErrProtocol, wire.SessionCreated},
		"nothing":        {reply(ownXid(1), 7, 0), 0, nil, wire.ErrProtocol, wire.SessionCreated},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				c, p := r.establish()
				seen := r.view(c)
				time.Sleep(time.Second)
				x := checks("/a", "/b")
				go func() {
					p.expect(frame(ownXid(1), 14, 13, false, -1, "/a", -1, 13, false, -1, "/b", -1, -1, true, -1))
					p.write(tt.answer)
					p.write(reply(1, 1, 0))
				}()
				if err := r.link.Do(t.Context(), x); err != nil || !x.Answered() || !x.Sent() {
					t.Errorf("Do = %v, answered %v, sent %v", err, x.Answered(), x.Sent())
				}
				if x.Reply.Zxid != 7 || x.Reply.Code != tt.code || !errors.Is(x.Err(), tt.err) {
					t.Errorf("reply %+v, %v; want code %d, %v", x.Reply, x.Err(), tt.code, tt.err)
				}
				if x.Err() == nil {
					wantCodes(t, x, tt.parts)
				}
				if q, _ := r.link.Proof(); q.Kind != tt.proof {
					t.Errorf("proof: %v, want %v", q.Kind, tt.proof)
				}
				seen.want(t, reply(1, 1, 0))
				r.wantPending("afterwards", 0, 0)
				r.wantAlive()
			})
		})
	}
}

func wantCodes(t *testing.T, x *wire.Exchange, want []int32) {
	t.Helper()
	if len(x.Reply.Parts) != len(want) {
		t.Fatalf("parts %+v, want codes %v", x.Reply.Parts, want)
	}
	for i, p := range x.Reply.Parts {
		if p.Code != want[i] {
			t.Errorf("part %d says %d, want %d", i, p.Code, want[i])
		}
	}
}

// Of single requests, writes that succeed are proof, and nothing else is. Proof
// and evidence are as old as the beginning of the write.
func TestDoProof(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		op    wire.Op
		code  int
		proof wire.ProofKind
	}{
		{wire.OpDelete, 0, wire.QuorumWrite},
		{wire.OpSetData, 0, wire.QuorumWrite},
		{wire.OpSetACL, 0, wire.QuorumWrite},
		{wire.OpCreate, 0, wire.QuorumWrite},
		{wire.OpCreateContainer, 0, wire.QuorumWrite},
		{wire.OpCreateTTL, 0, wire.QuorumWrite},
		{wire.OpDelete, -101, wire.SessionCreated},
		{wire.OpCreate, -110, wire.SessionCreated},
		{wire.OpDelete, -118, wire.SessionCreated},
		{wire.OpExists, 0, wire.SessionCreated},
		{wire.OpGetData, 0, wire.SessionCreated},
		{wire.OpGetChildren, 0, wire.SessionCreated},
		{wire.OpGetACL, 0, wire.SessionCreated},
		{wire.OpSync, 0, wire.SessionCreated},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			c, p := r.establish()
			r.view(c)
			time.Sleep(time.Second)
			sent := time.Now()
			go func() {
				time.Sleep(time.Second) // so long does the write take
				_, _ = p.next()
				time.Sleep(time.Second)
				// A body that fits all of them: a string, a list or bytes of
				// length 0, and a Stat.
				p.write(reply(ownXid(1), 7, tt.code, make([]byte, 72)))
			}()
			x := asked(tt.op, "/a")
			if err := r.link.Do(t.Context(), x); err != nil || x.Err() != nil {
				t.Fatalf("Do = %v, %v", err, x.Err())
			}
			q, _ := r.link.Proof()
			if q.Kind != tt.proof {
				t.Errorf("op %d, code %d: proof %v, want %v", tt.op, tt.code, q.Kind, tt.proof)
			}
			if q.Kind == wire.QuorumWrite && !q.Sent.At.Equal(sent) {
				t.Errorf("op %d: proof off by %v from the time of sending", tt.op, q.Sent.At.Sub(sent))
			}
			if got := r.link.Evidence(); tt.code != -118 && !got.At.Equal(sent) {
				t.Errorf("op %d, code %d: evidence off by %v from the time of sending", tt.op, tt.code, got.At.Sub(sent))
			}
		})
	}
}

// Without a connection nothing is sent; a connection that ends takes the
// request with it; an end of the context leaves the connection alone.
func TestDoWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		x := checks("/a")
		want := func(when string) {
			t.Helper()
			x = checks("/a")
			if err := r.link.Do(t.Context(), x); !errors.Is(err, wire.ErrNotConnected) {
				t.Errorf("%s: Do = %v", when, err)
			}
			wantFate(t, when, x, false, false)
		}
		want("before a connection")
		c, p := r.dial()
		want("before the handshake")
		r.shake(c, p, sessionID, timeout)
		go p.swallowAll()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		x = checks("/a")
		if err := r.link.Do(ctx, x); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Do = %v, want the end of its context", err)
		}
		wantFate(t, "given up", x, true, false)
		x = checks("/a")
		if err := r.link.Do(ctx, x); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Do = %v, want the end of its context", err)
		}
		wantFate(t, "too late", x, false, false)
		time.AfterFunc(time.Second, func() { _ = c.Close() })
		x = checks("/a")
		if err := r.link.Do(t.Context(), x); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Do = %v, want the end of the connection", err)
		}
		wantFate(t, "lost", x, true, false)
		want("after the connection")
		synctest.Wait()
		r.wantCalls("up", "down")
		r.wantAlive()
		r.link.End(errKilled)
		want("after the end")
		if err := r.link.Do(t.Context(), x); !errors.Is(err, errKilled) || !errors.Is(err, wire.ErrOver) {
			t.Errorf("Do after the end = %v", err)
		}
	})
}

// A request that is too large is refused before anything is sent, with all
// requests of the same Do. The connection is not the worse for it.
func TestDoTooLarge(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const limit = 100
		r := newRig(t, func(cfg *wire.Config) { cfg.MaxRequest = limit })
		c, p := r.establish()
		r.view(c)
		set := func(size int) *wire.Exchange { // of the frame without its length
			x := asked(wire.OpSetData, "/a")
			x.Request.Data = make([]byte, size-8-4-2-4-4)
			return x
		}
		small, large := set(limit), set(limit+1)
		small.Keep = true
		for _, xs := range [][]*wire.Exchange{{large}, {small, large}, {large, small}, {set(1 << 20)}} {
			if err := r.link.Do(t.Context(), xs...); !errors.Is(err, wire.ErrFrameTooLarge) {
				t.Errorf("Do = %v", err)
			}
			for _, x := range xs {
				wantFate(t, "too large", x, false, false)
			}
		}
		start := time.Now()
		small.AwaitAnswer(t.Context())
		if took := time.Since(start); took != 0 {
			t.Errorf("Settle waited %v for the answer to a request that was not sent", took)
		}
		r.wantPending("afterwards", 0, 0)
		go func() {
			p.expect(request(1, set(limit)))
			p.write(reply(ownXid(1), 7, 0, make([]byte, 68)))
		}()
		if err := r.link.Do(t.Context(), set(limit)); err != nil {
			t.Errorf("Do of one that just fits = %v", err)
		}
		r.wantCalls("up")
	})
}

// A connection that was accepted after the doubt arose is not dropped for it.
func TestDropLiveSparesTheNextConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		if r.link.DropLive(time.Now(), errors.New("in doubt")) {
			t.Error("dropped what is not there")
		}
		doubt := time.Now()
		time.Sleep(time.Second)
		_, _ = r.establish()
		if r.link.DropLive(doubt, errors.New("in doubt")) {
			t.Error("dropped a connection younger than the doubt")
		}
		r.wantCalls("up")
		if !r.link.DropLive(time.Now(), errors.New("in doubt")) {
			t.Error("there was no connection to drop")
		}
		r.wantCalls("up", "down")
	})
}
