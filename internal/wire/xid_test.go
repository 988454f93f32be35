package wire_test

import (
	"testing"
	"testing/synctest"

	"github.com/docent-go/docent/internal/wire"
)

// The xid of an exchange never has another meaning, is never one of
// go-zookeeper's, and is never in use. That holds also where the numbers begin
// again.
func TestOwnXids(t *testing.T) {
	t.Parallel()
	for _, before := range []int64{0, 1<<28 - 4, 1<<29 - 4, 1<<31 - 4, 1<<31 + 1<<28 - 4, 1<<32 - 4} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			c, p := r.establish()
			seen := r.view(c)
			wire.CountXids(r.link, before)
			used := map[int32]bool{}
			for range 8 {
				x := asked(wire.OpSync, "/a")
				done := r.do(t.Context(), x)
				b, err := p.next()
				if err != nil {
					t.Fatal(err)
				}
				xid := int32(uint32(b[4])<<24 | uint32(b[5])<<16 | uint32(b[6])<<8 | uint32(b[7]))
				if used[xid] || xid >= -8 || !wire.OwnXid(xid) {
					t.Errorf("after %d requests: xid %#x, used before: %v", before, xid, used[xid])
				}
				used[xid] = true
				go p.write(reply(int(xid), 5, 0, "/a"))
				synctest.Wait()
				select {
				case err := <-done:
					if err != nil || x.Reply.Path != "/a" {
						t.Errorf("Do = %v, %+v", err, x.Reply)
					}
				default:
					t.Errorf("the answer to xid %#x did not arrive", xid)
				}
			}
			seen.want(t)
		})
	}
	for _, xid := range []int32{-1, -2, -4, -8, 0, 1, 1<<31 - 1, -0x444f4354, -0x10000000, -1 << 31} {
		if wire.OwnXid(xid) {
			t.Errorf("%#x is an exchange's", xid)
		}
	}
}

// A request of go-zookeeper's with an xid that is an exchange's does not get
// between the exchange and its answer.
func TestForeignRequestWithAnOwnXid(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		c, p := r.establish()
		seen := r.view(c)
		x := asked(wire.OpSync, "/a")
		done := r.do(t.Context(), x)
		p.expect(request(1, x))
		for n := 1; n <= 2; n++ {
			go func() { _, _ = c.Write(frame(ownXid(n), 9, "/b")) }()
			p.expect(frame(ownXid(n), 9, "/b"))
		}
		p.write(reply(ownXid(1), 5, 0, "/a"))
		if err := <-done; err != nil || x.Reply.Path != "/a" {
			t.Errorf("Do = %v, %+v", err, x.Reply)
		}
		next := asked(wire.OpSync, "/c")
		done = r.do(t.Context(), next)
		p.expect(request(2, next))
		p.write(reply(ownXid(2), 5, 0, "/c"))
		if err := <-done; err != nil || next.Reply.Path != "/c" {
			t.Errorf("Do = %v, %+v", err, next.Reply)
		}
		seen.want(t)
	})
}
