package wire_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"runtime"
	"runtime/metrics"
	"testing"

	"github.com/docent-go/docent/internal/wire"
)

func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// wantFrugal catches an allocation of the size that a bad length promises. The
// bound is wide because the fuzzing engine allocates in the same process;
// TestPromisedLengthIsNotAllocated is exact.
func wantFrugal(t *testing.T, before uint64) {
	t.Helper()
	if got := allocated() - before; got > 64<<20 {
		t.Errorf("allocated %d bytes", got)
	}
}

// A frame that is within the limit but does not arrive costs what arrived.
func TestPromisedLengthIsNotAllocated(t *testing.T) { //nolint:paralleltest // measures the memory of the process
	const most = 8 << 20
	promise := frame(make([]byte, most))[:24]
	nc := &tape{play: append(connectResponse(sessionID, timeout), promise...), piece: 4096}
	_, c := onTape(t, nc, func(cfg *wire.Config) { cfg.MaxRequest, cfg.MaxReply = most, most })
	buf := make([]byte, 64)
	if n, err := c.Read(buf); n != 40 || err != nil {
		t.Fatalf("handshake: %d, %v", n, err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if n, err := c.Read(buf); n != len(promise) || err != nil {
		t.Errorf("Read = %d, %v", n, err)
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 64<<10 {
		t.Errorf("allocated %d bytes for %d that arrived", got, len(promise))
	}
}

// notifies reports whether a frame is a whole notification that can be read: type,
// state and path.
func notifies(f []byte) bool {
	const path = 28 // behind the length, the header, the type and the state
	if size := 4 + int(binary.BigEndian.Uint32(f)); len(f) < size || len(f) < path+4 {
		return false
	}
	n := int32(binary.BigEndian.Uint32(f[path:]))
	return n >= -1 && int(n) <= len(f)-path-4
}

// delivered is what go-zookeeper may read of a server's bytes after the
// handshake. The Link swallows the answers to auths requests of setAuth. It also
// swallows the answers to exchanges, which no caller awaits, however long they
// are.
func delivered(in []byte, auths int) (out []byte) {
	for len(in) > 0 {
		f, _, ok := cutFrame(in, 16, math.MaxInt32)
		if !ok || len(f) < 20 {
			return out
		}
		xid := int32(binary.BigEndian.Uint32(f[4:]))
		switch long := binary.BigEndian.Uint32(f) > 1000; {
		case wire.OwnXid(xid):
		case long, xid == -1 && !notifies(f):
			return out
		case xid == -4 && auths > 0:
			auths--
			if binary.BigEndian.Uint32(f[16:]) != 0 {
				return out
			}
		default:
			out = append(out, f...)
		}
		in = in[len(f):]
	}
	return out
}

func FuzzServerBytes(f *testing.F) {
	f.Add(true, []byte{}, 1, 4)
	f.Add(true, bytes.Join([][]byte{reply(-4, 0, 0), reply(1, 2, 0, "body"), reply(-1, -1, 0, 1, 3, "/a"), reply(-4, 0, -115), reply(2, 3, 0)}, nil), 3, 4)
	f.Add(true, bytes.Join([][]byte{reply(-2, 0, 0), reply(-4, 0, 0), reply(-4, 0, 0), reply(-4, 0, 0), frame(1)}, nil), 1000, 1)
	f.Add(true, []byte{0, 0, 3, 0xe8, 0, 0}, 2, 2)
	f.Add(true, bytes.Join([][]byte{reply(ownXid(1), 2, 0, "body"), reply(1, 2, 0), reply(ownXid(2), 3, -112), reply(ownXid(3), 3, 0, make([]byte, 2000)), reply(2, 3, 0)}, nil), 3, 4)
	f.Add(true, reply(ownXid(1), 2, 0, "body")[:22], 1, 4)
	f.Add(true, append(reply(-1, -1, 0, 1, 3, "/a"), reply(-1, -1, 0, 1, 3, "/ab")[:30]...), 5, 4)
	f.Add(true, append(reply(-1, 7, 0, 1, 3, "/a"), reply(-1, -1, 0, 1, 3, 9)...), 5, 4)
	f.Add(false, connectResponse(sessionID, timeout), 2, 100)
	f.Add(false, connectResponse(0, 0), 7, 100)
	f.Add(false, frame(0, 6000, sessionID, -1), 7, 100)
	f.Add(false, []byte{0xff, 0xff, 0xff, 0xff, 0}, 7, 100)
	f.Fuzz(func(t *testing.T, shaken bool, in []byte, piece, read int) {
		before := allocated()
		hello := connectResponse(sessionID, timeout)
		var want []byte
		if shaken {
			want = append(bytes.Clone(hello), delivered(in, 2)...)
			in = append(bytes.Clone(hello), in...)
		}
		nc := &tape{play: in, piece: 1 + piece&0xfff}
		l, c := onTape(t, nc, withAuth("a", "b", "c", "d"))
		var got []byte
		buf := make([]byte, 1+read&0xfff)
		for {
			n, err := c.Read(buf)
			got = append(got, buf[:n]...)
			if err != nil {
				break
			}
		}
		if shaken && !bytes.Equal(got, want) {
			t.Errorf("delivered %x, want %x", got, want)
		}
		if !shaken && len(got) > 0 && (l.SessionID() == 0 || !bytes.HasPrefix(in, got[:min(len(got), 24)])) {
			t.Errorf("delivered %x without a session", got)
		}
		l.End(nil)
		wantFrugal(t, before)
	})
}

// leaving is what may reach the server of the client's bytes after the
// handshake.
func leaving(in []byte) (out []byte, valid bool) {
	for len(in) > 0 {
		f, whole, ok := cutFrame(in, 8, 1000)
		if !ok {
			return out, false
		}
		if !whole {
			return out, false
		}
		out = append(out, f...)
		in = in[len(f):]
	}
	return out, true
}

func FuzzClientBytes(f *testing.F) {
	f.Add([]byte{})
	f.Add(bytes.Join([][]byte{frame(1, 4, "/a", false), frame(2, 1, "/a", "data", 0, 0), frame(-2, 11), frame(3, 4, "/a", false)}, nil))
	f.Add(bytes.Join([][]byte{frame(-1, 1), frame(-4, 100, 0, "a", "b"), frame(1, 4, -1), frame(1, 1, 1<<30)}, nil))
	f.Add([]byte{0, 0, 3, 0xe8, 0, 0, 0, 1})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	f.Add(frame(1))
	f.Fuzz(func(t *testing.T, in []byte) {
		before := allocated()
		nc := &tape{play: connectResponse(sessionID, timeout), piece: 4096}
		l, c := onTape(t, nc)
		if n, err := c.Read(make([]byte, 64)); n != 40 || err != nil {
			t.Fatalf("handshake: %d, %v", n, err)
		}
		nc.record.Reset()
		want, valid := leaving(in)
		passed := bytes.Clone(in)
		n, err := c.Write(passed)
		if (err == nil) != valid || n != len(want) {
			t.Errorf("Write = %d, %v; want %d, valid %v", n, err, len(want), valid)
		}
		if !bytes.Equal(passed, in) {
			t.Error("Write changed its argument")
		}
		if got := nc.record.Bytes(); !bytes.Equal(got, want) {
			t.Errorf("left %x, want %x", got, want)
		}
		l.End(nil)
		wantFrugal(t, before)
	})
}
