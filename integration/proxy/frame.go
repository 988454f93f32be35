package proxy

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/docent-go/docent/internal/zoodefs"
)

const (
	prefix   = 4
	maxFrame = 64 << 20

	xidNotification = -1
	xidPing         = -2
)

var errFrame = errors.New("proxy: not a ZooKeeper frame")

// readFrame reads one frame and returns it with its length prefix.
func readFrame(r *bufio.Reader) ([]byte, error) {
	head, err := r.Peek(prefix)
	if err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(head)
	if size > maxFrame {
		return nil, fmt.Errorf("%w: length %d", errFrame, size)
	}
	frame := make([]byte, prefix+int(size))
	if _, err := io.ReadFull(r, frame); err != nil {
		return nil, err
	}
	return frame, nil
}

// fields reads a frame's fields one after the other. Once one is missing all the
// rest are zero: the proxy must pass on what it does not understand.
type fields struct {
	rest []byte
	bad  bool
}

func (f *fields) take(n int) []byte {
	if n < 0 || n > len(f.rest) {
		f.rest, f.bad = nil, true
		return nil
	}
	b := f.rest[:n]
	f.rest = f.rest[n:]
	return b
}

func (f *fields) int32() int32 {
	b := f.take(4)
	if b == nil {
		return 0
	}
	return int32(binary.BigEndian.Uint32(b))
}

func (f *fields) int64() int64 {
	b := f.take(8)
	if b == nil {
		return 0
	}
	return int64(binary.BigEndian.Uint64(b))
}

// bytes reads a buffer or a string; length -1 means none.
func (f *fields) bytes() []byte {
	n := f.int32()
	if n <= 0 {
		return nil
	}
	return f.take(int(n))
}

// Part is one operation of a multi.
type Part struct {
	Op   zoodefs.Op
	Path string
}

// Request is what the proxy knows of one request.
type Request struct {
	Conn    int        // number of the connection, counted from 1
	Session int64      // of the connection; for a handshake the one asked for, 0 for a new one
	Xid     int32      // 0 for a handshake
	Op      zoodefs.Op // zoodefs.OpConnect for a handshake
	Path    string     // "" when the request has none or several
	Watch   bool       // a read that sets a watch
	Parts   []Part     // of a multi
	Size    int        // bytes without the length prefix
}

// Reply is what the proxy knows of one answer.
type Reply struct {
	Xid  int32
	Zxid int64
	Err  int32  // ZooKeeper's error code, 0 for none
	Path string // made by a create
}

func parseRequest(frame []byte) Request {
	f := fields{rest: frame[prefix:]}
	r := Request{Size: len(frame) - prefix, Xid: f.int32(), Op: zoodefs.Op(f.int32())}
	switch {
	case r.Op == zoodefs.OpMulti || r.Op == zoodefs.OpMultiRead:
		r.Parts = parseParts(&f)
	case hasPath(r.Op):
		r.Path = string(f.bytes())
	}
	if watches(r.Op) {
		r.Watch = frame[len(frame)-1] != 0
	}
	return r
}

// parseParts reads a multi's operations, each behind a header of type, done, error.
func parseParts(f *fields) []Part {
	var parts []Part
	for !f.bad {
		op := zoodefs.Op(f.int32())
		done := f.take(1)
		f.int32()
		if f.bad || done[0] != 0 {
			break
		}
		parts = append(parts, Part{Op: op, Path: string(f.bytes())})
		skipPart(f, op)
	}
	return parts
}

// skipPart passes over what follows an operation's path.
func skipPart(f *fields, op zoodefs.Op) {
	switch {
	case op.Creates():
		f.bytes() // data
		for n := f.int32(); n > 0 && !f.bad; n-- {
			f.int32() // permissions
			f.bytes() // scheme
			f.bytes() // id
		}
		f.int32() // flags
		if op == zoodefs.OpCreateTTL {
			f.int64()
		}
	case op == zoodefs.OpSetData:
		f.bytes()
		f.int32()
	case op == zoodefs.OpDelete || op == zoodefs.OpCheck:
		f.int32()
	case watches(op):
		f.take(1)
	default:
		f.bad = true
	}
}

func parseConnect(frame []byte) Request {
	f := fields{rest: frame[prefix:]}
	f.int32() // protocol version
	f.int64() // last zxid seen
	f.int32() // timeout
	return Request{Op: zoodefs.OpConnect, Session: f.int64(), Size: len(frame) - prefix}
}

func parseReply(frame []byte) Reply {
	f := fields{rest: frame[prefix:]}
	return Reply{Xid: f.int32(), Zxid: f.int64(), Err: f.int32()}
}

// parseConnected returns the session that the server answered with, 0 if it refused.
func parseConnected(frame []byte) int64 {
	f := fields{rest: frame[prefix:]}
	f.int32() // protocol version
	f.int32() // timeout
	return f.int64()
}

// madePath is the path in the answer to a create.
func madePath(frame []byte) string {
	f := fields{rest: frame[prefix:]}
	f.take(16)
	return string(f.bytes())
}
