package proxy_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/docent-go/docent/integration/proxy"
	"github.com/docent-go/docent/internal/zoodefs"
)

// wireFrame builds a frame of int32, int64, bool, string and []byte fields.
func wireFrame(fields ...any) []byte {
	var b bytes.Buffer
	b.Write(make([]byte, 4))
	for _, f := range fields {
		switch v := f.(type) {
		case int:
			_ = binary.Write(&b, binary.BigEndian, int32(v))
		case int64:
			_ = binary.Write(&b, binary.BigEndian, v)
		case bool:
			_ = binary.Write(&b, binary.BigEndian, v)
		case string:
			_ = binary.Write(&b, binary.BigEndian, int32(len(v)))
			b.WriteString(v)
		}
	}
	frame := b.Bytes()
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
	return frame
}

const (
	anyoneSchema = "world"
	anyone       = "anyone"
)

func createFrame(xid int, path string) []byte {
	return wireFrame(xid, int(zoodefs.OpCreate), path, "data", 1, 31, anyoneSchema, anyone, 0)
}

func TestProxyParsesRequests(t *testing.T) {
	for _, c := range []struct {
		name  string
		frame []byte
		want  proxy.Request
	}{
		{"create", createFrame(7, "/a"), proxy.Request{Xid: 7, Op: zoodefs.OpCreate, Path: "/a"}},
		{"get with watch", wireFrame(8, 4, "/a", true), proxy.Request{Xid: 8, Op: zoodefs.OpGetData, Path: "/a", Watch: true}},
		{"get", wireFrame(8, 4, "/a", false), proxy.Request{Xid: 8, Op: zoodefs.OpGetData, Path: "/a"}},
		{"ping", wireFrame(-2, 11), proxy.Request{Xid: -2, Op: zoodefs.OpPing}},
		{"multi", wireFrame(9, 14,
			13, false, -1, "/c", 3,
			1, false, -1, "/d", "data", 1, 31, anyoneSchema, anyone, 0,
			5, false, -1, "/e", "data", 1,
			21, false, -1, "/f", "data", 1, 31, anyoneSchema, anyone, 5, int64(1000),
			2, false, -1, "/g", 1,
			-1, true, -1), proxy.Request{Xid: 9, Op: zoodefs.OpMulti, Parts: []proxy.Part{
			{zoodefs.OpCheck, "/c"},
			{zoodefs.OpCreate, "/d"},
			{zoodefs.OpSetData, "/e"},
			{zoodefs.OpCreateTTL, "/f"},
			{zoodefs.OpDelete, "/g"},
		}}},
		{"truncated", wireFrame(9, 4, "/a")[:14], proxy.Request{Xid: 9, Op: zoodefs.OpGetData}},
		{"empty", wireFrame(), proxy.Request{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := proxy.ParseRequest(c.frame)
			if got.Xid != c.want.Xid || got.Op != c.want.Op || got.Path != c.want.Path || got.Watch != c.want.Watch {
				t.Fatalf("got %+v, want %+v", got, c.want)
			}
			if len(got.Parts) != len(c.want.Parts) {
				t.Fatalf("parts %v, want %v", got.Parts, c.want.Parts)
			}
			for i, p := range got.Parts {
				if p != c.want.Parts[i] {
					t.Fatalf("parts %v, want %v", got.Parts, c.want.Parts)
				}
			}
		})
	}
}

// FuzzProxyParse holds that no frame, however broken, harms the proxy.
func FuzzProxyParse(f *testing.F) {
	f.Add(createFrame(1, "/a"))
	f.Add(wireFrame(9, 14, 13, false, -1, "/c", 3, -1, true, -1))
	f.Add(wireFrame(9, 14, 1, false, -1, "/c", "", 1<<30))
	f.Add(wireFrame())
	f.Fuzz(func(_ *testing.T, frame []byte) {
		if len(frame) < 4 {
			return
		}
		_ = proxy.ParseRequest(frame)
		_ = proxy.ParseConnect(frame)
		_ = proxy.ParseConnected(frame)
		_ = proxy.ParseReply(frame)
		_ = proxy.MadePath(frame)
	})
}
