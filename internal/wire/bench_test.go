package wire_test

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"testing"
)

// echo answers every request at once, out of a buffer.
type echo struct {
	tape
	out    []byte
	answer []byte
}

func (e *echo) Write(p []byte) (int, error) {
	if e.answer == nil {
		e.answer = connectResponse(sessionID, timeout)
		e.out = e.answer
		return len(p), nil
	}
	copy(e.answer[4:8], p[4:8])
	e.out = e.answer
	return len(p), nil
}

func (e *echo) Read(p []byte) (int, error) {
	n := copy(p, e.out)
	e.out = e.out[n:]
	return n, nil
}

// exchanges returns a connection on which each call of step is one request and
// its reply, read as go-zookeeper does.
func exchanges(tb testing.TB, request []byte, body int) (step func()) {
	e := &echo{}
	_, c := onTape(tb, e)
	buf := make([]byte, 4096)
	if n, err := c.Read(buf); n != 40 || err != nil {
		tb.Fatalf("handshake: %d, %v", n, err)
	}
	e.answer = reply(0, 5, 0, make([]byte, body))
	ping := int32(binary.BigEndian.Uint32(request[4:])) == -2
	xid := uint32(0)
	return func() {
		if !ping {
			xid++
			binary.BigEndian.PutUint32(request[4:], xid)
		}
		if _, err := c.Write(request); err != nil {
			tb.Fatal(err)
		}
		for want := len(e.answer); want > 0; {
			k := want
			if want == len(e.answer) {
				k = 4
			}
			n, err := c.Read(buf[:k])
			if err != nil {
				tb.Fatal(err)
			}
			want -= n
		}
	}
}

func BenchmarkExchange(b *testing.B) {
	for _, bb := range []struct {
		name    string
		request []byte
	}{
		{"ping", frame(-2, 11)},
		{"getData", frame(1, 4, "/locks/orders/lock-0000000001", false)},
		{"create", frame(1, 1, "/locks/orders/lock-", make([]byte, 100), 0, 0)},
	} {
		for _, body := range []int{0, 900} {
			b.Run(fmt.Sprintf("%s/reply=%d", bb.name, body), func(b *testing.B) {
				step := exchanges(b, bb.request, body)
				b.ReportAllocs()
				for b.Loop() {
					step()
				}
			})
		}
	}
}

func TestFramesDoNotAllocate(t *testing.T) { //nolint:paralleltest // counts the allocations of the process
	for _, request := range [][]byte{frame(-2, 11), frame(1, 4, "/a", false), frame(1, 1, "/a")} {
		step := exchanges(t, request, 100)
		for range 100 {
			step()
		}
		if got := testing.AllocsPerRun(1000, step); got > 0 {
			t.Errorf("request %x: %v allocations", request, got)
		}
	}
}

// What a connection remembers of requests is bounded by the requests that are not
// answered.
func TestAnsweredRequestsAreForgotten(t *testing.T) { //nolint:paralleltest // measures the memory of the process
	for _, request := range [][]byte{frame(-2, 11), frame(1, 4, "/a", false)} {
		e := &echo{}
		_, c := onTape(t, e)
		buf := make([]byte, 64)
		if n, err := c.Read(buf); n != 40 || err != nil {
			t.Fatalf("handshake: %d, %v", n, err)
		}
		e.answer = reply(0, 5, 0)
		// One more is always on its way, so no queue ever runs empty.
		if _, err := c.Write(frame(-2, 11)); err != nil {
			t.Fatal(err)
		}
		ping := int32(binary.BigEndian.Uint32(request[4:])) == -2
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for xid := range uint32(100_000) {
			if !ping {
				binary.BigEndian.PutUint32(request[4:], xid+1)
			}
			if _, err := c.Write(request); err != nil {
				t.Fatal(err)
			}
			if n, err := c.Read(buf); n != 20 || err != nil {
				t.Fatalf("Read = %d, %v", n, err)
			}
		}
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > 64<<10 {
			t.Errorf("request %x: allocated %d bytes", request, got)
		}
	}
}
