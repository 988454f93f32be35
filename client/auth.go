package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/docent-go/docent/client/internal/fate"
	"github.com/docent-go/docent/client/internal/session"
	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/internal/wire"
)

// AddAuth presents more credentials, as [WithAuth] does, on the connection that the client
// has. Once the server has accepted them, the client presents them on every later
// connection as well, of this session and the next ones. It presents the same credentials
// once. The ACL of nodes that the client creates stays what [Connect] chose. If that is
// the default of [WithAuth], new nodes are open to the new credentials, too.
//
// The error of refused credentials matches [ErrAuthFailed], and the client forgets them. The
// server closes the connection with its refusal, and only that: the client connects again
// with the credentials that it had, in the same session, and holds stand. On ClickHouse
// Keeper every lost connection ends the session. A server takes a wrong password of scheme
// digest for another user and accepts it.
//
// Without a connection AddAuth waits for one, as every operation does. After an unknown
// outcome the client tries again. If the call fails with an error that matches
// [UnknownOutcome], the connection of that time may have the credentials, and no later one has.
func (c *Client) AddAuth(ctx context.Context, scheme, credentials string) error {
	return c.present(ctx, scheme, credentials, false)
}

// ReplaceAuth is [Client.AddAuth] for credentials that have changed, such as a new password.
// Once the server has accepted them, later connections present them in place of all others
// of the scheme. The present connection keeps the old ones as well until it ends: ZooKeeper
// has no request that takes credentials back. So nodes that are open to the old
// credentials only can be given a new ACL before that.
//
// If the servers refuse the old credentials, so that the client has no connection, nothing can
// ask them. ReplaceAuth then fails with an error that matches [ErrAuthFailed] and
// [ErrNotConnected], and the client presents the new credentials from its next connection on.
func (c *Client) ReplaceAuth(ctx context.Context, scheme, credentials string) error {
	return c.present(ctx, scheme, credentials, true)
}

func (c *Client) present(ctx context.Context, scheme, credentials string, instead bool) error {
	cfg := c.core.cfg
	a, err := newAuth(scheme, credentials)
	if err == nil {
		err = cfg.fits(a)
	}
	if err != nil {
		return c.invalid(ctx, addAuthOp, scheme, fate.Unsent(err))
	}
	ctxerr.Require(ctx)
	ctx, seen := c.core.cfg.observer.observe(ctx, addAuthOp, scheme)
	err = c.perform(ctx, seen, addAuthOp, scheme, presents, func(ctx context.Context, t try) error {
		x := &wire.Exchange{Request: wire.Request{Op: wire.OpAuth, Auth: &a}}
		x.OnAnswer = func() { // before the client can lose the connection
			if x.Reply.Code == 0 {
				cfg.auth.add(a, instead)
			}
		}
		err := t.s.Call(ctx, x)
		if fate.Is(err, fate.Refused) {
			return fate.Refusal(fmt.Errorf("%w: %w", ErrAuthFailed, err))
		}
		return err
	})
	var op *OpError
	if instead && errors.Is(err, ErrAuthFailed) && errors.As(err, &op) && op.Outcome == OutcomeNeverSent {
		cfg.auth.add(a, true)
		op.Err = fmt.Errorf("%w, as the servers refuse the old credentials; the next connection presents the new ones: %w", ErrNotConnected, op.Err)
	}
	return seen.end(err)
}

// An Identity is who a client is for the ACLs of nodes.
type Identity struct {
	Scheme string // "digest", "sasl", "x509", "ip", "super" and so on
	ID     string // the user, without a password; "" for a scheme that names none
}

// Identities asks the server who the client is on the present connection (ZooKeeper 3.7.0,
// whoAmI). It says which credentials a server has accepted, such as "digest" with a user
// name, and the address of the client as the server sees it, of the scheme "ip". They are
// ordered by scheme.
//
// A server takes a wrong password of scheme digest for another identity of the same user
// name, so the answer does not show that the password is right. Servers before 3.7.0 close
// the connection over the first such question; the session goes on over the next. The call
// then fails with [ErrUnsupported], and so do later ones, which are not sent.
func (o *ops) Identities(ctx context.Context) ([]Identity, error) {
	var all []Identity
	err := o.do(ctx, identitiesOp, "", reads, func(ctx context.Context, t try) error {
		x := &wire.Exchange{Request: wire.Request{Op: wire.OpWhoAmI}}
		if err := o.ask(ctx, t.s, session.Identities, x); err != nil {
			return err
		}
		all = make([]Identity, 0, len(x.Reply.ACL))
		for _, a := range x.Reply.ACL {
			all = append(all, Identity{a.Scheme, a.ID})
		}
		return nil
	})
	slices.SortFunc(all, func(a, b Identity) int {
		return cmp.Or(strings.Compare(a.Scheme, b.Scheme), strings.Compare(a.ID, b.ID))
	})
	return all, err
}
