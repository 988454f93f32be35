// Package fate says what the end of a request means: the error for a server's code, what is
// known of the request's effect, and whether another try may end otherwise. It has neither
// state nor I/O. The sentinels have their documentation in package client, which hands them on.
package fate

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-zookeeper/zk"
)

// Outcome is what is known about the effect of a request. Its numbers are client.Outcome's.
type Outcome int

// The outcomes of a request that has failed.
const (
	Unknown   Outcome = iota // it left, and its answer did not come
	NeverSent                // nothing reached a server
	Refused                  // a server answered with an error
	Unchanged                // it only reads, left, and had no useful answer
)

// TryError is the error of one try with what is known of its fate.
type TryError struct {
	Err     error
	Outcome Outcome
}

// Error is the error without the outcome.
func (f *TryError) Error() string { return f.Err.Error() }

// Unwrap returns the error without the outcome.
func (f *TryError) Unwrap() error { return f.Err }

// Unsent is the error of a try of which nothing reached a server.
func Unsent(err error) *TryError { return &TryError{err, NeverSent} }

// Refusal is the error of a try that a server has refused.
func Refusal(err error) *TryError { return &TryError{err, Refused} }

// Unanswered is the error of a try that may have been applied.
func Unanswered(err error) *TryError { return &TryError{err, Unknown} }

// Of is the outcome of a try that ended with err. An error that is no [TryError] says that nothing
// was sent.
func Of(err error) Outcome {
	var f *TryError
	if errors.As(err, &f) {
		return f.Outcome
	}
	return NeverSent
}

// Is reports whether err is a [TryError] with the outcome o.
func Is(err error, o Outcome) bool {
	var f *TryError
	return errors.As(err, &f) && f.Outcome == o
}

// What the client finds out by itself.
var (
	ErrClosed        = errors.New("client: the client was closed")
	ErrSessionLost   = errors.New("client: session lost")
	ErrNotConnected  = errors.New("client: not connected")
	ErrReplyTooLarge = errors.New("client: the answer is larger than WithMaxReply allows")
	ErrUnsupported   = errors.New("client: not supported by these servers")

	// ErrVanishing is the error of a create that has used up its rounds.
	ErrVanishing = fmt.Errorf("%w: another client deletes the parent as fast as this one makes it; stop that client", zk.ErrNoNode)
)

// hangUpError is the error of a request because of whose size the server may have hung up.
type hangUpError struct{ error }

func (h *hangUpError) Unwrap() error { return h.error }

// HungUp marks the error of a request because of whose size the server may have hung up.
func HungUp(err error) error { return &hangUpError{err} }

// IsHangUp reports whether HungUp has marked err.
func IsHangUp(err error) bool {
	var h *hangUpError
	return errors.As(err, &h)
}

// Trimmed is an error without the prefix of package client, for a text that has the prefix
// already.
func Trimmed(err error) error { return trimmed{err} }

type trimmed struct{ error }

func (t trimmed) Error() string { return strings.TrimPrefix(t.error.Error(), "client: ") }
func (t trimmed) Unwrap() error { return t.error }
