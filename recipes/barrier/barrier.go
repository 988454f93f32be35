package barrier

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/ctxerr"
)

// DistributedBarrier blocks processes while its node stands. It is Curator's
// DistributedBarrier: one persistent node at the path itself. Missing parents are made
// as containers.
//
// It is safe for concurrent use, keeps no state and needs no Close.
type DistributedBarrier struct {
	settings

	c    *client.Client
	path string
}

// NewDistributedBarrier returns the barrier at path. It does no I/O.
func NewDistributedBarrier(c *client.Client, path string, opts ...Option) (*DistributedBarrier, error) {
	set, err := validate(c, path, opts)
	if err != nil {
		return nil, err
	}
	return &DistributedBarrier{settings: set, c: c, path: path}, nil
}

func validate(c *client.Client, path string, opts []Option) (settings, error) {
	if c == nil {
		return settings{}, errors.New("barrier: the client is nil; make one with client.Connect")
	}
	if path == "/" {
		return settings{}, errors.New(`barrier: the path is "/"; give the barrier a node of its own, like "/barriers/start"`)
	}
	if _, err := inner.ServerPath(c, path); err != nil {
		return settings{}, fmt.Errorf("barrier: %w", err)
	}
	set, err := newSettings(opts)
	if err != nil {
		return settings{}, fmt.Errorf("barrier: %w", err)
	}
	return set, nil
}

// Path is the path of the node.
func (b *DistributedBarrier) Path() string { return b.path }

// Set makes the barrier, which may be there already. After a lost answer Set looks,
// and makes the barrier again if it is not there. After an error that matches
// client.UnknownOutcome the barrier may have been made.
func (b *DistributedBarrier) Set(ctx context.Context) error {
	for {
		_, err := b.c.Create(ctx, b.path, inner.DefaultData(b.c), b.parents()...)
		switch {
		case err == nil, errors.Is(err, zk.ErrNodeExists):
			return nil
		case !client.UnknownOutcome(err), ctx.Err() != nil:
			return err
		}
		if b.c.Sync(ctx, b.path) != nil {
			return err
		}
	}
}

// Remove removes the barrier, which may be gone already, and so lets all pass. It
// removes one barrier: after a lost answer it does not remove what another client
// has set since (Curator's retry does). There is one exception: another client
// removes the barrier and sets it again between the look and the removal. Then
// Remove removes the new one, as the server compares versions and both have the
// same. After an error that matches client.UnknownOutcome the barrier may have
// been removed.
func (b *DistributedBarrier) Remove(ctx context.Context) error {
	if err := b.c.Sync(ctx, b.path); err != nil {
		return err
	}
	var ours int64 // the node that is to go
	for {
		there, stat, err := b.c.Exists(ctx, b.path)
		if err != nil || !there || ours != 0 && stat.Czxid != ours {
			return err
		}
		ours = stat.Czxid
		_, err = b.c.Multi(ctx, client.DeleteOp(b.path, stat.Version)) // Delete would repeat itself
		switch {
		case err == nil, errors.Is(err, zk.ErrNoNode):
			return nil
		case errors.Is(err, zk.ErrBadVersion):
		case !client.UnknownOutcome(err), ctx.Err() != nil:
			return err
		}
		if b.c.Sync(ctx, b.path) != nil {
			return err
		}
	}
}

// Wait blocks while the barrier stands. It returns nil if there was a moment
// during the call at which it did not, and at once if there is no barrier. It
// asks the server to catch up first, so it sees every Set that returned before
// the call began. A Curator on a server that lags behind passes there.
//
// A lost connection or session changes nothing, unless the client's retry policy gives
// up. The error matches that of ctx, is the server's refusal, or says why the policy
// gave up. If the barrier may not be read, Wait watches its parent, and
// servers since 3.8.4 and 3.9.2 refuse it (ZOOKEEPER-2590). Wait may be called by any
// number of goroutines.
func (b *DistributedBarrier) Wait(ctx context.Context) error {
	w := waiting{}
	for {
		s, err := b.c.Session(ctx)
		if err != nil {
			return err
		}
		err = b.waitIn(ctx, s, &w)
		if err == nil || s.Err() == nil || ctx.Err() != nil {
			return err
		}
	}
}

// waiting decides for one Wait. It has no I/O.
//
//	state        what was seen               then
//	begun        no barrier                  passed
//	begun        a barrier                   blocked by it
//	blocked      no barrier, or another one  passed: in between there was none
//	blocked      the same barrier            blocked
type waiting struct {
	by int64 // czxid of the barrier that blocks, 0 before the first look
}

// passes reports whether the waiter passes, of which czxid is that of the barrier that was
// seen, or 0 without one.
func (w *waiting) passes(czxid int64) bool {
	before := w.by
	w.by = czxid
	return czxid == 0 || before != 0 && before != czxid
}

// waitIn is Wait in one session. Servers that a session moves to have seen all that it
// has seen.
func (b *DistributedBarrier) waitIn(ctx context.Context, s *client.Session, state *waiting) error {
	if err := s.Sync(ctx, b.path); err != nil {
		return err
	}
	for {
		there, stat, w, err := look(ctx, s, b.path)
		if err != nil {
			return err
		}
		czxid := int64(0)
		if there {
			czxid = stat.Czxid
		}
		if state.passes(czxid) {
			w.Stop()
			return nil
		}
		select {
		case <-w.Done():
		case <-ctx.Done():
			w.Stop()
			return fmt.Errorf("barrier: %s stands: %w", b.path, ctxerr.Ended(ctx))
		}
	}
}

// look reads the stat of a node and leaves a watch on it if it is there. It leaves none
// on a node that may never come, as Curator does (CURATOR-654). Servers keep back the
// events of a node that may not be read (CVE-2024-23944): the watch is on its directory
// then. Since 3.8.4 and 3.9.2 they refuse its stat as well (ZOOKEEPER-2590).
func look(ctx context.Context, s *client.Session, path string) (bool, *zk.Stat, *client.OneShotWatch, error) {
	_, stat, w, err := s.GetW(ctx, path)
	switch {
	case err == nil:
		return true, stat, w, nil
	case errors.Is(err, zk.ErrNoNode):
		return false, nil, nil, nil
	case !errors.Is(err, zk.ErrNoAuth):
		return false, nil, nil, err
	}
	_, _, w, err = s.ChildrenW(ctx, max(path[:strings.LastIndexByte(path, '/')], "/"))
	if errors.Is(err, zk.ErrNoNode) {
		return false, nil, nil, nil
	}
	if err != nil {
		return false, nil, nil, err
	}
	there, stat, err := s.Exists(ctx, path)
	if err != nil || !there {
		w.Stop()
		return false, nil, nil, err
	}
	return true, stat, w, nil
}
