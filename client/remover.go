package client

import (
	"context"
	"errors"

	"github.com/cenkalti/backoff/v4"
	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/retry"
)

// remover deletes nodes that nobody waits for any more: those of a create
// that was given up with its fate unknown, and those of a release that
// failed. Each job is a goroutine that works until the node is gone, its
// session is over or the client is closed (Curator: FailedDeleteManager,
// FindAndDeleteProtectedNodeInBackground).
type remover struct{ core *core }

// DeleteInBackground deletes a node of this session without waiting: it is
// tried until the node is gone, or the session is over and an ephemeral node
// with it. A refusal, whatever its reason, is logged once, and it goes on:
// others may be waiting for the node to go.
func (s *Session) DeleteInBackground(path string) error {
	full, err := s.full(path)
	if err != nil {
		return &OpError{Op: "delete", Path: path, Outcome: OutcomeNeverSent, Err: err}
	}
	s.core.remover.remove(s.bound, full)
	return nil
}

// remove deletes one node of s.
func (r *remover) remove(s *session, full string) {
	r.work(s, full, func(ctx context.Context, s *session) error {
		return deleteOn(ctx, s, full, AnyVersion)
	})
}

// abandoned is what a protected create that was given up may have left.
type abandoned struct {
	owner *session // nil if the nodes outlive their session
	// settled waits for the request in flight and returns what it made.
	settled func(ctx context.Context) ([]string, error)
	nodes   []protectedName
}

// protectedName is where a protected node is found whatever number it got.
type protectedName struct{ dir, prefix string }

// abandon removes what a create may have left. It first lets the request in
// flight come to its end, so that it cannot be applied after the search.
func (r *remover) abandon(a abandoned) {
	r.work(a.owner, join(a.nodes[0].dir, a.nodes[0].prefix), func(ctx context.Context, s *session) error {
		made, err := a.settled(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return err
			}
			if made, err = search(ctx, s, a.nodes); err != nil {
				return err
			}
		}
		for _, full := range made {
			if e := deleteOn(ctx, s, full, AnyVersion); e != nil && !errors.Is(e, zk.ErrNoNode) {
				err = e
			}
		}
		return err
	})
}

// search returns the nodes of those names that the leader knows of.
func search(ctx context.Context, s *session, nodes []protectedName) (found []string, err error) {
	for _, n := range nodes {
		names, err := findPrefix(ctx, s, n.dir, n.prefix)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			found = append(found, join(n.dir, name))
		}
	}
	return found, nil
}

// work runs job on a session that is connected, bound or any, until it
// succeeds or cannot.
func (r *remover) work(bound *session, what string, job func(context.Context, *session) error) {
	c := r.core
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing || bound != nil && bound.ctx.Err() != nil {
		return // the session goes, and the node with it
	}
	life := c.ctx
	if bound != nil {
		life = bound.ctx
	}
	c.wg.Go(func() { // ends with the job, its session or the client
		refused := false
		err := retry.Do(life, retry.Default().WithRand(c.cfg.rand).WithCap(c.servers.timeout()/3), func(ctx context.Context) error {
			s, err := c.await(ctx, bound)
			if err != nil {
				return backoff.Permanent(err)
			}
			err = job(ctx, s)
			var ft *fault
			switch {
			case errors.Is(err, zk.ErrNoNode):
				return nil
			case errors.As(err, &ft) && ft.outcome == OutcomeRefused && !retryable(err) && !refused:
				// Until somebody gives the right, or whatever it takes: giving up
				// would leave the node in everybody's way.
				refused = true
				c.log.Warn("zookeeper: a server refuses to remove a node that is no longer wanted; trying on", "node", what, "reason", err)
			}
			return err
		})
		if err != nil && life.Err() == nil && !errors.Is(err, ErrClosed) {
			c.log.Warn("zookeeper: a node that is no longer wanted could not be removed", "node", what, "reason", err)
		}
	})
}
