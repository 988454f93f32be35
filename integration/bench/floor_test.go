package bench_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"testing"
)

const (
	getData     = 4  // the opcode of a get
	replyHeader = 16 // xid, zxid, error code
)

// floorGet connects a session of its own and returns a get of path that is the
// floor of a client whose goroutines share a connection: a Write by the caller, a
// Read by another goroutine, which wakes the caller. Of the answer it decodes the
// error code. It sends no pings: call it more often than once in a session timeout.
func floorGet(ctx context.Context, b *testing.B, addr, path string) func(context.Context) error {
	b.Helper()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close() }) // the session expires
	in := bufio.NewReader(conn)
	hello := make([]byte, 4+8, 64) // version, last zxid seen
	hello = binary.BigEndian.AppendUint32(hello, uint32(sessionTimeout.Milliseconds()))
	hello = append(hello, make([]byte, 8)...) // no session yet
	hello = binary.BigEndian.AppendUint32(hello, 16)
	hello = append(hello, make([]byte, 16)...) // nor a password
	if _, err := conn.Write(framed(hello)); err != nil {
		b.Fatal(err)
	}
	body := make([]byte, 512)
	if _, err := frame(in, body); err != nil {
		b.Fatal(err)
	}

	told := make(chan error, 1)
	go func() { // ends when the connection is closed; nobody waits for the last word
		for {
			err := answer(in, body)
			told <- err
			if err != nil {
				return
			}
		}
	}()
	request := binary.BigEndian.AppendUint32(nil, 1) // xid
	request = binary.BigEndian.AppendUint32(request, getData)
	request = binary.BigEndian.AppendUint32(request, uint32(len(path)))
	request = framed(append(append(request, path...), 0)) // no watch
	return func(context.Context) error {
		if _, err := conn.Write(request); err != nil {
			return err
		}
		return <-told
	}
}

func framed(body []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

// frame reads the next frame into body.
func frame(in *bufio.Reader, body []byte) ([]byte, error) {
	if _, err := io.ReadFull(in, body[:4]); err != nil {
		return nil, err
	}
	size := int(binary.BigEndian.Uint32(body))
	if size > len(body) {
		return nil, fmt.Errorf("frame of %d bytes", size)
	}
	_, err := io.ReadFull(in, body[:size])
	return body[:size], err
}

// answer reads the next answer and returns nil if it says that all is well.
func answer(in *bufio.Reader, body []byte) error {
	got, err := frame(in, body)
	if err != nil {
		return err
	}
	if len(got) < replyHeader {
		return fmt.Errorf("answer of %d bytes", len(got))
	}
	if code := int32(binary.BigEndian.Uint32(got[replyHeader-4:])); code != 0 {
		return fmt.Errorf("answer with code %d", code)
	}
	return nil
}
