package recipes

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
)

// revocation is what a node's data says when its owner is asked to release
// (Curator: LockInternals.REVOKE_MESSAGE).
const revocation = "__REVOKE__"

func isRevocation(data []byte) bool { return string(data) == revocation }

// RequestRelease asks the owner of a contender to release the lock or to give
// up waiting, in Curator's protocol (Revoker.attemptRevoke): it replaces the
// data of the contender's node. Nothing is taken from the owner, who decides;
// see [Hold.Revoked]. c has the namespace of the lock that listed the
// contender, whose path is in it. A contender that is gone is no error. Locks of Curator
// answer if they were made revocable, kazoo's and go-zookeeper's do not.
//
// After an error it is not known whether the owner will hear of it, unless a
// server refused the request, as with client.ErrNoAuth. Asking again does no harm.
func RequestRelease(ctx context.Context, c *client.Client, contender Contender) error {
	_, err := c.Set(ctx, contender.Path, []byte(revocation), client.AnyVersion)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return &LockError{Op: "request release of", Path: contender.Path, Err: err}
	}
	return nil
}

// Revoked is closed when somebody has asked for the release of the lock, by
// [RequestRelease] or Curator's Revoker. The lock is still held then. It may
// take 20 ms until a new hold hears of it, and requests that were written
// while it waited count.
func (h *Hold) Revoked() <-chan struct{} { return h.grant.request().Done() }

// OnRevoke runs f on a goroutine of its own when somebody asks for the release
// of the lock, at once if that has happened; once at most, and not after the
// hold has ended. The returned function keeps f from being started and reports
// whether it did, as that of [context.AfterFunc].
func (h *Hold) OnRevoke(f func()) (stop func() bool) {
	return context.AfterFunc(h.grant.request(), func() {
		if h.ctx.Err() == nil {
			f()
		}
	})
}
