package wire_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/wire"
)

// replyOps are the operations whose replies have a body to decode.
var replyOps = []wire.Op{
	wire.OpCreate, wire.OpDelete, wire.OpExists, wire.OpGetData, wire.OpSetData, wire.OpGetACL, wire.OpSetACL,
	wire.OpSync, wire.OpGetChildren, wire.OpMulti, wire.OpCreateContainer, wire.OpCreateTTL,
}

// unknownOps are the operations that go-zookeeper does not know.
var unknownOps = []wire.Op{
	wire.OpAddWatch, wire.OpRemoveWatches, wire.OpCreate2, wire.OpReconfig, wire.OpGetEphemerals, wire.OpCountNodes, wire.OpWhoAmI,
}

// asZK is the reply to op that go-zookeeper decodes from the script's body.
func asZK(conn *zk.Conn, op wire.Op) (r wire.Reply, err error) {
	stat := &zk.Stat{}
	switch op {
	case wire.OpCreate:
		r.Path, err = conn.Create("/a", nil, 0, nil)
	case wire.OpCreateContainer:
		r.Path, err = conn.CreateContainer("/a", nil, zk.FlagContainer, nil)
	case wire.OpCreateTTL:
		r.Path, err = conn.CreateTTL("/a", nil, zk.FlagTTL, nil, 1)
	case wire.OpSync:
		r.Path, err = conn.Sync("/a")
	case wire.OpDelete:
		err = conn.Delete("/a", -1)
	case wire.OpExists:
		_, stat, err = conn.Exists("/a")
	case wire.OpSetData:
		stat, err = conn.Set("/a", nil, -1)
	case wire.OpSetACL:
		stat, err = conn.SetACL("/a", nil, -1)
	case wire.OpGetData:
		r.Data, stat, err = conn.Get("/a")
	case wire.OpGetACL:
		r.ACL, stat, err = conn.GetACL("/a")
	case wire.OpGetChildren:
		r.Names, stat, err = conn.Children("/a")
	case wire.OpMulti:
		var parts []zk.MultiResponse
		parts, err = conn.Multi()
		for _, p := range parts {
			one := wire.Result{Path: p.String, Stat: p.Stat}
			if p.Error != nil {
				one.Code = -1 // its number is lost
				err = nil     // that of the first
			}
			r.Parts = append(r.Parts, one)
		}
	}
	if err == nil {
		r.Stat = *stat
	}
	return r, err
}

// wantAgreement compares what is decoded from the same body.
func wantAgreement(t *testing.T, op wire.Op, b []byte, own, theirs wire.Reply) {
	t.Helper()
	own.Parts = slices.Clone(own.Parts)
	for i := range own.Parts {
		if own.Parts[i].Code != 0 {
			own.Parts[i].Code = -1
		}
	}
	own.Zxid = 0
	if op == wire.OpCreateContainer || op == wire.OpCreateTTL { // go-zookeeper leaves it in the body
		own.Stat = zk.Stat{}
	}
	if fmt.Sprintf("%#v", flat(own)) != fmt.Sprintf("%#v", flat(theirs)) {
		t.Errorf("op %d, body %.200x: %.300v, go-zookeeper reads %.300v", op, b, flat(own), flat(theirs))
	}
}

func FuzzReply(f *testing.F) {
	for i, op := range replyOps {
		for _, m := range malformed() {
			if m.op == op {
				f.Add(i, m.body)
			}
		}
	}
	stat := statBytes()
	f.Add(0, body("/a"))
	f.Add(2, stat)
	f.Add(3, body("data", stat))
	f.Add(5, body(2, 31, "world", "anyone", 1, "", "", stat))
	f.Add(8, body(3, "a", "", "ccc", stat))
	f.Add(9, body(slices.Concat([]any{1, false, -1, "/a", 5, false, -1, stat}, checked, failedPart(-101), partsEnd)...))
	f.Add(10, body("/a", stat))
	f.Add(12, body(0))
	f.Add(13, body())
	r, s := newRig(f), &script{}
	conn, _ := connect(f, r, s)
	if _, _, err := conn.Get("/"); err != nil { // now its loops have their buffers
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, which int, original []byte) {
		ops := slices.Concat(replyOps, unknownOps)
		op := ops[uint(which)%uint(len(ops))]
		b := bytes.Clone(original)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		own, err := wire.Decode(op, b)
		runtime.ReadMemStats(&after)
		if got, most := after.TotalAlloc-before.TotalAlloc, uint64(40*len(b)+64<<10); got > most {
			t.Errorf("allocated %d bytes for a body of %d", got, len(b))
		}
		if !bytes.Equal(b, original) {
			t.Error("the body was changed")
		}
		if err != nil {
			if !errors.Is(err, wire.ErrProtocol) {
				t.Errorf("error %v", err)
			}
			return
		}
		if slices.Contains(unknownOps, op) {
			return
		}
		null := []byte{0xff, 0xff, 0xff, 0xff}
		if (op == wire.OpGetChildren || op == wire.OpGetACL) && bytes.HasPrefix(b, null) {
			return // go-zookeeper would run out of memory
		}
		s.mu.Lock()
		s.body = append([]byte{}, b...)
		s.mu.Unlock()
		clear(b) // what was decoded is a copy
		theirs, err := asZK(conn, op)
		if err != nil {
			if !bytes.Contains(original, null) { // a null string, which go-zookeeper does not know
				t.Errorf("op %d, body %x: go-zookeeper: %v", op, original, err)
			}
			return
		}
		wantAgreement(t, op, original, own, theirs)
	})
}

// bodyOf is a random body of a reply to op.
func (g *generator) bodyOf(op wire.Op) []byte {
	stat := make([]byte, 68)
	for i := range stat {
		stat[i] = byte(g.Uint32())
	}
	var all []any
	switch op {
	case wire.OpCreate, wire.OpSync:
		return body(g.text(30))
	case wire.OpCreateContainer, wire.OpCreateTTL:
		return body(g.text(30), stat)
	case wire.OpExists, wire.OpSetData, wire.OpSetACL:
		return stat
	case wire.OpGetData:
		all = []any{string(g.data())}
	case wire.OpGetACL:
		acl := g.acl()
		all = append(all, len(acl))
		for _, a := range acl {
			all = append(all, int(a.Perms), a.Scheme, a.ID)
		}
	case wire.OpGetChildren:
		n := g.IntN(30)
		all = append(all, n)
		for range n {
			all = append(all, g.text(30))
		}
	case wire.OpMulti:
		for range g.IntN(10) {
			all = append(all, [][]any{
				{1, false, 0, g.text(30)}, {5, false, 0, stat}, checked, {2, false, 0}, failedPart(0), failedPart(-101 - g.IntN(9)),
			}[g.IntN(6)]...)
		}
		return body(append(all, partsEnd...)...)
	}
	return body(append(all, stat)...)
}

// Every answer that a server may give is read as go-zookeeper reads it.
func TestDecodersAgreeWithGoZookeeper(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := &generator{rand.New(rand.NewPCG(3, 3))}
		r, s := newRig(t), &script{}
		conn, _ := connect(t, r, s)
		for range 100 {
			for _, op := range replyOps {
				b := append([]byte{}, g.bodyOf(op)...)
				s.mu.Lock()
				s.body = b
				s.mu.Unlock()
				x := asked(op, "/a")
				if err := r.link.Do(t.Context(), x); err != nil || x.Err() != nil {
					t.Fatalf("op %d, body %x: %v, %v", op, b, err, x.Err())
				}
				theirs, err := asZK(conn, op)
				if err != nil {
					t.Fatalf("op %d, body %x: go-zookeeper: %v", op, b, err)
				}
				wantAgreement(t, op, b, x.Reply, theirs)
			}
		}
	})
}
