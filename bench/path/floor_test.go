package path_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/zoodefs"
)

const (
	replyHeader = 16 // xid, zxid, error code
	frameSize   = 4
)

// A floor is a session of its own with the least cost of a client whose
// goroutines share a connection. The caller makes the Write, and another
// goroutine makes the Read and wakes the caller. Of an answer a floor decodes the
// error code. It sends no pings: use it more often than once in a session
// timeout.
type floor struct {
	conn  net.Conn
	await atomic.Int32 // answers that the caller waits for
	first []byte       // the first of them
	told  chan error
}

// dialFloor returns the floor of the server at addr. Its session expires after b.
func dialFloor(ctx context.Context, b *testing.B, addr string) *floor {
	b.Helper()
	conn, in := dialBare(ctx, b, addr)
	f := &floor{conn: conn, first: make([]byte, 0, 512), told: make(chan error, 1)}
	go f.read(in) // ends when the connection is closed; no caller waits for the last word
	return f
}

// dialBare makes a session of the server at addr, which expires after b.
func dialBare(ctx context.Context, b *testing.B, addr string) (net.Conn, *bufio.Reader) {
	b.Helper()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close() })
	in := bufio.NewReader(conn)
	hello := make([]byte, 4+8, 64) // version, last zxid seen
	hello = binary.BigEndian.AppendUint32(hello, uint32(sessionTimeout.Milliseconds()))
	hello = append(hello, make([]byte, 8)...)    // no session yet
	hello = appendBytes(hello, make([]byte, 16)) // nor a password
	if _, err := conn.Write(framed(hello)); err != nil {
		b.Fatal(err)
	}
	if _, err := frame(in, make([]byte, 512)); err != nil {
		b.Fatal(err)
	}
	return conn, in
}

func (f *floor) read(in *bufio.Reader) {
	body := make([]byte, 512)
	for n := int32(0); ; {
		got, err := answer(in, body)
		if n++; n == 1 {
			f.first = append(f.first[:0], got...)
		}
		if err != nil || n == f.await.Load() {
			n = 0
			f.told <- err
		}
		if err != nil {
			return
		}
	}
}

// ask writes so many requests at once and waits for all answers.
func (f *floor) ask(requests []byte, n int32) error {
	f.await.Store(n)
	if _, err := f.conn.Write(requests); err != nil {
		return err
	}
	return <-f.told
}

// floorGet gets the node at path.
func floorGet(ctx context.Context, b *testing.B, addr, path string) func(context.Context) error {
	b.Helper()
	f := dialFloor(ctx, b, addr)
	request := framed(append(requested(zoodefs.OpGetData, path), 0)) // no watch
	return func(context.Context) error { return f.ask(request, 1) }
}

// aloneGet gets the node at path, and its caller reads the answer itself: what a client
// could spare whose goroutines did not share a connection.
func aloneGet(ctx context.Context, b *testing.B, addr, path string) func(context.Context) error {
	b.Helper()
	conn, in := dialBare(ctx, b, addr)
	request, body := framed(append(requested(zoodefs.OpGetData, path), 0)), make([]byte, 512) // no watch
	return func(context.Context) error {
		if _, err := conn.Write(request); err != nil {
			return err
		}
		_, err := answer(in, body)
		return err
	}
}

// floorLock makes an ephemeral sequential node in dir, has the directory listed
// by the same write, and deletes the node. A free lock takes these three
// requests.
func floorLock(ctx context.Context, b *testing.B, addr, dir string) func(context.Context) error {
	b.Helper()
	f := dialFloor(ctx, b, addr)
	node := dir + "/lock-"
	create := append(requested(zoodefs.OpCreate, node), 0, 0, 0, 0) // no data
	create = binary.BigEndian.AppendUint32(create, 1)               // one ACL
	create = binary.BigEndian.AppendUint32(create, zk.PermAll)
	create = appendBytes(appendBytes(create, []byte("world")), []byte("anyone"))
	create = binary.BigEndian.AppendUint32(create, zk.FlagEphemeral|zk.FlagSequence)
	join := append(framed(create), framed(append(requested(zoodefs.OpGetChildren2, dir), 0))...)
	const number = 10 // digits
	return func(context.Context) error {
		if err := f.ask(join, 2); err != nil {
			return err
		}
		made := string(f.first[replyHeader+frameSize:])
		if len(made) != len(node)+number {
			return fmt.Errorf("made %q", made)
		}
		leave := requested(zoodefs.OpDelete, made)
		leave = append(leave, 0xff, 0xff, 0xff, 0xff) // any version
		return f.ask(framed(leave), 1)
	}
}

// requested is the head of a request, up to its path.
func requested(op zoodefs.Op, path string) []byte {
	b := binary.BigEndian.AppendUint32(nil, 1) // xid
	b = binary.BigEndian.AppendUint32(b, uint32(op))
	return appendBytes(b, []byte(path))
}

func appendBytes(b, p []byte) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(p))), p...)
}

func framed(body []byte) []byte { return appendBytes(nil, body) }

// frame reads the next frame into body.
func frame(in *bufio.Reader, body []byte) ([]byte, error) {
	if _, err := io.ReadFull(in, body[:frameSize]); err != nil {
		return nil, err
	}
	size := int(binary.BigEndian.Uint32(body))
	if size > len(body) {
		return nil, fmt.Errorf("frame of %d bytes", size)
	}
	_, err := io.ReadFull(in, body[:size])
	return body[:size], err
}

// answer reads the next answer. The error is nil if it says that all is well.
func answer(in *bufio.Reader, body []byte) ([]byte, error) {
	got, err := frame(in, body)
	if err != nil {
		return nil, err
	}
	if len(got) < replyHeader {
		return nil, fmt.Errorf("answer of %d bytes", len(got))
	}
	if code := int32(binary.BigEndian.Uint32(got[replyHeader-4:])); code != 0 {
		return nil, fmt.Errorf("answer with code %d", code)
	}
	return got, nil
}
