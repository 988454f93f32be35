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

// Several frames may leave with one Write. A frame that ends early is refused.
func TestWriteTakesWholeFrames(t *testing.T) {
	t.Parallel()
	frames := [][]byte{frame(1, 9, "/a"), frame(-2, 11), frame(2, 1, "/b", "data", 0, 0)}
	all := bytes.Join(frames, nil)
	for size := len(all); size > len(frames[0])+len(frames[1]); size-- {
		r := newRig(t)
		c, p := r.establish()
		got := make(chan []byte, 1)
		go func() {
			b, _ := io.ReadAll(p.conn)
			got <- b
		}()
		n, err := c.Write(all[:size])
		want := all
		if size < len(all) {
			want = all[:len(frames[0])+len(frames[1])]
			if !errors.Is(err, wire.ErrProtocol) {
				t.Errorf("%d bytes: %v", size, err)
			}
		} else if err != nil {
			t.Error(err)
		}
		_ = c.Close()
		if b := <-got; n != len(want) || !bytes.Equal(b, want) {
			t.Fatalf("%d bytes: wrote %d, server received %x, want %x", size, n, b, want)
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
