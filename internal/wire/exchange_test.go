package wire_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/internal/wire"
)

// writes is a connection that notes what each Write was given.
type writes struct {
	net.Conn
	mu  sync.Mutex
	all [][]byte
}

func (w *writes) Write(p []byte) (int, error) {
	w.mu.Lock()
	w.all = append(w.all, bytes.Clone(p))
	w.mu.Unlock()
	return w.Conn.Write(p)
}

// noting makes the connections of a rig note their writes; the newest is in w.
func noting(w **writes) func(*wire.Config) {
	return func(cfg *wire.Config) {
		dial := cfg.Dial
		cfg.Dial = func(ctx context.Context, server string) (net.Conn, error) {
			nc, err := dial(ctx, server)
			*w = &writes{Conn: nc}
			return *w, err
		}
	}
}

// The requests of one Do leave in one write and in their order. Each reply goes
// to its exchange with its zxid, and go-zookeeper sees none of it.
func TestDoSendsInOneWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var w *writes
		r := newRig(t, noting(&w))
		c, p := r.establish()
		seen := r.view(c)
		create, list, sync, gone := asked(wire.OpCreate, "/d/a"), asked(wire.OpGetChildren, "/d"), asked(wire.OpSync, "/d"), asked(wire.OpGetData, "/x")
		create.Request.Data, list.Request.Watch = bytes.Repeat([]byte("x"), 100<<10), true
		xs := []*wire.Exchange{create, list, sync, gone}
		w.all = nil
		go func() {
			for i, x := range xs {
				p.expect(request(i+1, x))
			}
			p.write(reply(ownXid(1), 11, 0, "/d/a"))
			p.write(reply(-1, -1, 0, 4, 3, "/d"))
			p.write(reply(ownXid(2), 12, 0, 2, "a", "b", make([]byte, 68)))
			p.write(reply(ownXid(3), 12, 0, "/d"))
			time.Sleep(time.Second)
			p.write(reply(ownXid(4), 13, -101))
		}()
		begun := time.Now()
		if err := r.link.Do(t.Context(), xs...); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took != time.Second {
			t.Errorf("Do took %v, want as long as its last answer", took)
		}
		seen.want(t, reply(-1, -1, 0, 4, 3, "/d"))
		if want := bytes.Join([][]byte{request(1, create), request(2, list), request(3, sync), request(4, gone)}, nil); len(w.all) != 1 || !bytes.Equal(w.all[0], want) {
			t.Errorf("%d writes", len(w.all))
		}
		for i, want := range []wire.Reply{
			{Zxid: 11, Path: "/d/a"}, {Zxid: 12, Names: []string{"a", "b"}}, {Zxid: 12, Path: "/d"}, {Zxid: 13, Code: -101},
		} {
			if got := xs[i].Reply; fmt.Sprint(got) != fmt.Sprint(want) || xs[i].Err() != nil {
				t.Errorf("reply %d: %+v, %v; want %+v", i, got, xs[i].Err(), want)
			}
			wantFate(t, "answered", xs[i], true, true)
		}
	})
}

// Requests of one Do stay together, also when so many wait that they need
// several writes. On a socket, whose writes cost, several Dos share one.
func TestQueuedRequestsKeepTheirOrder(t *testing.T) {
	t.Parallel()
	t.Run("socket", func(t *testing.T) { t.Parallel(); queuedInOrder(t, true, 4, 8) })
	t.Run("other", func(t *testing.T) { t.Parallel(); queuedInOrder(t, false, 31, 31) })
}

func queuedInOrder(t *testing.T, socket bool, least, most int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var w *writes
		r := newRig(t, noting(&w))
		c, p := r.establish()
		r.view(c)
		if socket {
			wire.TakeForSocket(r.link)
		}
		w.all = nil
		go func() { _, _ = c.Write(frame(1, 9, "/")) }() // holds the others up
		synctest.Wait()
		var all []<-chan error
		var want [][]byte
		for range 30 {
			xs := make([]*wire.Exchange, 3)
			for j := range xs {
				xs[j] = asked(wire.OpSetData, fmt.Sprintf("/%02d", len(want)))
				xs[j].Request.Data = make([]byte, 3000)
				want = append(want, request(len(want)+1, xs[j]))
			}
			all = append(all, r.do(t.Context(), xs...))
			synctest.Wait()
		}
		p.expect(frame(1, 9, "/"))
		for i := range want {
			p.expect(want[i])
		}
		for i := range want {
			p.write(reply(ownXid(i+1), 5, 0, make([]byte, 68)))
		}
		for _, done := range all {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if len(w.all) < least || len(w.all) > most {
			t.Errorf("%d writes for 270 KiB", len(w.all))
		}
		rest := bytes.Join(want, nil)
		for i, one := range w.all[1:] {
			if !bytes.HasPrefix(rest, one) || len(one)%(3*len(want[0])) != 0 {
				t.Errorf("write %d of %d bytes tears requests apart or swaps them", i, len(one))
			}
			rest = rest[min(len(one), len(rest)):]
		}
	})
}

// Whatever is given up, and whatever go-zookeeper asks in between, each answer
// goes to the request it belongs to.
func TestRepliesGoToTheirExchange(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 1))
			r := newRig(t)
			c, p := r.establish()
			seen := r.view(c)
			type call struct {
				xs     []*wire.Exchange
				done   <-chan error
				cancel context.CancelFunc
				gone   bool
			}
			var calls []*call
			var answers, raw [][]byte
			go func() {
				for n := 0; ; n++ {
					b, err := p.next()
					if err != nil {
						return
					}
					xid := int(int32(uint32(b[4])<<24 | uint32(b[5])<<16 | uint32(b[6])<<8 | uint32(b[7])))
					path := string(b[16 : len(b)-1]) // of a getData
					answers = append(answers, reply(xid, int64(n), 0, "data of "+path, make([]byte, 68)))
				}
			}()
			n := 0
			for range 30 {
				if rnd.IntN(4) == 0 {
					n++
					if _, err := c.Write(frame(n, 4, fmt.Sprintf("/raw%d", n), false)); err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
					raw = append(raw, answers[len(answers)-1])
					continue
				}
				k := &call{}
				for range 1 + rnd.IntN(3) {
					k.xs = append(k.xs, asked(wire.OpGetData, fmt.Sprintf("/%d.%d", len(calls), len(k.xs))))
				}
				ctx, cancel := context.WithCancel(t.Context())
				k.cancel, k.done = cancel, r.do(ctx, k.xs...)
				calls = append(calls, k)
				synctest.Wait()
			}
			for _, k := range calls {
				if rnd.IntN(3) == 0 {
					k.cancel()
					k.gone = true
					if err := <-k.done; !errors.Is(err, context.Canceled) {
						t.Errorf("Do = %v", err)
					}
				}
			}
			for _, a := range answers {
				p.write(a)
			}
			seen.want(t, raw...)
			for _, k := range calls {
				if !k.gone {
					if err := <-k.done; err != nil {
						t.Errorf("Do = %v", err)
					}
				}
				for _, x := range k.xs {
					wantFate(t, x.Request.Path, x, true, !k.gone)
					if want := "data of " + x.Request.Path; !k.gone && string(x.Reply.Data) != want || k.gone && x.Reply.Data != nil {
						t.Errorf("%s was answered with %q, given up %v", x.Request.Path, x.Reply.Data, k.gone)
					}
				}
				k.cancel()
			}
			r.wantPending("afterwards", 0, 0)
			r.wantCalls("up")
		})
	}
}

// An answer that no request can have, or a second answer, goes nowhere.
func TestUnknownReplies(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		c, p := r.establish()
		seen := r.view(c)
		x := asked(wire.OpSync, "/a")
		go func() {
			p.expect(request(1, x))
			for _, n := range []int{2, 1, 1, 77} {
				p.write(reply(ownXid(n), int64(n), 0, "/"+fmt.Sprint(n)))
			}
			p.write(reply(9, 9, 0))
		}()
		if err := r.link.Do(t.Context(), x); err != nil || x.Reply.Path != "/1" {
			t.Errorf("Do = %v, %+v", err, x.Reply)
		}
		seen.want(t, reply(9, 9, 0))
		if x.Reply.Path != "/1" || x.Reply.Zxid != 1 {
			t.Errorf("the reply has become %+v", x.Reply)
		}
		r.wantAlive()
	})
}
