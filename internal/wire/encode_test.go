package wire_test

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/wire"
)

// encoded is a request and what to call of go-zookeeper for the same.
type encoded struct {
	request wire.Request
	ask     func(*zk.Conn)
}

// encodings are requests of every operation. Go-zookeeper sends null for nil
// data, and is given empty data instead.
func encodings(path string, data []byte, acl []zk.ACL, flags, version int32, ttl int64, parts []wire.Request) []encoded {
	some := append([]byte{}, data...)
	read := func(op wire.Op, watch bool, ask func(*zk.Conn)) encoded {
		return encoded{wire.Request{Op: op, Path: path, Watch: watch}, ask}
	}
	create := func(op wire.Op, flags int32, ttl int64, ask func(*zk.Conn)) encoded {
		return encoded{wire.Request{Op: op, Path: path, Data: data, ACL: acl, Flags: flags, TTL: ttl}, ask}
	}
	span := time.Duration(ttl) * time.Millisecond
	return []encoded{
		create(wire.OpCreate, flags, 0, func(c *zk.Conn) { _, _ = c.Create(path, some, flags, acl) }),
		create(wire.OpCreateContainer, zk.FlagContainer, 0, func(c *zk.Conn) { _, _ = c.CreateContainer(path, some, zk.FlagContainer, acl) }),
		create(wire.OpCreateTTL, zk.FlagTTL, ttl, func(c *zk.Conn) { _, _ = c.CreateTTL(path, some, zk.FlagTTL, acl, span) }),
		create(wire.OpCreateTTL, zk.FlagPersistentSequentialWithTTL, ttl, func(c *zk.Conn) {
			_, _ = c.CreateTTL(path, some, zk.FlagPersistentSequentialWithTTL, acl, span)
		}),
		{wire.Request{Op: wire.OpDelete, Path: path, Version: version}, func(c *zk.Conn) { _ = c.Delete(path, version) }},
		{wire.Request{Op: wire.OpSetData, Path: path, Data: data, Version: version}, func(c *zk.Conn) { _, _ = c.Set(path, some, version) }},
		{wire.Request{Op: wire.OpSetACL, Path: path, ACL: acl, Version: version}, func(c *zk.Conn) { _, _ = c.SetACL(path, acl, version) }},
		read(wire.OpExists, false, func(c *zk.Conn) { _, _, _ = c.Exists(path) }),
		read(wire.OpExists, true, func(c *zk.Conn) { _, _, _, _ = c.ExistsW(path) }),
		read(wire.OpGetData, false, func(c *zk.Conn) { _, _, _ = c.Get(path) }),
		read(wire.OpGetData, true, func(c *zk.Conn) { _, _, _, _ = c.GetW(path) }),
		read(wire.OpGetChildren, false, func(c *zk.Conn) { _, _, _ = c.Children(path) }),
		read(wire.OpGetChildren, true, func(c *zk.Conn) { _, _, _, _ = c.ChildrenW(path) }),
		read(wire.OpGetACL, false, func(c *zk.Conn) { _, _, _ = c.GetACL(path) }),
		read(wire.OpSync, false, func(c *zk.Conn) { _, _ = c.Sync(path) }),
		{wire.Request{Op: wire.OpMulti, Parts: parts}, func(c *zk.Conn) { _, _ = c.Multi(partsOf(parts)...) }},
	}
}

// partsOf are the parts of a transaction as go-zookeeper takes them.
func partsOf(parts []wire.Request) (all []any) {
	for _, p := range parts {
		switch p.Op {
		case wire.OpCreate:
			all = append(all, &zk.CreateRequest{Path: p.Path, Data: append([]byte{}, p.Data...), Acl: p.ACL, Flags: p.Flags})
		case wire.OpSetData:
			all = append(all, &zk.SetDataRequest{Path: p.Path, Data: append([]byte{}, p.Data...), Version: p.Version})
		case wire.OpDelete:
			all = append(all, &zk.DeleteRequest{Path: p.Path, Version: p.Version})
		case wire.OpCheck:
			all = append(all, &zk.CheckVersionRequest{Path: p.Path, Version: p.Version})
		}
	}
	return all
}

// wantSame sends the request both ways and compares the frames, but for the xid.
func wantSame(t *testing.T, r *rig, s *script, conn *zk.Conn, e encoded) {
	t.Helper()
	s.mu.Lock()
	s.seen = s.seen[:0]
	s.mu.Unlock()
	e.ask(conn)
	x := &wire.Exchange{Request: e.request}
	if err := r.link.Do(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.seen) != 2 {
		t.Fatalf("op %d, %.100q: %d requests arrived, want one of each", e.request.Op, e.request.Path, len(s.seen))
	}
	theirs, own := s.seen[0], s.seen[1]
	if !bytes.Equal(theirs[:4], own[:4]) || !bytes.Equal(theirs[8:], own[8:]) {
		t.Errorf("op %d: sent %.200x, go-zookeeper sends %.200x", e.request.Op, own, theirs)
	}
	if body := wire.Encode(e.request); !bytes.Equal(body, own[12:]) {
		t.Errorf("op %d: body %.200x", e.request.Op, body)
	}
}

// Every request leaves as the bytes that go-zookeeper would send.
func TestEncodersAgreeWithGoZookeeper(t *testing.T) {
	t.Parallel()
	world, digest := zk.WorldACL(zk.PermAll), zk.DigestACL(zk.PermRead, "user", "secret")
	part := func(op wire.Op, version int32) wire.Request {
		return wire.Request{Op: op, Path: "/p", Version: version}
	}
	node := wire.Request{Op: wire.OpCreate, Path: "/n", Data: []byte("data"), ACL: digest, Flags: zk.FlagEphemeral}
	for name, all := range map[string][]encoded{
		"plain":       encodings("/a", []byte("data"), world, 0, -1, 1, []wire.Request{node}),
		"nil":         encodings("/a", nil, nil, zk.FlagSequence, 0, 1<<40, nil),
		"empty":       encodings("/", []byte{}, []zk.ACL{}, zk.FlagEphemeral, math.MaxInt32, 1000, []wire.Request{{Op: wire.OpSetData}, {Op: wire.OpCreate}}),
		"odd":         encodings("/ä/世界/x", []byte{0, 255}, append(world, digest...), 3, math.MinInt32, 60_000, []wire.Request{part(wire.OpCheck, -1), part(wire.OpDelete, 7), part(wire.OpSetData, 0), node}),
		"large":       encodings("/"+strings.Repeat("p", 10_000), make([]byte, 1_000_000), world, 0, 1, 1, []wire.Request{{Op: wire.OpSetData, Path: "/a", Data: make([]byte, 1_000_000)}}),
		"long lists":  encodings("/a", nil, bytesOfACL(1000), 0, 1, 1, manyParts(5000)),
		"odd in acl":  encodings("/a", nil, []zk.ACL{{Perms: -1, Scheme: "", ID: "\x00ü"}, {}}, 0, 1, 1, nil),
		"multi paths": encodings("/a", nil, nil, 0, 1, 1, []wire.Request{{Op: wire.OpCheck, Path: ""}, {Op: wire.OpCheck, Path: "no slash\x00"}, {Op: wire.OpDelete, Path: "//"}}),
	} {
		synctest.Test(t, func(t *testing.T) {
			t.Log(name)
			r, s := newRig(t), &script{refuse: -101}
			conn, _ := connect(t, r, s)
			for _, e := range all {
				wantSame(t, r, s, conn, e)
			}
		})
	}
}

func bytesOfACL(n int) (acl []zk.ACL) {
	for i := range n {
		acl = append(acl, zk.ACL{Perms: int32(i), Scheme: "digest", ID: fmt.Sprint("user", i)})
	}
	return acl
}

func manyParts(n int) (parts []wire.Request) {
	for i := range n {
		parts = append(parts, wire.Request{Op: wire.OpCheck, Path: fmt.Sprint("/", i), Version: -1})
	}
	return parts
}

func TestEncodersAgreeWithGoZookeeperAtRandom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := &generator{rand.New(rand.NewPCG(7, 7))}
		r, s := newRig(t), &script{refuse: -101}
		conn, _ := connect(t, r, s)
		for range 100 {
			var parts []wire.Request
			for range g.IntN(5) {
				op := []wire.Op{wire.OpCreate, wire.OpSetData, wire.OpDelete, wire.OpCheck}[g.IntN(4)]
				parts = append(parts, wire.Request{Op: op, Path: g.path(), Data: g.data(), ACL: g.acl(), Flags: int32(g.Uint32()), Version: int32(g.Uint32())})
			}
			for _, e := range encodings(g.path(), g.data(), g.acl(), g.Int32N(4), int32(g.Uint32()), g.Int64N(1<<42), parts) {
				wantSame(t, r, s, conn, e)
			}
		}
	})
}

// generator draws the fields of requests and replies.
type generator struct{ *rand.Rand }

func (g *generator) text(n int) string {
	letters := []rune("abcXYZ019-_ .:äß世界\U0001f512")
	var b strings.Builder
	for range g.IntN(n) {
		b.WriteRune(letters[g.IntN(len(letters))])
	}
	return b.String()
}

// path is one that go-zookeeper lets through.
func (g *generator) path() string {
	var b strings.Builder
	for range g.IntN(4) {
		b.WriteString("/x" + g.text(20))
	}
	return cmp.Or(b.String(), "/")
}

func (g *generator) data() []byte {
	switch g.IntN(4) {
	case 0:
		return nil
	case 1:
		return []byte{}
	}
	b := make([]byte, g.IntN(300))
	for i := range b {
		b[i] = byte(g.Uint32())
	}
	return b
}

func (g *generator) acl() (acl []zk.ACL) {
	for range g.IntN(4) {
		acl = append(acl, zk.ACL{Perms: int32(g.Uint32()), Scheme: g.text(10), ID: g.text(40)})
	}
	return acl
}

// The close of the session is the same as well.
func TestCloseAgreesWithGoZookeeper(t *testing.T) {
	t.Parallel()
	var frames [2][]byte
	for i := range frames {
		synctest.Test(t, func(t *testing.T) {
			r, s := newRig(t), &script{}
			conn, _ := connect(t, r, s)
			if i == 0 {
				conn.Close()
			} else if err := r.link.CloseSession(t.Context()); err != nil {
				t.Error(err)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			frames[i] = s.seen[len(s.seen)-1]
		})
	}
	if !bytes.Equal(frames[0][:4], frames[1][:4]) || !bytes.Equal(frames[0][8:], frames[1][8:]) {
		t.Errorf("sent %x, go-zookeeper sends %x", frames[1], frames[0])
	}
	if body := wire.Encode(wire.Request{Op: wire.CloseOp}); len(body) != 0 {
		t.Errorf("body %x", body)
	}
}

// What go-zookeeper cannot send leaves as Java's client sends it.
func TestEncodersOfOwn(t *testing.T) {
	t.Parallel()
	acl := zk.WorldACL(zk.PermAll)
	for name, tt := range map[string]struct {
		request wire.Request
		want    []byte
	}{
		"create2":    {wire.Request{Op: wire.OpCreate2, Path: "/a", Data: []byte("d"), ACL: acl, Flags: 2}, body("/a", "d", 1, 31, "world", "anyone", 2)},
		"who":        {wire.Request{Op: wire.OpWhoAmI}, nil},
		"ephemerals": {wire.Request{Op: wire.OpGetEphemerals, Path: "/a"}, body("/a")},
		"count":      {wire.Request{Op: wire.OpCountNodes, Path: "/a"}, body("/a")},
		"leaving":    {wire.Request{Op: wire.OpReconfig, Change: &wire.Reconfig{Leaving: "2", Version: -1}}, slices.Concat(body(-1, "2", -1), bytes.Repeat([]byte{255}, 8))},
		"members":    {wire.Request{Op: wire.OpReconfig, Change: &wire.Reconfig{Members: "server.1=a", Version: 1}}, slices.Concat(body(-1, -1, "server.1=a"), []byte{0, 0, 0, 0, 0, 0, 0, 1})},
		"parts":      {wire.Request{Op: wire.OpMulti, Parts: []wire.Request{{Op: wire.OpCreateContainer, Path: "/a", Flags: 4}}}, body(19, false, -1, "/a", 0, 0, 4, -1, true, -1)},
	} {
		if got := wire.Encode(tt.request); !bytes.Equal(got, tt.want) {
			t.Errorf("%s: %x, want %x", name, got, tt.want)
		}
	}
}

// A lone check stops servers (ZOOKEEPER-2623), so it does not leave, and nor does what is sent
// together with it.
func TestNoLoneCheck(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, s := newRig(t), &script{}
		connect(t, r, s)
		xs := []*wire.Exchange{
			{Request: wire.Request{Op: wire.OpGetData, Path: "/a"}},
			{Request: wire.Request{Op: wire.OpCheck, Path: "/a", Version: -1}},
		}
		err := r.link.Do(t.Context(), xs...)
		s.mu.Lock()
		defer s.mu.Unlock()
		if err == nil || xs[0].Sent() || xs[1].Sent() || len(s.seen) != 0 {
			t.Errorf("%v, and %d requests arrived", err, len(s.seen))
		}
	})
}
