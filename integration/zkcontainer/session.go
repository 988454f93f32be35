package zkcontainer

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// The few requests that this package makes itself, so that it needs no client.
const (
	opCreate = 1
	opExists = 3
	opSync   = 9
	opAuth   = 100
	opClose  = -11

	xidAuth  = -4
	xidEvent = -1

	errNoNode     = -101
	errNodeExists = -110
	errWantsLogin = -124

	maxFrame       = 1 << 20
	sessionTimeout = 10 * time.Second
)

// code is the number of an error that a server has answered with.
type code int32

func (c code) Error() string {
	switch c {
	case errNoNode:
		return "node does not exist"
	case errNodeExists:
		return "node exists"
	case errWantsLogin:
		return "the servers require a login by SASL, which this package does not have: create the nodes by a client of your own"
	}
	return fmt.Sprintf("the server answers %d", int32(c))
}

// errNoSession means that the server does not know the session: it has ended.
var errNoSession = errors.New("the session has ended")

// session is a connection with a session of ZooKeeper. One goroutine uses it.
type session struct {
	conn net.Conn
	xid  int32
	stop func() bool
}

// endWith makes reads and writes of conn fail when ctx ends, until the result is called.
func endWith(ctx context.Context, conn net.Conn) func() bool {
	return context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
}

// dialSession makes a session on one server. ctx ends it.
func dialSession(ctx context.Context, addr string) (*session, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	s := &session{conn: conn, stop: endWith(ctx, conn)}
	if err := s.handshake(0, make([]byte, 16)); err != nil {
		s.drop()
		return nil, err
	}
	return s, nil
}

// handshake makes a session, or takes one over if id is not zero.
func (s *session) handshake(id int64, password []byte) error {
	if _, err := s.conn.Write(frame(connectRequest(id, password))); err != nil {
		return err
	}
	return s.accepted()
}

func connectRequest(id int64, password []byte) []byte {
	var b []byte
	b = binary.BigEndian.AppendUint32(b, 0) // version of the protocol
	b = binary.BigEndian.AppendUint64(b, 0) // last transaction seen
	b = binary.BigEndian.AppendUint32(b, uint32(sessionTimeout.Milliseconds()))
	b = binary.BigEndian.AppendUint64(b, uint64(id))
	b = appendBytes(b, password)
	return append(b, 0) // not for reading only
}

// accepted reads the answer to the handshake.
func (s *session) accepted() error {
	answer, err := s.read()
	switch {
	case err != nil:
		return err
	case len(answer) < 16:
		return fmt.Errorf("a handshake of %d bytes", len(answer))
	case binary.BigEndian.Uint32(answer[4:]) == 0: // the timeout
		return errNoSession
	}
	return nil
}

// call makes one request and returns what follows the header of the answer. The error is a
// code if the server refuses.
func (s *session) call(op int32, body []byte) ([]byte, error) {
	s.xid++
	return s.exchange(s.xid, op, body)
}

func (s *session) exchange(xid, op int32, body []byte) ([]byte, error) {
	if _, err := s.conn.Write(frame(request(xid, op, body))); err != nil {
		return nil, err
	}
	for {
		answer, err := s.read()
		if err != nil {
			return nil, err
		}
		if len(answer) < 16 {
			return nil, fmt.Errorf("an answer of %d bytes", len(answer))
		}
		got := int32(binary.BigEndian.Uint32(answer))
		if got == xidEvent {
			continue
		}
		if got != xid {
			return nil, fmt.Errorf("an answer to request %d instead of %d", got, xid)
		}
		if failed := code(binary.BigEndian.Uint32(answer[12:])); failed != 0 {
			return nil, failed
		}
		return answer[16:], nil
	}
}

func (s *session) read() ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(s.conn, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > maxFrame {
		return nil, fmt.Errorf("a frame of %d bytes", n)
	}
	body := make([]byte, n)
	_, err := io.ReadFull(s.conn, body)
	return body, err
}

// close ends the session and the connection.
func (s *session) close() error {
	_, err := s.call(opClose, nil)
	s.drop()
	return err
}

// drop closes the connection and leaves the session to its timeout.
func (s *session) drop() {
	s.stop()
	_ = s.conn.Close()
}

func request(xid, op int32, body []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(xid))
	return append(binary.BigEndian.AppendUint32(b, uint32(op)), body...)
}

func frame(body []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

func appendBytes(b, data []byte) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(data))), data...)
}

func appendString(b []byte, text string) []byte { return appendBytes(b, []byte(text)) }

// existsBody asks whether path exists, without a watch.
func existsBody(path string) []byte { return append(appendString(nil, path), 0) }

// createBody creates a persistent node with which everybody may do everything.
func createBody(path string, data []byte) []byte {
	b := appendBytes(appendString(nil, path), data)
	b = binary.BigEndian.AppendUint32(b, 1)  // one entry
	b = binary.BigEndian.AppendUint32(b, 31) // every right
	b = appendString(appendString(b, "world"), "anyone")
	return binary.BigEndian.AppendUint32(b, 0) // persistent
}
