package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/docent-go/docent/client"
)

// Requests and answers of a server that is asked for its logins.
const (
	opSASL         = 102
	opCloseSession = -11
	authFailed     = -115
	loginWanted    = -124
	probeTimeout   = 1000 // of the session that the question takes, in milliseconds
)

// logins says what login a server offers, and whether it wants one.
type logins struct {
	digest, other, wanted bool
}

// logins asks one server, over a connection without a login. The session of that ends with the
// answer, or after the shortest timeout that the server grants.
func (t *target) logins(ctx context.Context, server string) (l logins, err error) {
	conn, err := t.speak(ctx, server)
	if err != nil {
		return l, err
	}
	defer conn.Close() //nolint:errcheck // its answers are read
	_ = conn.SetDeadline(time.Now().Add(wordLimit))
	hello := make([]byte, 45) // with the byte for read-only servers: 3.9.0 to 3.9.2 hang up without it (ZOOKEEPER-4814)
	binary.BigEndian.PutUint32(hello[12:], probeTimeout)
	binary.BigEndian.PutUint32(hello[24:], 16)
	if _, err := talk(conn, hello); err != nil {
		return l, err
	}
	code, token, err := answer(talk(conn, binary.BigEndian.AppendUint32(request(1, opSASL), 0)))
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF): // it does not know the request
		return l, nil
	case err != nil:
		return l, err
	case code == authFailed:
		l.other = true
		return l, nil
	case code == loginWanted:
		l.other, l.wanted = true, true
		return l, nil
	}
	l.digest = strings.Contains(string(token), "md5-sess")
	code, _, err = answer(talk(conn, request(2, opCloseSession)))
	l.wanted = code == loginWanted
	return l, err
}

func request(xid, op int32) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(xid)) //nolint:gosec // bits, not a quantity
	return binary.BigEndian.AppendUint32(b, uint32(op))  //nolint:gosec // the same
}

// talk sends a frame and reads one.
func talk(conn io.ReadWriter, body []byte) ([]byte, error) {
	if _, err := conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)); err != nil { //nolint:gosec // some bytes
		return nil, err
	}
	size := make([]byte, 4)
	if _, err := io.ReadFull(conn, size); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(size)
	if n > 1<<16 {
		return nil, fmt.Errorf("an answer of %d bytes", n)
	}
	frame := make([]byte, n)
	_, err := io.ReadFull(conn, frame)
	return frame, err
}

// answer splits a reply into its code and its body.
func answer(frame []byte, err error) (code int32, body []byte, _ error) {
	if err != nil {
		return 0, nil, err
	}
	if len(frame) < 16 {
		return 0, nil, fmt.Errorf("an answer of %d bytes", len(frame))
	}
	return int32(binary.BigEndian.Uint32(frame[12:])), frame[16:], nil //nolint:gosec // bits, not a quantity
}

// loginFinding says what login the servers offer or want, and what this command does.
func (t *target) loginFinding(ctx context.Context, c *client.Client) finding {
	f := finding{"login", good, ""}
	var said []string
	for _, server := range c.Servers() {
		l, err := t.logins(ctx, server)
		what := "none is offered"
		switch {
		case err != nil:
			what = "it does not say: " + err.Error()
			if f.Result == good { // no server's failure is hidden
				f.Result = warn
			}
		case l.digest:
			what = "DIGEST-MD5"
		case l.other:
			what = "another one than DIGEST-MD5, as Kerberos"
		}
		if l.wanted {
			what += ", and required"
			if len(t.auth) == 0 && t.sasl == (login{}) {
				f.Result, what = fail, what+": see --sasl-user"
			}
		}
		said = append(said, server+": "+what)
	}
	f.Detail = strings.Join(said, "; ")
	if m, err := t.sasl.mechanism(); err == nil && m != nil {
		f.Detail += fmt.Sprintf("; this command logs in: %v", m)
	}
	return f
}
