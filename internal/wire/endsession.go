package wire

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"time"
)

// EndSession closes the session with that id and password over conn, which is
// fresh from the dialer (TLS done) and is closed in any case. The timeout is
// the session's, as the handshake wants one. After nil the server has closed
// the session. It returns an error that wraps [ErrRefused] if the server no
// longer knows the session, and [ErrChanged] if it offers another one. After
// any other error, also when ctx ends, the session may or may not be closed.
func EndSession(ctx context.Context, conn net.Conn, id int64, password []byte, timeout time.Duration) error {
	defer func() { _ = conn.Close() }()
	if id == 0 {
		return fmt.Errorf("wire: end session: no id: %w", ErrRefused) // 0 would begin a new one
	}
	// A deadline in the past interrupts without the waits of a TLS close.
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	err := endSession(conn, id, password, timeout)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return fmt.Errorf("wire: end session 0x%x: %w", id, err)
	}
	return nil
}

func endSession(conn net.Conn, id int64, password []byte, timeout time.Duration) error {
	if _, err := conn.Write(connectFrame(id, password, timeout)); err != nil {
		return err
	}
	br := bufio.NewReaderSize(conn, readBuffer)
	head, err := br.Peek(lengthSize)
	if err != nil {
		return err
	}
	n := uint32(be32(head))
	if n < minConnectResponse || n > maxConnectResponse {
		return fmt.Errorf("%w: handshake of %d bytes", ErrProtocol, n)
	}
	frame := make([]byte, lengthSize+n)
	if _, err := io.ReadFull(br, frame); err != nil {
		return err
	}
	r, err := parseConnectResponse(frame[lengthSize:])
	if err != nil {
		return err
	}
	if err := r.judge(id); err != nil {
		return err
	}
	if _, err := conn.Write(closeFrame()); err != nil {
		return err
	}
	return awaitClose(br)
}

// awaitClose reads up to the answer to closeSession.
func awaitClose(br *bufio.Reader) error {
	for {
		head, err := br.Peek(lengthSize + replyHeader)
		if err != nil {
			return err
		}
		n := uint32(be32(head))
		if n < replyHeader || n > defaultMaxReply {
			return fmt.Errorf("%w: reply of %d bytes", ErrProtocol, n)
		}
		if be32(head[4:]) == xidClose {
			switch code := be32(head[16:]); code {
			case codeOK:
				return nil
			case codeSessionExpired:
				return ErrRefused
			default:
				return ServerError(code)
			}
		}
		if _, err := br.Discard(lengthSize + int(n)); err != nil {
			return err
		}
	}
}

// connectFrame returns a ConnectRequest for an existing session. It claims to
// have seen nothing, so that no server finds itself too far behind.
func connectFrame(id int64, password []byte, timeout time.Duration) []byte {
	b := make([]byte, lengthSize, lengthSize+minConnectRequest+len(password))
	b = put32(b, 0)
	b = put64(b, 0)
	b = put32(b, int32(min(timeout.Milliseconds(), 1<<31-1)))
	b = put64(b, id)
	b = putBytes(b, password)
	return sealFrame(b, 0)
}
