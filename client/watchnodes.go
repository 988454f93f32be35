package client

import (
	"context"
	"errors"

	"github.com/docent-go/docent/internal/inside"
	"github.com/docent-go/docent/internal/wire"
)

// watchNodes is inside.Functions.Watch.
func watchNodes(ctx context.Context, s *Session, paths ...string) (nodes []inside.Watched, err error) {
	full := make([]string, len(paths))
	for i, path := range paths {
		if full[i], err = s.full(path); err != nil {
			return nil, s.invalid(ctx, "get", path, err)
		}
	}
	err = s.do(ctx, "get", paths[0], reads, func(ctx context.Context, t try) (err error) {
		nodes, err = t.s.watchedNodes(ctx, full)
		return err
	})
	if err != nil {
		return nil, err
	}
	return nodes, nil
}

// watchedNodes is watched for the data of several nodes.
func (s *sessionState) watchedNodes(ctx context.Context, paths []string) (nodes []inside.Watched, err error) {
	nodes = make([]inside.Watched, len(paths))
	read := make([]bool, len(paths))
	defer func() {
		if err != nil {
			for _, n := range nodes {
				if n.Watch != nil {
					n.Watch.Stop()
				}
			}
		}
	}()
	if err := s.armTogether(ctx, paths, nodes, read); err != nil {
		return nodes, err
	}
	for i, path := range paths {
		if read[i] {
			continue
		}
		x, w, err := s.watched(ctx, wire.OpGetData, path)
		if nodes[i] = watchedBy(x, w, err); err != nil && !ofOneNode(err) {
			return nodes, err
		}
	}
	return nodes, nil
}

// armTogether reads, in one write, those of paths whose watches no other request changes
// at the moment, and says in read which these are. Each read asks for a watch, also if
// another reader has one: on the server both are one. So the requests do not depend on
// what the other readers of the client do at the same instant.
func (s *sessionState) armTogether(ctx context.Context, paths []string, nodes []inside.Watched, read []bool) error {
	var xs []*wire.Exchange
	var on []*sharedWatch
	var arms []bool
	for i, path := range paths {
		w, arm, ask, err := s.hub.joinToo(watchKey{wire.OpGetData, path})
		if w == nil || err != nil {
			continue // watched says why, or waits
		}
		x := asked(wire.OpGetData, path)
		x.Request.Watch = ask
		xs, on, arms, read[i] = append(xs, x), append(on, w), append(arms, arm), true
	}
	if len(xs) == 0 {
		return nil
	}
	ended := s.exchange(ctx, xs...)
	var failed error
	for i := range paths {
		if !read[i] {
			continue
		}
		x, w, arm := xs[0], on[0], arms[0]
		xs, on, arms = xs[1:], on[1:], arms[1:]
		err := s.outcome(ctx, x, ended)
		if arm {
			s.hub.armed(w, x, err)
		} else {
			s.hub.armedToo(w, x, err)
		}
		if nodes[i] = watchedBy(x, &OneShotWatch{on: w}, err); err != nil && !ofOneNode(err) {
			failed = err
		}
	}
	return failed
}

// joinToo is tryJoin for a reader that asks for the watch in any case, unless a persistent
// one stands: ask says so. w is nil if a request is about to change the watches of path.
func (h *hub) joinToo(key watchKey) (w *sharedWatch, arm, ask bool, err error) {
	w, arm, busy, err := h.tryJoin(key)
	if busy != nil || err != nil {
		return nil, false, false, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return w, arm, arm || !h.covered(key), nil
}

// armedToo is armed for a reader that did not have to arm w. If w has fired before the
// read, the server may have a watch without a reader.
func (h *hub) armedToo(w *sharedWatch, x *wire.Exchange, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil {
		if w.wanted--; w.wanted == 0 && h.watches[w.key] == w {
			h.discardLocked(w.key, false)
		}
	}
	if x.Request.Watch && x.Sent() && h.watches[w.key] == nil && (err == nil || !x.Answered()) {
		h.discardLocked(w.key, !x.Answered())
	}
}

// ofOneNode reports whether err is about the node, and not about the connection.
func ofOneNode(err error) bool { return errors.Is(err, ErrNoNode) || errors.Is(err, ErrNoAuth) }

// watchedBy is what the read x says, which has left w unless err says otherwise.
func watchedBy(x *wire.Exchange, w *OneShotWatch, err error) inside.Watched {
	if err != nil {
		return inside.Watched{Err: err}
	}
	return inside.Watched{Data: x.Reply.Data, Stat: stat(x), Watch: w}
}
