package zkserver

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

// errUnknownPart is the error of a decoder for a transaction with a request of a type
// that is not allowed there.
var errUnknownPart = errors.New("zktest: unknown part of a transaction")

// errNullACL is the error of a decoder for a null list of ACL entries. The real
// server meets a null pointer there before it takes a zxid.
var errNullACL = errors.New("zktest: null ACL")

// decoder reads jute's binary encoding. The first error stays, and every read after
// it returns a zero value. So a record is checked once, at its end.
type decoder struct {
	b   []byte
	err error
}

func (d *decoder) take(n int) []byte {
	if d.err != nil || n < 0 || n > len(d.b) {
		d.err = errShort
		return nil
	}
	p := d.b[:n:n]
	d.b = d.b[n:]
	return p
}

func (d *decoder) bool() bool {
	p := d.take(1)
	return p != nil && p[0] != 0
}

func (d *decoder) int() int32 {
	p := d.take(4)
	if p == nil {
		return 0
	}
	return int32(binary.BigEndian.Uint32(p))
}

func (d *decoder) long() int64 {
	p := d.take(8)
	if p == nil {
		return 0
	}
	return int64(binary.BigEndian.Uint64(p))
}

// buffer returns nil for a null buffer and a copy otherwise, because the frame is
// not kept.
func (d *decoder) buffer() []byte {
	n := d.int()
	if d.err != nil || n == -1 {
		return nil
	}
	p := d.take(int(n))
	if d.err != nil {
		return nil
	}
	return append(make([]byte, 0, len(p)), p...)
}

// text returns a string and whether it was not null. Bytes that are not UTF-8
// become U+FFFD, as in Java.
func (d *decoder) text() (string, bool) {
	n := d.int()
	if d.err != nil || n == -1 {
		return "", false
	}
	p := d.take(int(n))
	if d.err != nil {
		return "", false
	}
	for _, c := range p {
		if c >= 0x80 {
			return string([]rune(string(p))), true
		}
	}
	return string(p), true
}

// path returns a string that must not be null. The real server meets a null pointer
// there and reports a marshalling error.
func (d *decoder) path() string {
	s, ok := d.text()
	if !ok {
		d.err = errShort
	}
	return s
}

// paths returns a vector of strings. It is nil for a null vector only.
func (d *decoder) paths() []string {
	n := d.int()
	if d.err != nil || n == -1 {
		return nil
	}
	// A string takes four bytes at least, so a false length cannot make the
	// server allocate more than the frame is long.
	out := make([]string, 0, max(0, min(int(n), len(d.b)/4+1)))
	for ; n > 0 && d.err == nil; n-- {
		out = append(out, d.path())
	}
	return out
}

// acls returns a vector of ACL entries. It is nil for a null vector only.
func (d *decoder) acls() []acl {
	n := d.int()
	if d.err != nil || n == -1 {
		return nil
	}
	out := make([]acl, 0, max(0, min(int(n), len(d.b)/12+1)))
	for ; n > 0 && d.err == nil; n-- {
		var a acl
		a.perms = d.int()
		a.scheme, a.hasScheme = d.text()
		a.id, a.hasID = d.text()
		out = append(out, a)
	}
	return out
}

// encoder writes jute's binary encoding.
type encoder struct{ b []byte }

// newFrame returns an encoder that leaves room for the frame's length.
func newFrame(size int) *encoder { return &encoder{b: make([]byte, 4, 4+size)} }

// frame fills in the length and returns the finished frame.
func (e *encoder) frame() []byte {
	binary.BigEndian.PutUint32(e.b, uint32(len(e.b)-4))
	return e.b
}

func (e *encoder) bool(v bool) {
	if v {
		e.b = append(e.b, 1)
		return
	}
	e.b = append(e.b, 0)
}

func (e *encoder) int(v int32)  { e.b = binary.BigEndian.AppendUint32(e.b, uint32(v)) }
func (e *encoder) long(v int64) { e.b = binary.BigEndian.AppendUint64(e.b, uint64(v)) }

func (e *encoder) buffer(p []byte) {
	if p == nil {
		e.int(-1)
		return
	}
	e.int(int32(len(p)))
	e.b = append(e.b, p...)
}

// text writes a string as Java's jute does. A character beyond the basic plane
// becomes two surrogates of three bytes each, which is not valid UTF-8.
func (e *encoder) text(s string) {
	at := len(e.b)
	e.int(0)
	for _, r := range s {
		if hi, lo := utf16.EncodeRune(r); hi != utf8.RuneError {
			e.surrogate(hi)
			e.surrogate(lo)
			continue
		}
		e.b = utf8.AppendRune(e.b, r)
	}
	binary.BigEndian.PutUint32(e.b[at:], uint32(len(e.b)-at-4))
}

func (e *encoder) surrogate(r rune) {
	e.b = append(e.b, 0xe0|byte(r>>12), 0x80|byte(r>>6)&0x3f, 0x80|byte(r)&0x3f)
}

func (e *encoder) paths(v []string) {
	e.int(int32(len(v)))
	for _, s := range v {
		e.text(s)
	}
}

func (e *encoder) acls(v []acl) {
	e.int(int32(len(v)))
	for _, a := range v {
		e.int(a.perms)
		e.text(a.scheme)
		if !a.hasID {
			e.int(-1)
			continue
		}
		e.text(a.id)
	}
}

// header starts a reply.
func (e *encoder) header(xid int32, zxid int64, code zoodefs.Code) {
	e.int(xid)
	e.long(zxid)
	e.int(int32(code))
}

func (e *encoder) stat(s Stat) {
	e.long(s.Czxid)
	e.long(s.Mzxid)
	e.long(s.Ctime)
	e.long(s.Mtime)
	e.int(s.Version)
	e.int(s.Cversion)
	e.int(s.Aversion)
	e.long(s.EphemeralOwner)
	e.int(s.DataLength)
	e.int(s.NumChildren)
	e.long(s.Pzxid)
}
