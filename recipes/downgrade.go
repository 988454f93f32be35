package recipes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/internal/seqqueue"
)

// WriteHold is a hold of a [WriteLock].
type WriteHold struct {
	*Hold

	read *ReadLock
}

// Downgrade turns the write hold into a read hold. It takes the read lock in the
// write hold's place and then releases the write hold. No writer holds the lock
// in between, however long it has been waiting. Readers that stand before the
// first waiting writer are let in. The read hold has the write hold's fencing
// token. ctx bounds both requests, and the read hold carries its values.
//
// If the write lock was re-entered, this hold of it ends and the others stay. The
// read hold counts beside them from now on, and outlasts them.
//
// On error there is no read hold, and the write hold is as it was. It is held,
// and to be released, unless the error matches [ErrLost] or [ErrReleased].
// Without error the write hold is over. If ctx ended in between, the write node
// is still being removed in the background, and [Hold.Release] of the write hold
// says so. Until the node is gone, other readers wait.
//
// There is no way back: see [WriteLock.Acquire].
func (h *WriteHold) Downgrade(ctx context.Context) (*Hold, error) {
	read, err := h.downgrade(ctx)
	if err != nil {
		if h.Err() == nil {
			err = notOver(err)
		}
		return nil, h.read.fail("downgrade", err)
	}
	_ = h.Release(ctx) // the caller can ask again
	return read, nil
}

func (h *WriteHold) downgrade(ctx context.Context) (*Hold, error) {
	if err := h.Err(); err != nil {
		if errors.Is(err, ErrReleased) {
			err = fmt.Errorf("%w: this write hold was downgraded or released before", err)
		}
		return nil, err
	}
	if g := heldBy(ctx, h.read.key); h.read.shares(g) {
		if read, ok, _ := g.reenter(ctx); ok {
			return read, nil // otherwise it was lost, which says nothing of the write hold
		}
	}
	ctx, seen := observe(ctx, h.read.c, h.read.info(false))
	read, ok, err := h.read.underWrite(ctx, h.grant, slices.DeleteFunc(around(ctx), func(o *grant) bool { return o == h.grant }))
	if !ok {
		err = cmp.Or(err, ErrReleased) // by another goroutine, just now
	}
	seen.given(ctx, read, err)
	return read, err
}

// underWrite takes the read lock in the place of a write hold, if there is one.
// The read node is plain, ephemeral and protected. It has the number of the write
// node, so that it stands before the contenders behind the write node (Curator's
// ReadLock since 5.5, CURATOR-621). With a number of its own the read node would
// stand behind a writer that waits. The transaction checks the write node: had another client
// deleted it, another writer might hold already.
func (l *ReadLock) underWrite(ctx context.Context, w *grant, around []*grant) (h *Hold, ok bool, err error) {
	if w == nil {
		return nil, false, nil
	}
	stays, ok, err := w.reenter(ctx) // no release deletes the write node meanwhile
	if !ok {
		return nil, false, err
	}
	defer func() { _ = stays.Release(ctx) }() // of the write hold, should it be the last
	// This call keeps the write hold from being released, also after its loss, and
	// for that the client would give up the session.
	bounded, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(stays.Context(), func() { cancel(context.Cause(stays.Context())) })()
	w.Break() // its end makes no room for a writer any more
	node := w.Paths[0]
	slash := strings.LastIndexByte(node, '/')
	number := node[strings.LastIndex(node, writeTag)+len(writeTag):]
	made, err := inner.CreateGroup(bounded, w.Session, []newNode{{
		Dir: node[:slash], Prefix: readTag + number, Plain: true,
		Data: l.nodeData(l.c), ACL: l.acl,
	}}, client.CheckOp(node, client.AnyVersion))
	if err != nil {
		var refused *client.MultiError
		if errors.As(err, &refused) && errors.Is(err, zk.ErrNoNode) {
			w.lose(ErrNodeDeleted)
		}
		return nil, false, cmp.Or(w.err(), takenAway(err))
	}
	h, err = take(bounded, place{
		Own:  seqqueue.Own{Session: w.Session, Paths: []string{made[0].Path}},
		lock: l.path, key: l.key, c: l.c, set: &l.settings, token: w.token, shared: true,
	}, around)
	if err != nil {
		return nil, false, cmp.Or(w.err(), err) // with the session both are lost
	}
	return h, true, nil
}
