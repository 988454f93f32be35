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

const xidCheck = -0x44500000

func checkRequest(n int, paths ...string) []byte {
	parts := []any{xidCheck - n, 14}
	for _, p := range paths {
		parts = append(parts, 13, false, -1, p, -1)
	}
	return frame(append(parts, -1, true, -1)...)
}

func TestCheck(t *testing.T) {
	t.Parallel()
	ok, no := []any{13, false, -1}, func(code int) []any { return []any{-1, false, code, code} }
	end := []any{-1, true, -1}
	answer := func(parts ...[]any) []byte {
		var all []any
		for _, p := range append(parts, end) {
			all = append(all, p...)
		}
		return reply(xidCheck-1, 7, 0, all...)
	}
	for name, tt := range map[string]struct {
		answer []byte
		failed int
		why    error
		err    error
		proof  wire.ProofKind
	}{
		"both there":     {answer(ok, ok), -1, nil, nil, wire.QuorumWrite},
		"second missing": {answer(no(0), no(-101)), 1, wire.ServerError(-101), nil, wire.QuorumWrite},
		"first missing":  {answer(no(-101), no(-2)), 0, wire.ServerError(-101), nil, wire.QuorumWrite},
		"expired":        {answer(no(-112), no(-2)), 0, wire.ServerError(-112), nil, wire.SessionCreated},
		"moved":          {reply(xidCheck-1, 7, -118), -1, nil, wire.ServerError(-118), wire.SessionCreated},
		"throttled":      {reply(xidCheck-1, 7, -127), -1, nil, wire.ServerError(-127), wire.SessionCreated},
		"cut short":      {reply(xidCheck-1, 7, 0, ok...), -1, nil, wire.ErrProtocol, wire.SessionCreated},
		"other result":   {reply(xidCheck-1, 7, 0, 4, false, -1), -1, nil, wire.ErrProtocol, wire.SessionCreated},
		"nothing":        {reply(xidCheck-1, 7, 0), -1, nil, wire.ErrProtocol, wire.SessionCreated},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				c, p := r.establish()
				time.Sleep(time.Second)
				go func() {
					p.expect(checkRequest(1, "/a", "/b"))
					p.write(tt.answer)
					p.write(reply(1, 1, 0)) // go-zookeeper sees only this
				}()
				go func() { r.wantRead(c, reply(1, 1, 0)) }()
				failed, why, err := r.link.Check(t.Context(), "/a", "/b")
				if failed != tt.failed || !errors.Is(why, tt.why) || !errors.Is(err, tt.err) {
					t.Errorf("Check = %d, %v, %v", failed, why, err)
				}
				if q, _ := r.link.Proof(); q.Kind != tt.proof {
					t.Errorf("proof: %v, want %v", q.Kind, tt.proof)
				}
				synctest.Wait()
			})
		})
	}
}

// An answer about more nodes than the reading buffer has room for is read like
// any other.
func TestCheckOfManyNodes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		c, p := r.establish()
		time.Sleep(time.Second)
		const many = 4000
		paths := make([]string, many)
		var there []any
		for i := range paths {
			paths[i] = "/a"
			there = append(there, 13, false, -1)
		}
		go func() {
			p.expect(checkRequest(1, paths...))
			p.write(reply(xidCheck-1, 7, 0, append(there, -1, true, -1)...))
			p.write(reply(1, 1, 0))
		}()
		go func() { r.wantRead(c, reply(1, 1, 0)) }()
		if failed, why, err := r.link.Check(t.Context(), paths...); failed != -1 || why != nil || err != nil {
			t.Errorf("Check = %d, %v, %v", failed, why, err)
		}
		synctest.Wait()
	})
}

// Without a connection nothing is sent; a connection that ends takes the check
// with it; an end of the context leaves the connection alone.
func TestCheckWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		if _, _, err := r.link.Check(t.Context(), "/a"); !errors.Is(err, wire.ErrNotConnected) {
			t.Errorf("Check before a connection = %v", err)
		}
		c, p := r.establish()
		go p.swallowAll()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, _, err := r.link.Check(ctx, "/a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Check = %v, want the end of its context", err)
		}
		time.AfterFunc(time.Second, func() { _ = c.Close() })
		if _, _, err := r.link.Check(t.Context(), "/a"); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Check = %v, want the end of the connection", err)
		}
		r.wantCalls("up", "down")
		r.wantAlive()
	})
}

// A writer that is stuck does not keep a check beyond its context, and half a
// frame costs the connection.
func TestCheckBehindAStuckWriter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		c, _ := r.establish()
		go func() { _, _ = c.Write(frame(1, 9, "/")) }() // nobody reads it
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, _, err := r.link.Check(ctx, "/a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Check = %v", err)
		}
		if !r.link.DropLive(time.Now(), errors.New("in doubt")) {
			t.Error("there was no connection to drop")
		}
		_, _ = r.establish()
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, _, err := r.link.Check(ctx, "/a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Check = %v", err)
		}
		synctest.Wait()
		r.wantCalls("up", "down", "up", "down")
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
	})
}
