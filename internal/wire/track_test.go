package wire_test

import (
	"bytes"
	"net"
	"testing"

	"github.com/docent-go/docent/internal/wire"
)

func left(c *wire.Create) bool {
	select {
	case <-c.Leaving():
		return true
	default:
		return false
	}
}

func wantCreate(t *testing.T, when string, c *wire.Create, sent bool, zxid int64) {
	t.Helper()
	got, ok := c.Zxid()
	if c.Sent() != sent || left(c) != sent || got != zxid || ok != (zxid != 0) {
		t.Errorf("%s: sent %v, leaving %v, zxid %d %v; want %v, %d", when, c.Sent(), left(c), got, ok, sent, zxid)
	}
}

func TestTrackCreate(t *testing.T) {
	t.Parallel()
	for _, op := range []int{1, 15, 19, 21} {
		r := newRig(t)
		c, p := r.establish()
		first, second, other := r.link.TrackCreate("/a"), r.link.TrackCreate("/a"), r.link.TrackCreate("/a/b")
		defer other.Forget()
		create := func(xid int) []byte { return frame(xid, op, "/a", "data", 0, 0) }
		r.exchange(c, p, frame(1, 2, "/a", -1), reply(1, 3, 0)) // a delete
		r.exchange(c, p, frame(2, op, "/ab", "data"), reply(2, 3, 0))
		r.exchange(c, p, frame(3, op, 99), reply(3, 3, 0)) // a path that does not fit
		r.exchange(c, p, frame(3, op), reply(3, 3, 0))     // none at all
		wantCreate(t, "before", first, false, 0)
		r.exchange(c, p, create(4), reply(4, 77, 0, "/a"))
		wantCreate(t, "created", first, true, 77)
		wantCreate(t, "created", second, false, 0)
		r.exchange(c, p, create(5), reply(5, 78, -110))
		wantCreate(t, "refused", second, true, 0)
		r.exchange(c, p, create(6), reply(6, 79, 0))
		wantCreate(t, "later", first, true, 77)
		wantCreate(t, "other", other, false, 0)
		first.Forget()
		first.Forget()
		wantCreate(t, "forgotten", first, true, 77)
	}
}

// A transaction is followed if it begins with the create, and only then.
func TestTrackCreateInMulti(t *testing.T) {
	t.Parallel()
	for _, op := range []int{1, 15} {
		r := newRig(t)
		c, p := r.establish()
		tracked := r.link.TrackCreate("/a")
		part := func(op int, path string) []byte { return frame(op, false, -1, path)[4:] }
		r.exchange(c, p, frame(1, 14, part(2, "/a"), part(op, "/a")), reply(1, 3, 0)) // a delete first
		r.exchange(c, p, frame(2, 14, part(op, "/ab")), reply(2, 3, 0))
		r.exchange(c, p, frame(3, 14, op, false), reply(3, 3, 0)) // no part that fits
		r.exchange(c, p, frame(4, 14, op, false, -1, 99), reply(4, 3, 0))
		r.exchange(c, p, frame(5, 14), reply(5, 3, 0))
		wantCreate(t, "before", tracked, false, 0)
		r.exchange(c, p, frame(6, 14, part(op, "/a"), part(2, "/b")), reply(6, 77, 0))
		wantCreate(t, "created", tracked, true, 77)
	}
}

func TestTrackCreateForget(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c, p := r.establish()
	first, second := r.link.TrackCreate("/a"), r.link.TrackCreate("/a")
	first.Forget()
	r.exchange(c, p, frame(1, 1, "/a"), reply(1, 5, 0))
	wantCreate(t, "forgotten", first, false, 0)
	wantCreate(t, "kept", second, true, 5)
}

// What leaves while the peer does not read has left, as far as anyone knows.
func TestTrackCreateLeavesBeforeTheWrite(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c, p := r.establish()
	create := r.link.TrackCreate("/a")
	done := make(chan error, 1)
	go func() {
		_, err := c.Write(frame(1, 1, "/a"))
		done <- err
	}()
	<-create.Leaving() // net.Pipe blocks the Write until somebody reads
	_ = p.conn.Close()
	if err := <-done; err == nil {
		t.Error("Write succeeded")
	}
	wantCreate(t, "lost", create, true, 0)

	// An interest outlives the connection if nothing left on it.
	kept := r.link.TrackCreate("/b")
	c, p = r.establish()
	r.exchange(c, p, frame(1, 1, "/b"), reply(1, 6, 0))
	wantCreate(t, "next connection", kept, true, 6)
	wantCreate(t, "old xid", create, true, 0)
}

func TestTrackCreateNotSent(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(cfg *wire.Config) { cfg.MaxRequest = 50 })
	c, _ := r.establish()
	create := r.link.TrackCreate("/a")
	if _, err := c.Write(frame(1, 1, "/a", make([]byte, 50))); err == nil {
		t.Error("Write succeeded")
	}
	wantCreate(t, "too large", create, false, 0)
}

func TestArmWatch(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		kind wire.WatchKind
		op   int
	}{{wire.DataWatch, 4}, {wire.ExistsWatch, 3}, {wire.ChildWatch, 12}} {
		r := newRig(t)
		c, p := r.establish()
		disarm := r.link.ArmWatch(tt.kind, "/a")
		second := r.link.ArmWatch(tt.kind, "/a")
		xid := 0
		// sends writes one request and checks what arrives.
		sends := func(when string, request []byte, flagged bool) {
			t.Helper()
			want := bytes.Clone(request)
			if flagged {
				want[len(want)-1] = 1
			}
			before := bytes.Clone(request)
			go func() { _, _ = c.Write(request) }()
			if got, err := p.next(); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s: server received %x, %v; want %x", when, got, err, want)
			}
			if !bytes.Equal(request, before) {
				t.Errorf("%s: Write changed its argument", when)
			}
		}
		read := func(op int, path string) []byte { xid++; return frame(xid, op, path, false) }
		sends("other path", read(tt.op, "/ab"), false)
		for _, op := range []int{3, 4, 8, 12} {
			if op != tt.op {
				sends("other kind", read(op, "/a"), false)
			}
		}
		sends("no flag", frame(50, tt.op, "/a"), false)
		sends("more than a flag", frame(51, tt.op, "/a", 0), false)
		sends("armed", read(tt.op, "/a"), true)
		sends("still armed", read(tt.op, "/a"), true)
		disarm()
		sends("armed by another", read(tt.op, "/a"), true)
		_ = c.Close()
		c, p = r.establish()
		sends("on the next connection", read(tt.op, "/a"), true)
		second()
		sends("disarmed", read(tt.op, "/a"), false)
	}
}

// A mark that is set while nothing is connected waits for the next connection.
func TestArmWatchBeforeConnecting(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.link.ArmWatch(wire.DataWatch, "/a")
	c, p := r.establish()
	go func(c net.Conn) { _, _ = c.Write(frame(1, 4, "/a", false)) }(c)
	p.expect(frame(1, 4, "/a", true))
}
