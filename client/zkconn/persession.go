package zkconn

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
)

// PerSession runs f for code that takes a *zk.Conn, once in each session of c, with the zk.Conn of
// that session. The context of f ends with the session, or with ctx; f then gives up what
// it made with the zk.Conn, and returns. When the session is over PerSession waits for the
// next one and runs f again. It returns the error of f when f fails while its session stands,
// and nil when f then returns nil. Otherwise it returns why ctx has ended, or the error of
// [client.Client.Session], such as [client.ErrClosed].
//
// Paths of the zk.Conn have no namespace and no chroot; [client.Client.Conn] says what else
// holds for it. Its Close ends the session for the whole client.
func PerSession(ctx context.Context, c *client.Client, f func(context.Context, *zk.Conn) error) error {
	for {
		s, err := c.Session(ctx)
		if err != nil {
			return err
		}
		raw := c.Conn()
		if raw == nil || raw.SessionID() != s.ID() {
			continue // the session is over already
		}
		err, lasts := within(ctx, s, raw, f)
		switch {
		case ctx.Err() != nil:
			return errors.Join(err, context.Cause(ctx))
		case lasts:
			return err
		}
	}
}

// within runs f in the session, and reports whether the session stands when f returns.
func within(ctx context.Context, s *client.Session, raw *zk.Conn, f func(context.Context, *zk.Conn) error) (err error, lasts bool) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(s.Context(), func() { cancel(context.Cause(s.Context())) })
	defer stop()
	err = f(ctx, raw)
	return err, s.Err() == nil
}
