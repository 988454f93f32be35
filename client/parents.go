package client

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/internal/wire"
)

// parents are the persistent nodes that this client has made where the servers have
// no containers. Servers remove a container when it is empty. The client does the
// same with these nodes. It leaves nodes that another client made, made again, or has
// written to.
type parents struct {
	core *core

	mu      sync.Mutex       // guards the rest; never held across I/O
	made    map[string]int64 // full path: czxid
	running bool
}

func newParents(c *core) *parents { return &parents{core: c, made: map[string]int64{}} }

// makeParent makes a missing parent. If spec asks for a container and the servers
// have none, it makes a persistent node, which the client removes later.
func (s *sessionState) makeParent(ctx context.Context, dir string, spec createSpec) error {
	if !spec.container {
		return s.call(ctx, &wire.Exchange{Request: spec.request(dir, nil)})
	}
	err := s.supports(ctx, containerNodes)
	spec.container = err == nil
	if err != nil && !errors.Is(err, ErrUnsupported) {
		return err
	}
	x := &wire.Exchange{Request: spec.request(dir, nil)}
	err = s.call(ctx, x)
	switch {
	case spec.container && errors.Is(s.refused(containerNodes, err), ErrUnsupported):
		return s.makeParent(ctx, dir, spec) // the node is remembered
	case err == nil && !spec.container:
		s.core.parents.add(dir, x.Reply.Zxid)
	}
	return err
}

// add notes a node that is to be removed when it is empty.
func (p *parents) add(dir string, czxid int64) {
	c := p.core
	c.mu.Lock()
	defer c.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.made[dir] = czxid
	if !p.running && !c.closing {
		p.running = true
		c.wg.Go(p.run) // ends when no node is left, or with the client
	}
}

// run looks after the nodes once in a session timeout.
func (p *parents) run() {
	c := p.core
	for ctxerr.Sleep(c.ctx, c.servers.Timeout()) == nil {
		s, err := c.await(c.ctx, nil, nil)
		if err != nil {
			continue // the credentials are refused, or the client is closed, which ends the loop
		}
		p.sweep(s.ctx, s)
		p.mu.Lock()
		p.running = len(p.made) > 0
		ended := !p.running
		p.mu.Unlock()
		if ended {
			return
		}
	}
}

// sweep removes the nodes that are empty. It reports whether there were any: then the
// nodes above them may be empty now.
func (p *parents) sweep(ctx context.Context, s *sessionState) (removed bool) {
	p.mu.Lock()
	all := make([]string, 0, len(p.made))
	for dir := range p.made {
		all = append(all, dir)
	}
	p.mu.Unlock()
	slices.SortFunc(all, func(a, b string) int { // the deepest first
		return cmp.Or(cmp.Compare(len(b), len(a)), strings.Compare(a, b))
	})
	for batch := range slices.Chunk(all, deletionsAtOnce) {
		removed = p.remove(ctx, s, p.empty(ctx, s, batch)) || removed
	}
	return removed
}

// empty returns the deletions of the nodes of dirs that are empty. It forgets nodes
// that are not this client's any more.
func (p *parents) empty(ctx context.Context, s *sessionState, dirs []string) (deletions []*wire.Exchange) {
	xs := make([]*wire.Exchange, len(dirs))
	for i, dir := range dirs {
		xs[i] = asked(wire.OpExists, dir)
	}
	ended := s.link.Do(ctx, xs...)
	for i, x := range xs {
		err := s.outcome(ctx, x, ended)
		now := x.Reply.Stat
		switch {
		case errors.Is(err, zk.ErrNoNode), err == nil && (now.Czxid != p.czxid(dirs[i]) || now.Version != 0):
			p.forget(dirs[i])
		case err == nil && now.NumChildren == 0:
			deletions = append(deletions, deletion(dirs[i], now.Version))
		}
	}
	return deletions
}

// remove sends the deletions. A node that has got a child meanwhile stays. A node
// that may not be deleted is forgotten.
func (p *parents) remove(ctx context.Context, s *sessionState, deletions []*wire.Exchange) (removed bool) {
	if len(deletions) == 0 {
		return false
	}
	ended := s.link.Do(ctx, deletions...)
	for _, x := range deletions {
		switch err := s.outcome(ctx, x, ended); {
		case err == nil, errors.Is(err, zk.ErrNoNode):
			removed = true
			p.forget(x.Request.Path)
		case errors.Is(err, zk.ErrNoAuth), errors.Is(err, zk.ErrBadVersion):
			p.forget(x.Request.Path)
		}
	}
	return removed
}

func (p *parents) czxid(dir string) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.made[dir]
}

func (p *parents) forget(dir string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.made, dir)
}

// lastSweep is how long Close waits for the removal of empty parents.
const lastSweep = time.Second

// leave removes the empty nodes before the client is closed.
func (p *parents) leave(ctx context.Context, s *sessionState) {
	ctx, cancel := context.WithTimeout(ctx, lastSweep)
	defer cancel()
	for p.sweep(ctx, s) {
	}
}
