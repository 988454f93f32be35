// Package sessions ends ZooKeeper sessions of other clients, as an expiry would,
// but at once.
package sessions

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/docent-go/docent/internal/wire"
)

// ErrUnknown means that the server does not know the session: it never existed or
// is over already.
var ErrUnknown = wire.ErrRefused

const (
	attempts = 5
	// timeout is offered in the handshake and matters only if the session survives.
	timeout = 10 * time.Second
)

// KillSession closes the session with this id at the server at addr, whichever client
// owns it, with the password that ZooKeeper derives from the id. After nil it is
// closed in the whole ensemble, and its ephemeral nodes are gone. Its owner first
// loses the connection, and is then told that the session expired. If the owner comes
// back in the middle, the server closes this connection, and KillSession tries again.
// It returns an error that wraps [ErrUnknown] when there is no such session. After
// any other error, also when ctx ends, the session may or may not be closed.
func KillSession(ctx context.Context, addr string, id int64) error {
	var last error
	for range attempts {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
		if err != nil {
			return fmt.Errorf("kill session %#x: %w", uint64(id), err)
		}
		err = wire.EndSession(ctx, conn, id, derivedPassword(id), timeout, nil)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, ErrUnknown) && last != nil:
			return nil //nolint:nilerr // an earlier attempt did it
		case errors.Is(err, ErrUnknown), ctx.Err() != nil:
			return fmt.Errorf("kill session: %w", err)
		}
		last = err
	}
	return fmt.Errorf("kill session: %d attempts: %w", attempts, last)
}
