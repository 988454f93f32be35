package wire

import (
	"fmt"
	"io"
	"log/slog"

	"github.com/docent-go/docent/internal/zoodefs"
)

// Auth is one set of credentials, sent after every accepted handshake.
// Formatting, logging and marshalling show the scheme only.
type Auth struct {
	Scheme      string
	Credentials []byte
}

// String returns the scheme and hides the credentials.
func (a Auth) String() string { return a.Scheme + ":REDACTED" }

// Format hides the credentials from every verb.
func (a Auth) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, a.String()) }

// LogValue hides the credentials from slog.
func (a Auth) LogValue() slog.Value { return slog.StringValue(a.String()) }

// MarshalText hides the credentials from JSON and other encoders, which do not
// ask for LogValue when an Auth is part of a larger value. It never fails.
func (a Auth) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// append appends the body of the request.
func (a Auth) append(b []byte) []byte {
	return putBytes(putBytes(put32(b, 0), a.Scheme), a.Credentials)
}

// authFrames returns one setAuth request per Auth, ready to be written at once.
func authFrames(auth []Auth) []byte {
	var b []byte
	for _, a := range auth {
		start := len(b)
		b = append(b, 0, 0, 0, 0)
		b = put32(b, zoodefs.XidAuth)
		b = put32(b, int32(zoodefs.OpAuth))
		b = sealFrame(a.append(b), start)
	}
	return b
}
