package wire

import (
	"errors"
	"fmt"

	"github.com/docent-go/docent/internal/zoodefs"
)

// Login is one login on one connection, by a mechanism of SASL. One goroutine uses it.
type Login interface {
	// Name is the mechanism's name and the server's.
	Name() string
	// Next answers a token of the server. The token is nil before the first, and if the
	// server has sent null. If proven, the server has shown that it knows the user, and
	// nothing is sent any more. After an error the login is over.
	Next(token []byte) (answer []byte, proven bool, err error)
	// Refused says what is likely wrong if the server refuses the newest answer. It may
	// be empty.
	Refused() string
}

// dialogue decides what a login does next, without I/O.
type dialogue struct {
	login Login
	sent  int // tokens
	over  bool
}

// step is what comes next in a login: an answer to send, or its end. The login has
// succeeded if it is over without an error.
type step struct {
	answer []byte
	over   bool
	err    error
}

// mostTokens is more than any mechanism sends.
const mostTokens = 16

// begin is the first step.
func (d *dialogue) begin() step { return d.next(nil) }

// heard takes the server's reply to the newest answer: its code, and its token, which is
// nil if the server has sent null.
func (d *dialogue) heard(code int32, token []byte) step {
	switch zoodefs.Code(code) {
	case zoodefs.CodeOK:
		return d.next(token)
	case zoodefs.CodeAuthFailed, zoodefs.CodeSessionClosedSASL:
		text := fmt.Sprintf("the server refused it (code %d)", code)
		if likely := d.login.Refused(); likely != "" {
			text += ": " + likely
		}
		return d.refused(errors.New(text))
	default:
		return d.failed(ServerError(code))
	}
}

func (d *dialogue) next(token []byte) step {
	if d.over {
		return d.failed(fmt.Errorf("%w: a token after the end of the login", ErrProtocol))
	}
	answer, proven, err := d.login.Next(token)
	switch {
	case err != nil:
		return d.refused(err)
	case proven && d.sent == 0:
		return d.failed(errors.New("the mechanism has asked the server for nothing"))
	case proven:
		d.over = true
		return step{over: true}
	case d.sent == mostTokens:
		return d.failed(fmt.Errorf("no end after %d tokens", d.sent))
	}
	d.sent++
	return step{answer: answer}
}

// refused is the end of a login that would end so on every connection.
func (d *dialogue) refused(err error) step {
	return d.failed(fmt.Errorf("%w: %w", ErrAuthFailed, err))
}

// failed is the end of a login, of which nothing follows for the next one.
func (d *dialogue) failed(err error) step {
	d.over = true
	return step{over: true, err: &LoginError{Login: d.login.Name(), Err: err}}
}

// mostTurned is how many connections in a row a server may turn away in the login before
// that counts as a refusal. Servers before 3.5.9 refuse by a hang-up. A server that does not
// know the request answers an error, and hangs up. A server that is being stopped does both.
const mostTurned = 3

// turned counts the logins in a row that servers turned away without calling that a refusal.
type turned int

// fate is what follows from the end of a login.
type fate int

const (
	admitted fate = iota
	tryAgain      // on the next connection
	shutOut       // the Link is over
)

// judge takes the end of a login. Too many that are turned away become a refusal. A refusal
// does not end a session that the Link has already (first is false): the servers keep that
// one, and perhaps another of them takes the credentials.
func (n *turned) judge(err error, first bool) (fate, error) {
	var code ServerError
	switch {
	case err == nil:
		*n = 0
		return admitted, nil
	case !closedByPeer(err) && !errors.As(err, &code):
		*n = 0
	default:
		if *n++; *n >= mostTurned {
			err = fmt.Errorf("%w: %w, %d times in a row: the credentials are wrong, or the server knows no SASL", ErrAuthFailed, err, *n)
		}
	}
	if first && errors.Is(err, ErrAuthFailed) {
		return shutOut, err
	}
	return tryAgain, err
}

// LoginError is a login that has failed. It matches [ErrAuthFailed] if it was refused, or
// ended without a proof of the server.
type LoginError struct {
	Login string // the mechanism and the server
	Err   error
}

// Error names no secret.
func (e *LoginError) Error() string {
	return fmt.Sprintf("SASL login by %s: %v", e.Login, e.Err)
}

// Unwrap returns why.
func (e *LoginError) Unwrap() error { return e.Err }
