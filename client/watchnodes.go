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
	defer func() {
		if err != nil {
			for _, n := range nodes {
				if n.Watch != nil {
					n.Watch.Stop()
				}
			}
		}
	}()
	together := s.shareAll(paths)
	if err := s.readTogether(ctx, together, nodes); err != nil {
		return nodes, err
	}
	for i, path := range paths {
		if together[i].w != nil {
			continue
		}
		x, w, err := s.watched(ctx, wire.OpGetData, path)
		if nodes[i] = watchedBy(x, w, err); err != nil && !ofOneNode(err) {
			return nodes, err
		}
	}
	return nodes, nil
}

// sharedRead is a read of one of several nodes, with the watch that it is to leave. It is zero
// if watched has to read the node: another request is about to change its watches, or no
// more watches are possible.
type sharedRead struct {
	w   *sharedWatch
	arm bool // no other reader arms w
	x   *wire.Exchange
}

// shareAll shares the watches on the data of the nodes at paths, without waiting. Each read
// asks for the watch, also if another reader has armed it: on the server both are one. So the
// requests do not depend on what other readers of the client do at the same instant.
func (s *sessionState) shareAll(paths []string) []sharedRead {
	all := make([]sharedRead, len(paths))
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	for i, path := range paths {
		key := watchKey{wire.OpGetData, path}
		w, arm, busy, err := s.hub.tryShareLocked(key)
		if busy != nil || err != nil {
			continue
		}
		x := asked(wire.OpGetData, path)
		x.Request.Watch = arm || !s.hub.covered(key)
		all[i] = sharedRead{w, arm, x}
	}
	return all
}

// readTogether sends the reads in one write. The error is of the connection or the session,
// and not of a node.
func (s *sessionState) readTogether(ctx context.Context, all []sharedRead, nodes []inside.Watched) (failed error) {
	var xs []*wire.Exchange
	for _, j := range all {
		if j.w != nil {
			xs = append(xs, j.x)
		}
	}
	if len(xs) == 0 {
		return nil
	}
	ended := s.exchange(ctx, xs...)
	for i, j := range all {
		if j.w == nil {
			continue
		}
		err := s.outcome(ctx, j.x, ended)
		if j.arm {
			s.hub.armed(j.w, j.x, err)
		} else {
			s.hub.armedToo(j.w, j.x, err)
		}
		if nodes[i] = watchedBy(j.x, &OneShotWatch{on: j.w}, err); err != nil && !ofOneNode(err) {
			failed = err
		}
	}
	return failed
}

// armedToo is armed for a reader that did not have to arm w. If w has fired before the
// read, the server may have a watch without a reader.
func (h *hub) armedToo(w *sharedWatch, x *wire.Exchange, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil {
		if w.wanted--; w.wanted == 0 && h.watches[w.key] == w {
			h.unwantLocked(w.key, false)
		}
	}
	if x.Request.Watch && x.Sent() && h.watches[w.key] == nil && (err == nil || !x.Answered()) {
		h.unwantLocked(w.key, !x.Answered())
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
