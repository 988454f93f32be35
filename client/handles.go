package client

import (
	"strings"

	"github.com/docent-go/docent/client/internal/fate"
	"github.com/docent-go/docent/client/internal/session"
	"github.com/docent-go/docent/internal/wire"
	"github.com/docent-go/docent/retry"
)

// What callers hold: a client, a session, a part of a transaction. Each knows in whose namespace
// its paths are.

// Client keeps a session with an ensemble. Create it with [Connect], end it
// with [Client.Close]. It is safe for concurrent use; copies that
// [Client.Namespace] returns share its session and its end.
type Client struct {
	ops
}

// Session is one session of a [Client]. Its operations run in this session or not at
// all: once it is over they fail with an error that matches [ErrSessionLost] or
// [ErrClosed]. It is safe for concurrent use.
type Session struct {
	ops
}

// ops are the operations of a [Client] and of a [Session]. Operations of a Client
// run in the current session, whichever that is. Operations of a Session run in
// that session or not at all.
//
// When nothing of an operation reached a server, or repeating it is harmless, the client
// tries it again by the retry policy, within its context. Each operation says what
// happens after an unknown outcome. Errors are [*OpError].
type ops struct {
	core    *core
	prefix  string        // chroot and namespace, "" or an absolute path
	session *sessionState // in which the operations run; nil: the current one
	policy  *retry.Policy // of the operations; nil: that of the client
}

// full maps a path of the caller to the server's.
func (o *ops) full(path string) (string, error) {
	if err := ValidatePath(path); err != nil {
		return "", fate.Unsent(err)
	}
	mapped := path
	switch {
	case o.prefix != "" && path == "/":
		mapped = o.prefix
	case o.prefix != "":
		mapped = o.prefix + path
	}
	return mapped, nil
}

// stripped maps a path of the server to the caller's.
func (o *ops) stripped(full string) string {
	if s := strings.TrimPrefix(full, o.prefix); s != "" {
		return s
	}
	return "/"
}

// inNamespace reports whether dir, the full path of a parent, is a node of the
// namespace itself or above it, and not below.
func (o *ops) inNamespace(dir string) bool {
	return len(o.prefix) > len(o.core.cfg.chroot) && len(dir) <= len(o.prefix)
}

// Op is one part of a transaction; see [CreateOp], [SetOp], [DeleteOp] and
// [CheckOp].
type Op struct {
	name, path string
	in         *ops         // whose namespace path is in; nil: that of the transaction
	request    wire.Request // without the full path, and maybe without an ACL
	needs      session.Feature
	takes      bool // the part needs that feature
	err        error
}

// In returns op with its path in the namespace of c; the path in the result is in it
// too. The client of the transaction must share its session with c. If it does not,
// or c is nil, the transaction fails before it is sent.
func (op Op) In(c *Client) Op {
	if c == nil {
		op.err = misused("%s %s is in the namespace of a nil *Client", op.name, op.path)
		return op
	}
	op.in = &c.ops
	return op
}

// of returns the client whose namespace the path of p is in.
func (o *ops) of(p Op) *ops {
	if p.in == nil {
		return o
	}
	return p.in
}
