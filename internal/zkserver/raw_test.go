package zkserver_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"
)

// enc writes the protocol's encoding, independently of the server's own.
type enc struct{ bytes.Buffer }

func body(parts ...any) []byte {
	var e enc
	for _, p := range parts {
		e.put(p)
	}
	return e.Bytes()
}

// null stands for a null string, buffer or vector.
type null struct{}

type rawACL struct {
	perms      int32
	scheme, id any // string or null
}

func (e *enc) put(v any) {
	switch v := v.(type) {
	case null:
		e.put(int32(-1))
	case int32:
		e.Write(binary.BigEndian.AppendUint32(nil, uint32(v)))
	case int64:
		e.Write(binary.BigEndian.AppendUint64(nil, uint64(v)))
	case bool:
		if v {
			e.WriteByte(1)
		} else {
			e.WriteByte(0)
		}
	case string:
		e.put(int32(len(v)))
		e.WriteString(v)
	case []byte:
		e.put(int32(len(v)))
		e.Write(v)
	case []string:
		e.put(int32(len(v)))
		for _, s := range v {
			e.put(s)
		}
	case []rawACL:
		e.put(int32(len(v)))
		for _, a := range v {
			e.put(a.perms)
			e.put(a.scheme)
			e.put(a.id)
		}
	default:
		panic(fmt.Sprintf("cannot encode %T", v))
	}
}

// dec reads the protocol's encoding and remembers a short record.
type dec struct {
	b     []byte
	short bool
}

func (d *dec) take(n int) []byte {
	if n < 0 || n > len(d.b) {
		d.short = true
		return make([]byte, max(min(n, 16), 0))
	}
	p := d.b[:n]
	d.b = d.b[n:]
	return p
}

func (d *dec) int() int32  { return int32(binary.BigEndian.Uint32(pad(d.take(4), 4))) }
func (d *dec) long() int64 { return int64(binary.BigEndian.Uint64(pad(d.take(8), 8))) }
func (d *dec) bool() bool  { return pad(d.take(1), 1)[0] != 0 }

func pad(p []byte, n int) []byte {
	for len(p) < n {
		p = append(p, 0)
	}
	return p
}

// text returns a string or buffer, with null spelled out.
func (d *dec) text() string {
	n := d.int()
	if n == -1 {
		return "<null>"
	}
	return string(d.take(int(n)))
}

func (d *dec) strings() []string {
	n := d.int()
	var out []string
	for i := int32(0); i < n && !d.short; i++ {
		out = append(out, d.text())
	}
	return out
}

// raw is a connection that speaks in frames.
type raw struct {
	net.Conn
	session  int64
	timeout  int32
	password []byte
	xid      int32
}

var errRefused = errors.New("session refused")

// readFrame reads one frame.
func (c *raw) readFrame() ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return nil, err
	}
	p := make([]byte, binary.BigEndian.Uint32(head[:]))
	_, err := io.ReadFull(c, p)
	return p, err
}

func (c *raw) writeFrame(p []byte) error {
	_, err := c.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(p))), p...))
	return err
}

// handshake opens a session, or attaches to the one given.
func (c *raw) handshake(lastZxid int64, timeoutMS int32, session int64, password []byte) error {
	if err := c.writeFrame(body(int32(0), lastZxid, timeoutMS, session, password, false)); err != nil {
		return err
	}
	p, err := c.readFrame()
	if err != nil {
		return err
	}
	d := dec{b: p}
	d.int()
	c.timeout, c.session = d.int(), d.long()
	c.password = []byte(d.text())
	if c.session == 0 {
		return errRefused
	}
	return nil
}

// send writes a request and returns its xid.
func (c *raw) send(op int32, payload []byte) (int32, error) {
	c.xid++
	return c.xid, c.sendXid(c.xid, op, payload)
}

func (c *raw) sendXid(xid, op int32, payload []byte) error {
	return c.writeFrame(append(body(xid, op), payload...))
}

// answer is one frame from the server.
type answer struct {
	xid  int32
	zxid int64
	err  int32
	body []byte
}

func (c *raw) receive() (answer, error) {
	p, err := c.readFrame()
	if err != nil {
		return answer{}, err
	}
	d := dec{b: p}
	a := answer{xid: d.int(), zxid: d.long(), err: d.int()}
	a.body = d.b
	if d.short {
		return a, errors.New("short header")
	}
	return a, nil
}

// call sends a request and returns its answer, and the events that came first.
func (c *raw) call(op int32, payload []byte) (answer, []answer, error) {
	xid, err := c.send(op, payload)
	if err != nil {
		return answer{}, nil, err
	}
	if op == 11 {
		xid = -2
	}
	var events []answer
	for {
		a, err := c.receive()
		if err != nil {
			return a, events, err
		}
		if a.xid == -1 {
			events = append(events, a)
			continue
		}
		if a.xid != xid {
			return a, events, fmt.Errorf("xid %d, want %d", a.xid, xid)
		}
		return a, events, nil
	}
}

// dialRaw connects over TCP.
func dialRaw(tb testing.TB, addr string) *raw {
	tb.Helper()
	c, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	return &raw{Conn: c}
}

// rawSession connects and opens a session of 30 s.
func rawSession(tb testing.TB, addr string) *raw {
	tb.Helper()
	c := dialRaw(tb, addr)
	if err := c.handshake(0, 30_000, 0, make([]byte, 16)); err != nil {
		tb.Fatalf("handshake: %v", err)
	}
	return c
}
