// Package jute reads and writes the records of the protocol as a server does: the
// encoding of Java's jute, with the faults that real servers have.
package jute

import (
	"encoding/binary"
	"errors"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/docent-go/docent/internal/zoodefs"
)

// errShort is the error of a decoder for a record that ends early or states an
// impossible length. ZooKeeper answers such a request with [zoodefs.CodeMarshallingError].
var errShort = errors.New("zktest: malformed record")

// ErrUnknownPart is the error of a decoder for a transaction with a request of a type
// that is not allowed there.
var ErrUnknownPart = errors.New("zktest: unknown part of a transaction")

// ErrNullACL is the error of a decoder for a null list of ACL entries. The real
// server meets a null pointer there before it takes a zxid.
var ErrNullACL = errors.New("zktest: null ACL")

// Decoder reads jute's binary encoding. The first error stays, and every read after
// it returns a zero value. So a record is checked once, at its end.
type Decoder struct {
	B   []byte
	Err error
}

// Take returns the next n bytes of the frame itself.
func (d *Decoder) Take(n int) []byte {
	if d.Err != nil || n < 0 || n > len(d.B) {
		d.Err = errShort
		return nil
	}
	p := d.B[:n:n]
	d.B = d.B[n:]
	return p
}

func (d *Decoder) bool() bool {
	p := d.Take(1)
	return p != nil && p[0] != 0
}

// Int reads four bytes.
func (d *Decoder) Int() int32 {
	p := d.Take(4)
	if p == nil {
		return 0
	}
	return int32(binary.BigEndian.Uint32(p))
}

// Long reads eight bytes.
func (d *Decoder) Long() int64 {
	p := d.Take(8)
	if p == nil {
		return 0
	}
	return int64(binary.BigEndian.Uint64(p))
}

// Buffer returns nil for a null buffer and a copy otherwise, because the frame is
// not kept.
func (d *Decoder) Buffer() []byte {
	n := d.Int()
	if d.Err != nil || n == -1 {
		return nil
	}
	p := d.Take(int(n))
	if d.Err != nil {
		return nil
	}
	return append(make([]byte, 0, len(p)), p...)
}

// Text returns a string and whether it was not null. Bytes that are not UTF-8
// become U+FFFD, as in Java.
func (d *Decoder) Text() (string, bool) {
	n := d.Int()
	if d.Err != nil || n == -1 {
		return "", false
	}
	p := d.Take(int(n))
	if d.Err != nil {
		return "", false
	}
	for _, c := range p {
		if c >= 0x80 {
			return string([]rune(string(p))), true
		}
	}
	return string(p), true
}

// Path returns a string that must not be null. The real server meets a null pointer
// there and reports a marshalling error.
func (d *Decoder) Path() string {
	s, ok := d.Text()
	if !ok {
		d.Err = errShort
	}
	return s
}

// Paths returns a vector of strings. It is nil for a null vector only.
func (d *Decoder) Paths() []string {
	n := d.Int()
	if d.Err != nil || n == -1 {
		return nil
	}
	// A string takes four bytes at least, so a false length cannot make the
	// server allocate more than the frame is long.
	out := make([]string, 0, max(0, min(int(n), len(d.B)/4+1)))
	for ; n > 0 && d.Err == nil; n-- {
		out = append(out, d.Path())
	}
	return out
}

// Encoder writes jute's binary encoding.
type Encoder struct{ B []byte }

// NewFrame returns an encoder that leaves room for the frame's length.
func NewFrame(size int) *Encoder { return &Encoder{B: make([]byte, 4, 4+size)} }

// Frame fills in the length and returns the finished frame.
func (e *Encoder) Frame() []byte {
	binary.BigEndian.PutUint32(e.B, uint32(len(e.B)-4))
	return e.B
}

// Bool writes a byte.
func (e *Encoder) Bool(v bool) {
	if v {
		e.B = append(e.B, 1)
		return
	}
	e.B = append(e.B, 0)
}

// Int writes four bytes.
func (e *Encoder) Int(v int32) { e.B = binary.BigEndian.AppendUint32(e.B, uint32(v)) }

// Long writes eight bytes.
func (e *Encoder) Long(v int64) { e.B = binary.BigEndian.AppendUint64(e.B, uint64(v)) }

// Buffer writes bytes behind their length; nil is a null buffer.
func (e *Encoder) Buffer(p []byte) {
	if p == nil {
		e.Int(-1)
		return
	}
	e.Int(int32(len(p)))
	e.B = append(e.B, p...)
}

// Text writes a string as Java's jute does. A character beyond the basic plane
// becomes two surrogates of three bytes each, which is not valid UTF-8.
func (e *Encoder) Text(s string) {
	at := len(e.B)
	e.Int(0)
	for _, r := range s {
		if hi, lo := utf16.EncodeRune(r); hi != utf8.RuneError {
			e.surrogate(hi)
			e.surrogate(lo)
			continue
		}
		e.B = utf8.AppendRune(e.B, r)
	}
	binary.BigEndian.PutUint32(e.B[at:], uint32(len(e.B)-at-4))
}

func (e *Encoder) surrogate(r rune) {
	e.B = append(e.B, 0xe0|byte(r>>12), 0x80|byte(r>>6)&0x3f, 0x80|byte(r)&0x3f)
}

// Paths writes a vector of strings.
func (e *Encoder) Paths(v []string) {
	e.Int(int32(len(v)))
	for _, s := range v {
		e.Text(s)
	}
}

// Header starts a reply.
func (e *Encoder) Header(xid int32, zxid int64, code zoodefs.Code) {
	e.Int(xid)
	e.Long(zxid)
	e.Int(int32(code))
}

// MultiHeader starts a part of the answer to a multi, or ends it.
func (e *Encoder) MultiHeader(op zoodefs.Op, done bool, code zoodefs.Code) {
	e.Int(int32(op))
	e.Bool(done)
	e.Int(int32(code))
}
