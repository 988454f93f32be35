package wire_test

import (
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/internal/wire"
)

// The deadline that go-zookeeper sets for its next frame does not run out while
// answers to exchanges arrive. It does not matter whether callers still wait for
// them. When the answers cease, the deadline runs out one span after the last.
func TestReadDeadlineIsProlonged(t *testing.T) {
	t.Parallel()
	for _, awaited := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			const span = 4 * time.Second
			r := newRig(t)
			c, p := r.establish()
			if err := c.SetReadDeadline(time.Now().Add(span)); err != nil {
				t.Fatal(err)
			}
			seen := r.view(c)
			for n := range 20 {
				time.Sleep(time.Second)
				if !awaited {
					p.write(reply(ownXid(1000+n), 5, 0, "/a"))
					continue
				}
				x := asked(wire.OpSync, "/a")
				done := r.do(t.Context(), x)
				p.expect(request(n+1, x))
				p.write(reply(ownXid(n+1), 5, 0, "/a"))
				if err := <-done; err != nil {
					t.Fatal(err)
				}
			}
			last := time.Now()
			r.wantCalls("up")
			p.swallowAll() // until the connection ends
			synctest.Wait()
			if took := time.Since(last); took < span*7/8 || took > span {
				t.Errorf("the connection ended %v after the last answer, want about %v", took, span)
			}
			if !errors.Is(seen.err, os.ErrDeadlineExceeded) {
				t.Errorf("Read = %v", seen.err)
			}
			r.wantCalls("up", "down")
		})
	}
}

// Where go-zookeeper has set no deadline, or taken it back, there is none.
func TestReadWithoutADeadline(t *testing.T) {
	t.Parallel()
	for _, set := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			c, p := r.establish()
			if set {
				_ = c.SetReadDeadline(time.Now().Add(time.Second))
				_ = c.SetReadDeadline(time.Time{})
			}
			seen := r.view(c)
			time.Sleep(time.Minute)
			p.write(reply(ownXid(7), 5, 0))
			time.Sleep(time.Hour)
			p.write(reply(1, 5, 0))
			seen.want(t, reply(1, 5, 0))
			r.wantCalls("up")
		})
	}
}
