package wire_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/internal/wire"
)

// If its context ends while a request waits to be written, it is never sent,
// whichever writer holds the connection up. What is sent later is not mixed up
// with it.
func TestGivenUpInTheQueueIsNeverSent(t *testing.T) {
	t.Parallel()
	for name, hold := range map[string]func(r *rig, c net.Conn) (first [][]byte){
		"behind go-zookeeper": func(_ *rig, c net.Conn) [][]byte {
			go func() { _, _ = c.Write(frame(1, 9, "/raw")) }()
			return [][]byte{frame(1, 9, "/raw")}
		},
		"behind other requests": func(r *rig, _ net.Conn) [][]byte {
			r.do(r.t.Context(), asked(wire.OpSync, "/other"))
			return [][]byte{request(1, asked(wire.OpSync, "/other"))}
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			c, p := r.establish()
			r.view(c)
			want := hold(r, c)
			n := len(want)
			if name == "behind go-zookeeper" {
				n = 0
			}
			synctest.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			gone := []*wire.Exchange{asked(wire.OpDelete, "/gone"), asked(wire.OpDelete, "/gone")}
			gone[1].Keep = true
			done := r.do(ctx, gone...)
			synctest.Wait()
			kept := []*wire.Exchange{asked(wire.OpSync, "/kept"), asked(wire.OpExists, "/kept")}
			answer := r.do(t.Context(), kept...)
			if err := <-done; !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: Do = %v", name, err)
			}
			for _, x := range gone {
				wantFate(t, name, x, false, false)
				x.AwaitAnswer(t.Context()) // nothing to wait for
			}
			for i, x := range kept {
				want = append(want, request(n+i+1, x))
			}
			for _, f := range want {
				p.expect(f)
			}
			p.write(reply(ownXid(n+1), 5, 0, "/"))
			p.write(reply(ownXid(n+2), 5, -101))
			if err := <-answer; err != nil {
				t.Errorf("%s: Do = %v", name, err)
			}
			if b, err := nextWithin(p, time.Minute); err == nil {
				t.Errorf("%s: server received %x", name, b)
			}
			r.wantCalls("up")
		})
	}
}

// nextWithin is the next frame if one begins in that time.
func nextWithin(p *peer, d time.Duration) ([]byte, error) {
	_ = p.conn.SetReadDeadline(time.Now().Add(d))
	defer func() { _ = p.conn.SetReadDeadline(time.Time{}) }()
	return p.next()
}

// An answer to a request that was given up after it had left goes nowhere. It
// reaches neither go-zookeeper, nor another exchange, nor the one given up.
func TestGivenUpAfterItLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(cfg *wire.Config) { cfg.MaxReply = 1000 })
		c, p := r.establish()
		seen := r.view(c)
		for n := 1; n < 40; n += 2 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			x := asked(wire.OpGetData, "/gone")
			go p.expect(request(n, x))
			if err := r.link.Do(ctx, x); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Do = %v", err)
			}
			cancel()
			wantFate(t, "given up", x, true, false)
			late := [][]byte{
				reply(ownXid(n), 5, 0, "late", make([]byte, 68)),
				reply(ownXid(n), 5, 0, 99), // malformed
				reply(ownXid(n), 5, -101),
				reply(ownXid(n), 5, 0, make([]byte, 100_000)),
			}[n/2%4]
			next := asked(wire.OpGetData, "/next")
			done := r.do(t.Context(), next)
			p.expect(request(n+1, next))
			p.write(late)
			p.write(reply(ownXid(n+1), 6, 0, "mine", make([]byte, 68)))
			if err := <-done; err != nil || string(next.Reply.Data) != "mine" {
				t.Errorf("Do = %v, %+v", err, next.Reply)
			}
			wantFate(t, "after its answer", x, true, false)
			if x.Reply.Zxid != 0 || x.Reply.Data != nil || x.Err() != nil {
				t.Errorf("the answer came to %+v, %v", x.Reply, x.Err())
			}
		}
		seen.want(t)
		r.wantPending("afterwards", 0, 0)
		r.wantCalls("up")
	})
}

// A peer that answers nothing costs the caller's time, and nothing that stays.
func TestGivenUpLeavesNothing(t *testing.T) { //nolint:paralleltest // counts goroutines and memory of the process
	const many, size = 10_000, 1000
	for _, reading := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			c, p := r.establish()
			r.view(c)
			if reading {
				go p.swallowAll()
			}
			synctest.Wait()
			var before, after runtime.MemStats
			goroutines := runtime.NumGoroutine()
			runtime.GC()
			runtime.ReadMemStats(&before)
			left := make(chan error, many)
			for range many / 100 {
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				for range 100 {
					go func() {
						x := asked(wire.OpSetData, "/a")
						x.Request.Data = make([]byte, size)
						left <- r.link.Do(ctx, x)
					}()
				}
				<-ctx.Done()
				cancel()
			}
			for range many {
				if err := <-left; !errors.Is(err, context.DeadlineExceeded) {
					t.Fatalf("Do = %v", err)
				}
			}
			synctest.Wait()
			r.wantPending(fmt.Sprint("reading ", reading), 0, 0)
			runtime.GC()
			runtime.ReadMemStats(&after)
			if got := int64(after.HeapAlloc) - int64(before.HeapAlloc); got > many*size/10 {
				t.Errorf("%d bytes stay of %d requests that were given up", got, many)
			}
			if got := runtime.NumGoroutine() - goroutines; got > 1 { // the one that writes
				t.Errorf("%d goroutines stay", got)
			}
			r.wantCalls("up")
		})
	}
}

// The bytes of a request belong to the caller again once Do has returned.
func TestDataIsTheCallersAfterDo(t *testing.T) {
	t.Parallel()
	for _, left := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			c, p := r.establish()
			r.view(c)
			if !left {
				go func() { _, _ = c.Write(frame(1, 9, "/raw")) }()
				synctest.Wait()
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			x := asked(wire.OpSetData, "/a")
			x.Request.Data = bytes.Repeat([]byte("mine"), 1000)
			want := request(1, x)
			kept := asked(wire.OpSetData, "/b")
			kept.Request.Data = []byte("kept")
			done := r.do(ctx, x)
			synctest.Wait()
			answer := r.do(t.Context(), kept)
			if err := <-done; !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Do = %v", err)
			}
			copy(x.Request.Data, bytes.Repeat([]byte("another"), 1000)) // as from a pool
			wantFate(t, "given up", x, left, false)
			n := 1
			if left {
				p.expect(want)
				n = 2
			} else {
				p.expect(frame(1, 9, "/raw"))
			}
			p.expect(request(n, kept))
			p.write(reply(ownXid(n), 5, 0, make([]byte, 68)))
			if err := <-answer; err != nil {
				t.Error(err)
			}
		})
	}
}
