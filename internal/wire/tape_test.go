package wire_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/wire"
)

// tape is a connection without goroutines: Read plays what is recorded, in
// pieces, and Write records.
type tape struct {
	play   []byte
	piece  int
	record bytes.Buffer
}

func (c *tape) Read(p []byte) (int, error) {
	if len(c.play) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.play[:min(len(c.play), c.piece)])
	c.play = c.play[n:]
	return n, nil
}

func (c *tape) Write(p []byte) (int, error)      { return c.record.Write(p) }
func (c *tape) Close() error                     { return nil }
func (c *tape) LocalAddr() net.Addr              { return nil }
func (c *tape) RemoteAddr() net.Addr             { return nil }
func (c *tape) SetDeadline(time.Time) error      { return nil }
func (c *tape) SetReadDeadline(time.Time) error  { return nil }
func (c *tape) SetWriteDeadline(time.Time) error { return nil }

// onTape returns a Link with a connection to nc, on which the ConnectRequest
// has been written.
func onTape(t testing.TB, nc net.Conn, change ...func(*wire.Config)) (*wire.Link, net.Conn) {
	t.Helper()
	cfg := wire.Config{
		SessionTimeout: timeout,
		MaxRequest:     1000,
		MaxReply:       1000,
		Dial:           func(context.Context, string) (net.Conn, error) { return nc, nil },
	}
	for _, f := range change {
		f(&cfg)
	}
	l := wire.NewLink(cfg)
	c, err := l.Dial("tcp", "s:1", 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write(connectRequest(0)); err != nil {
		t.Fatal(err)
	}
	return l, c
}

// cutFrame returns the first frame of b, whole or not, and whether its length
// is within least and most.
func cutFrame(b []byte, least, most uint32) (f []byte, whole, ok bool) {
	if len(b) < 4 {
		return b, false, true
	}
	n := binary.BigEndian.Uint32(b)
	if n < least || n > most {
		return nil, false, false
	}
	size := 4 + int(n)
	return b[:min(size, len(b))], len(b) >= size, true
}
