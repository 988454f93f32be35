package wire_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/docent-go/docent/internal/wire"
)

// Every way to cut the server's bytes in two, and every size of Read, delivers
// the same bytes.
func TestReadSplit(t *testing.T) {
	t.Parallel()
	want := bytes.Join([][]byte{reply(1, 5, 0, "abc"), reply(-1, -1, 0, 1, 3, "/a"), reply(2, 6, -101)}, nil)
	in := bytes.Join([][]byte{reply(-4, 0, 0), want[:27], reply(-4, 0, 0, "body"), want[27:]}, nil)
	for cut := range in {
		r := newRig(t, withAuth("a", "b", "c", "d"))
		c, p := r.dial()
		answer := connectResponse(sessionID, timeout)
		go func() {
			_, _ = p.next()
			p.write(answer)
			_, _ = p.next()
			_, _ = p.next()
			p.write(in[:cut])
			p.write(in[cut:])
			_ = p.conn.Close()
		}()
		_, _ = c.Write(connectRequest(0))
		r.wantRead(c, answer)
		var got []byte
		buf := make([]byte, 1+cut%9)
		for {
			n, err := c.Read(buf)
			got = append(got, buf[:n]...)
			if err != nil {
				if !errors.Is(err, io.EOF) {
					t.Errorf("cut %d: %v, want EOF", cut, err)
				}
				break
			}
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("cut %d: read %x, want %x", cut, got, want)
		}
		r.wantCalls("up", "down")
		r.wantAlive()
	}
}

func TestReadEndsWithinFrame(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c, p := r.establish()
	go func() {
		p.write(reply(1, 1, 0)[:7])
		_ = p.conn.Close()
	}()
	if n, err := c.Read(make([]byte, 4)); n != 0 || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("Read = %d, %v", n, err)
	}
}

// However the client cuts its bytes, whole frames leave.
func TestWriteSplit(t *testing.T) {
	t.Parallel()
	frames := [][]byte{connectRequest(0), frame(1, 9, "/a"), frame(-2, 11), frame(2, 1, "/b", "data", 0, 0)}
	rest := bytes.Join(frames[1:], nil)
	for size := 1; size <= len(rest); size++ {
		r := newRig(t)
		c, p := r.dial()
		got := make(chan []byte, 1)
		go func() {
			p.expect(frames[0])
			p.write(connectResponse(sessionID, timeout))
			b, _ := io.ReadAll(p.conn)
			got <- b
		}()
		write := func(b []byte) {
			for len(b) > 0 {
				k := min(size, len(b))
				if n, err := c.Write(b[:k]); n != k || err != nil {
					t.Fatalf("Write = %d, %v", n, err)
				}
				b = b[k:]
			}
		}
		write(frames[0])
		r.wantRead(c, connectResponse(sessionID, timeout))
		write(rest)
		_ = c.Close()
		if b := <-got; !bytes.Equal(b, rest) {
			t.Fatalf("chunks of %d: server received %x, want %x", size, b, rest)
		}
	}
}

func TestRequestSize(t *testing.T) {
	t.Parallel()
	const limit = 100
	small := func(cfg *wire.Config) { cfg.MaxRequest = limit }
	whole := func(n int) []byte { return frame(1, 9, make([]byte, n-8)) }
	for _, tt := range []struct {
		name  string
		first []byte
		want  error
	}{
		{"too large", whole(limit + 1), wire.ErrFrameTooLarge},
		{"too large, length only", whole(limit + 1)[:4], wire.ErrFrameTooLarge},
		{"negative", []byte{0x80, 0, 0, 0}, wire.ErrFrameTooLarge},
		{"too short", frame(1), wire.ErrProtocol},
	} {
		r := newRig(t, small)
		c, p := r.establish()
		r.exchange(c, p, whole(limit), reply(1, 1, 0)) // just fits
		got := make(chan []byte, 1)
		go func() {
			b, _ := io.ReadAll(p.conn)
			got <- b
		}()
		n, err := c.Write(tt.first)
		if n != 0 || !errors.Is(err, tt.want) {
			t.Errorf("%s: Write = %d, %v", tt.name, n, err)
		}
		if b := <-got; len(b) != 0 {
			t.Errorf("%s: server received %x", tt.name, b)
		}
		r.wantAlive()
		r.wantCalls("up", "down")
		if !errors.Is(r.downs[0], tt.want) {
			t.Errorf("%s: OnDown(%v)", tt.name, r.downs[0])
		}
	}
	r := newRig(t)
	c, _ := r.establish()
	_, err := c.Write(whole(0x100000))
	for _, part := range []string{"1048576", "1048575", "jute.maxbuffer"} {
		if !strings.Contains(fmt.Sprint(err), part) {
			t.Errorf("%v does not mention %s", err, part)
		}
	}
}

func TestReplySize(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		answer []byte
		want   error
	}{
		{"too large", frame(1, int64(1), 0, make([]byte, 85)), wire.ErrFrameTooLarge},
		{"negative", []byte{0xff, 0xff, 0xff, 0xff}, wire.ErrFrameTooLarge},
		{"too short", frame(1, int64(1), []byte{0, 0, 0}), wire.ErrProtocol},
		{"empty", frame(), wire.ErrProtocol},
	} {
		r := newRig(t, func(cfg *wire.Config) { cfg.MaxReply = 100 })
		c, p := r.establish()
		r.exchange(c, p, frame(1, 9, "/"), frame(1, int64(1), 0, make([]byte, 84)))
		go func() { _, _ = p.conn.Write(tt.answer) }()
		if n, err := c.Read(make([]byte, 64)); n != 0 || !errors.Is(err, tt.want) {
			t.Errorf("%s: Read = %d, %v", tt.name, n, err)
		}
		r.wantAlive()
		r.wantCalls("up", "down")
		r.establish()
	}
}

// A reply over the limit costs its own request and no other, whatever its size
// and however it is cut; the connection and its evidence go on.
func TestLargeReplyIsReplaced(t *testing.T) {
	t.Parallel()
	const limit = 100
	for _, size := range []int{limit - 15, limit, 1 << 10, 100 << 10} { // of the body
		r := newRig(t, func(cfg *wire.Config) { cfg.MaxReply = limit })
		c, p := r.establish()
		done := make(chan struct{})
		go func() {
			defer close(done)
			p.expect(frame(1, 12, "/big"))
			p.expect(frame(2, 9, "/a"))
			p.write(frame(1, int64(7), 0, make([]byte, size)))
			p.write(reply(2, 8, 0))
		}()
		for _, request := range [][]byte{frame(1, 12, "/big"), frame(2, 9, "/a")} {
			if _, err := c.Write(request); err != nil {
				t.Fatal(err)
			}
		}
		for _, part := range reply(1, 7, wire.CodeReplyTooLarge) { // byte by byte
			r.wantRead(c, []byte{part})
		}
		r.wantRead(c, reply(2, 8, 0))
		<-done
		r.exchange(c, p, frame(3, 9, "/b"), reply(3, 9, 0))
		r.wantCalls("up")
	}
}

// One that was cut off in the middle is no answer.
func TestLargeReplyCut(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(cfg *wire.Config) { cfg.MaxReply = 100 })
	c, p := r.establish()
	go func() {
		p.expect(frame(1, 12, "/big"))
		p.write(frame(1, int64(7), 0, make([]byte, 1000))[:500])
		_ = p.conn.Close()
	}()
	if _, err := c.Write(frame(1, 12, "/big")); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(make([]byte, 64)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("Read = %d, %v", n, err)
	}
	r.wantCalls("up", "down")
}
