package wire_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/wire"
)

// events collects what a Link reports.
type events struct {
	mu  sync.Mutex
	all []wire.Event
}

func (e *events) config(c *wire.Config) {
	c.OnEvent = func(ev wire.Event) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.all = append(e.all, ev)
	}
}

// Requests that change watches, as the fields stand in zookeeper.jute.
func TestWatchRequests(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		request wire.Request
		want    string
	}{
		"persistent": {wire.Request{Op: wire.OpAddWatch, Path: "/a", Flags: wire.WatchPersistent}, "\x00\x00\x00\x02/a\x00\x00\x00\x00"},
		"recursive":  {wire.Request{Op: wire.OpAddWatch, Path: "/", Flags: wire.WatchRecursive}, "\x00\x00\x00\x01/\x00\x00\x00\x01"},
		"children":   {wire.Request{Op: wire.OpRemoveWatches, Path: "/a", Flags: wire.RemoveChildren}, "\x00\x00\x00\x02/a\x00\x00\x00\x01"},
		"data":       {wire.Request{Op: wire.OpRemoveWatches, Path: "/ä", Flags: wire.RemoveData}, "\x00\x00\x00\x03/ä\x00\x00\x00\x02"},
		"any":        {wire.Request{Op: wire.OpRemoveWatches, Path: "/a", Flags: wire.RemoveAny}, "\x00\x00\x00\x02/a\x00\x00\x00\x03"},
	} {
		if got := string(wire.Encode(tt.request)); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
	if wire.OpAddWatch != 106 || wire.OpRemoveWatches != 18 {
		t.Error("ZooDefs.OpCode has other numbers")
	}
	for body, want := range map[string]struct {
		code int32
		err  error
	}{
		"": {}, "\x00\x00\x00\x00": {}, "\xff\xff\xff\xfa": {code: -6}, "\x00": {err: wire.ErrProtocol},
	} {
		if r, err := wire.Decode(wire.OpAddWatch, []byte(body)); r.Code != want.code || !errors.Is(err, want.err) {
			t.Errorf("answer %q: code %d, %v", body, r.Code, err)
		}
	}
}

// A notification is reported before go-zookeeper gets it, whatever its size, and
// in the order of the answers around it.
func TestEvents(t *testing.T) {
	t.Parallel()
	for name, path := range map[string]string{"short": "/a", "long": "/" + strings.Repeat("p", 100_000)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				e := &events{}
				r := newRig(t, e.config)
				c, p := r.establish()
				seen := r.view(c)
				first, second := reply(-1, 0x42, 0, 3, 3, path), reply(-1, -1, 0, 2, 5, path)
				x := asked(wire.OpSync, "/a")
				done := r.do(t.Context(), x)
				p.expect(request(1, x))
				p.write(first)
				p.write(reply(ownXid(1), 9, 0, "/a"))
				p.write(second)
				p.write(reply(1, 9, 0))
				if err := <-done; err != nil {
					t.Error(err)
				}
				seen.want(t, first, second, reply(1, 9, 0))
				want := []wire.Event{
					{Type: zk.EventNodeDataChanged, State: zk.StateSyncConnected, Path: path, Zxid: 0x42},
					{Type: zk.EventNodeDeleted, State: 5, Path: path, Zxid: -1, After: 9},
				}
				if len(e.all) != 2 || e.all[0] != want[0] || e.all[1] != want[1] {
					t.Errorf("events %.200v", e.all)
				}
			})
		})
	}
}

// A notification that is none costs the connection.
func TestMalformedEvent(t *testing.T) {
	t.Parallel()
	for name, body := range map[string][]any{
		"empty": nil, "cut": {3, 3}, "negative": {3, 3, -2}, "long": {3, 3, 1 << 30}, "cut path": {3, 3, 5, []byte("/a")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				e := &events{}
				r := newRig(t, e.config)
				c, p := r.establish()
				seen := r.view(c)
				p.write(reply(-1, -1, 0, body...))
				seen.want(t)
				if len(r.downs) != 1 || !errors.Is(r.downs[0], wire.ErrProtocol) || len(e.all) != 0 {
					t.Errorf("lost because of %v; events %v", r.downs, e.all)
				}
			})
		})
	}
}

func FuzzEvent(f *testing.F) {
	f.Add(int64(-1), body(3, 3, "/a"))
	f.Add(int64(7), body(-1, 0, -1))
	f.Add(int64(7), body(1, 1, 1<<30))
	f.Fuzz(func(t *testing.T, zxid int64, b []byte) {
		ev, err := wire.DecodeEvent(zxid, b)
		switch {
		case err != nil && !errors.Is(err, wire.ErrProtocol):
			t.Error(err)
		case err == nil && (ev.Zxid != zxid || len(ev.Path) > len(b)-12 && ev.Path != ""):
			t.Errorf("%x: %+v", b, ev)
		}
	})
}
