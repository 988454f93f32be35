package zkserver_test

import (
	"encoding/binary"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/docent-go/docent/zktest"
)

// fuzzLimit is jute.maxbuffer of the server of FuzzFrames.
const fuzzLimit = 1 << 16

// FuzzFrames sends a client's bytes as they come, with and without a proper
// handshake before them. The server must close the connection for a length out of
// range, answer in whole frames, and serve others meanwhile. When its client
// closes the connection, in the middle of a frame too, the server must let go of
// it.
func FuzzFrames(f *testing.F) {
	f.Add([]byte("ruok"), false)
	f.Add([]byte{0xff, 0xff, 0xff, 0xff}, true)
	f.Add([]byte{0, 0, 0, 0}, true)
	f.Add([]byte{0, 0, 0, 9, 1}, true)
	f.Add([]byte{0x7f, 0xff, 0xff, 0xff, 1, 2, 3}, false)
	for _, m := range malformedFirst() {
		f.Add(m.bytes, false)
	}
	for _, m := range malformedLater() {
		f.Add(m.bytes, true)
	}
	g := &gen{r: rand.New(rand.NewPCG(1, 2)), base: "/f"}
	for range 200 {
		if s := g.step(); s.op > 0 {
			p := append(body(int32(1), s.op), s.payload...)
			f.Add(append(body(int32(len(p))), p...), true)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, greet bool) {
		bubble(t, func(t *testing.T, srv *zktest.Server) {
			if err := srv.Create("/f", nil); err != nil {
				t.Fatal(err)
			}
			bad := memoryConn(t, srv.Client("bad"))
			if greet {
				if err := bad.handshake(0, 30_000, 0, nil16()); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := bad.Write(data); err != nil {
				t.Fatal(err)
			}
			good := memory(t, srv.Client("good"))
			must(t, good, 1, create("/good"), 0)
			a := must(t, good, 3, body("/good", true), 0)
			if len(a.body) != 68 {
				t.Errorf("stat of %d bytes", len(a.body))
			}
			must(t, good, 11, nil, 0)
			end := drain(t, bad, greet)
			if lengthOutOfRange(data, greet) && end != "closed" {
				t.Errorf("%s after a length out of range", end)
			}
			_ = bad.Close()
			time.Sleep(time.Second)
			if n := srv.ConnCount(); n != 1 {
				t.Errorf("%d connections, want only the good one", n)
			}
		}, zktest.WithSeed(1), zktest.WithExtendedTypes(), zktest.WithMaxFrame(fuzzLimit))
	})
}

// drain reads what the server has sent, which in a session is whole replies. It
// returns how that ends: with the end of the stream, or with nothing more to
// come.
func drain(t *testing.T, c *raw, greet bool) string {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(time.Second))
	if !greet {
		_, err := io.Copy(io.Discard, c)
		if err == nil {
			return "closed"
		}
		return kindOfError(err)
	}
	for {
		_, err := c.receive()
		switch kind := kindOfError(err); kind {
		case "ok":
		case "closed", "timeout":
			return kind
		default:
			t.Fatalf("reply: %v", err)
		}
	}
}

// lengthOutOfRange reports data that comes to a frame whose length is out of range,
// or too short for what must be in it.
func lengthOutOfRange(data []byte, greet bool) bool {
	least := 28 // up to the password's length
	if greet {
		least = 8 // xid and type
	}
	for len(data) >= 4 {
		n := int32(binary.BigEndian.Uint32(data))
		data = data[4:]
		if n < 0 || n > fuzzLimit {
			return true
		}
		if int(n) > len(data) {
			return false
		}
		if int(n) < least {
			return true
		}
		data, least = data[n:], 8
	}
	return false
}

// FuzzHandshake varies the fields of the first frame.
func FuzzHandshake(f *testing.F) {
	f.Add(int32(0), int64(0), int32(30_000), int64(0), nil16(), true)
	f.Add(int32(7), int64(-1), int32(-5), int64(1), []byte{}, false)
	f.Fuzz(func(t *testing.T, proto int32, zxid int64, timeout int32, session int64, password []byte, readOnly bool) {
		srv := zktest.NewServer(t, zktest.WithSeed(1))
		c := memoryConn(t, srv.Client("a"))
		_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
		if err := c.writeFrame(body(proto, zxid, timeout, session, password, readOnly)); err != nil {
			t.Fatal(err)
		}
		p, err := c.readFrame()
		if err != nil {
			if kindOfError(err) != "closed" {
				t.Fatalf("neither answered nor closed: %v", err)
			}
			return
		}
		d := dec{b: p}
		d.int()
		if got := d.int(); got != 0 && (got < 4000 || got > 40_000) {
			t.Errorf("timeout %d is not clamped", got)
		}
	})
}
