package wire_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/internal/wire"
)

// reconnect cuts c and shakes hands again, where go-zookeeper says that it has
// seen theirs. It returns what the ConnectRequest on the wire says.
func (r *rig) reconnect(c interface{ Close() error }, theirs int64) int64 {
	r.t.Helper()
	_ = c.Close()
	next, p := r.dial()
	ask := connectRequest(r.link.SessionID())
	binary.BigEndian.PutUint64(ask[8:], uint64(theirs))
	mine := bytes.Clone(ask)
	got := make(chan []byte, 1)
	go func() {
		b, _ := p.next()
		got <- b
		p.write(connectResponse(sessionID, timeout))
	}()
	if n, err := next.Write(mine); n != len(mine) || err != nil {
		r.t.Fatalf("Write = %d, %v", n, err)
	}
	r.wantRead(next, connectResponse(sessionID, timeout))
	if !bytes.Equal(mine, ask) {
		r.t.Errorf("Write has changed go-zookeeper's buffer to %x", mine)
	}
	b := <-got
	seen := int64(binary.BigEndian.Uint64(b[8:]))
	copy(b[8:16], ask[8:16])
	if !bytes.Equal(b, withReadOnly(ask)) {
		r.t.Errorf("the request has become %x, was %x", b, ask)
	}
	_ = next.Close()
	return seen
}

// The ConnectRequest carries the newest transaction that either go-zookeeper or
// an exchange has seen, or a server would be taken that is behind it.
func TestLastZxidSeen(t *testing.T) {
	t.Parallel()
	answer := func(r *rig, p *peer, b []byte) {
		r.t.Helper()
		x := asked(wire.OpSync, "/a")
		done := r.do(r.t.Context(), x)
		p.expect(request(1, x))
		p.write(b)
		if err := <-done; err != nil {
			r.t.Error(err)
		}
	}
	for name, tt := range map[string]struct {
		see    func(r *rig, p *peer)
		theirs int64
		want   int64
	}{
		"nothing":           {func(*rig, *peer) {}, 0, 0},
		"nothing by us":     {func(*rig, *peer) {}, 50, 50},
		"an answer":         {func(r *rig, p *peer) { answer(r, p, reply(ownXid(1), 77, 0, "/a")) }, 50, 77},
		"theirs is newer":   {func(r *rig, p *peer) { answer(r, p, reply(ownXid(1), 77, 0, "/a")) }, 78, 78},
		"a refusal":         {func(r *rig, p *peer) { answer(r, p, reply(ownXid(1), 77, -101)) }, 50, 77},
		"a malformed one":   {func(r *rig, p *peer) { answer(r, p, reply(ownXid(1), 77, 0)) }, 50, 77},
		"a large one":       {func(r *rig, p *peer) { answer(r, p, reply(ownXid(1), 77, 0, make([]byte, 1<<20))) }, 50, 77},
		"older behind":      {func(r *rig, p *peer) { p.write(reply(5, 90, 0)); answer(r, p, reply(ownXid(1), 77, 0, "/a")) }, 50, 90},
		"a pong":            {func(_ *rig, p *peer) { p.write(reply(-2, 77, 0)) }, 50, 50}, // it shows nothing of the tree
		"an event has none": {func(_ *rig, p *peer) { p.write(reply(-1, -1, 0, 1, 3, "/a")) }, 50, 50},
		"an event is early": {func(_ *rig, p *peer) { p.write(reply(-1, 99, 0, 1, 3, "/a")) }, 50, 50},
		"given up": {func(r *rig, p *peer) {
			ctx, cancel := context.WithTimeout(r.t.Context(), time.Second)
			defer cancel()
			x := asked(wire.OpDelete, "/a")
			go p.expect(request(1, x))
			if err := r.link.Do(ctx, x); !errors.Is(err, context.DeadlineExceeded) {
				r.t.Errorf("Do = %v", err)
			}
			p.write(reply(ownXid(1), 77, 0))
		}, 50, 77},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, func(cfg *wire.Config) { cfg.MaxReply = 1000 })
			c, p := r.establish()
			r.view(c)
			tt.see(r, p)
			synctest.Wait()
			if got := r.reconnect(c, tt.theirs); got != tt.want {
				t.Errorf("%s: the request says %d, want %d", name, got, tt.want)
			}
			// It is remembered over several connections.
			if got := r.reconnect(c, 0); got != tt.want && tt.theirs < tt.want {
				t.Errorf("%s: the next request says %d, want %d", name, got, tt.want)
			}
			r.wantAlive()
		})
	}
}
