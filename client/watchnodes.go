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

// armTogether reads, in one write, those of paths whose watches nobody else sets at the
// moment, and says in read which these are.
func (s *sessionState) armTogether(ctx context.Context, paths []string, nodes []inside.Watched, read []bool) error {
	var xs []*wire.Exchange
	var on []*sharedWatch
	for i, path := range paths {
		w, arm, busy, err := s.hub.tryJoin(watchKey{wire.OpGetData, path})
		switch {
		case err != nil, busy != nil: // watched says why, or waits
		case !arm:
			s.hub.giveUp(w) // watched joins it again
		default:
			x := asked(wire.OpGetData, path)
			x.Request.Watch = true
			xs, on, read[i] = append(xs, x), append(on, w), true
		}
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
		x, w := xs[0], on[0]
		xs, on = xs[1:], on[1:]
		err := s.outcome(ctx, x, ended)
		s.hub.armed(w, x, err)
		if nodes[i] = watchedBy(x, &OneShotWatch{on: w}, err); err != nil && !ofOneNode(err) {
			failed = err
		}
	}
	return failed
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
