package duties

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

// Parents are the persistent nodes that this client has made where the servers have
// no containers. Servers remove a container when it is empty. The client does the
// same with these nodes. It leaves nodes that another client made, made again, or has
// written to.
type Parents struct {
	life Life

	mu      sync.Mutex       // guards the rest; never held across I/O
	made    map[string]int64 // full path: czxid
	running bool
}

// NewParents returns the parents of a client that has made none.
func NewParents(life Life) *Parents { return &Parents{life: life, made: map[string]int64{}} }

// Add notes a node that is to be removed when it is empty.
func (p *Parents) Add(dir string, czxid int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.made[dir] = czxid
	p.running = p.running || p.life.Go(p.run) // run ends when no node is left, or with the client
}

// run looks after the nodes once in a session timeout.
func (p *Parents) run() {
	for ctxerr.Sleep(p.life.Context, p.life.Timeout()) == nil {
		s, err := p.life.Await(p.life.Context)
		if err != nil {
			continue // the credentials are refused, or the client is closed, which ends the loop
		}
		p.sweep(s.Context(), s)
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
func (p *Parents) sweep(ctx context.Context, s Session) (removed bool) {
	p.mu.Lock()
	all := make([]string, 0, len(p.made))
	for dir := range p.made {
		all = append(all, dir)
	}
	p.mu.Unlock()
	slices.SortFunc(all, func(a, b string) int { // the deepest first
		return cmp.Or(cmp.Compare(len(b), len(a)), strings.Compare(a, b))
	})
	for batch := range slices.Chunk(all, AtOnce) {
		removed = p.remove(ctx, s, p.empty(ctx, s, batch)) || removed
	}
	return removed
}

// empty returns the deletions of the nodes of dirs that are empty. It forgets nodes
// that are not this client's any more.
func (p *Parents) empty(ctx context.Context, s Session, dirs []string) (deletions []*wire.Exchange) {
	xs := make([]*wire.Exchange, len(dirs))
	for i, dir := range dirs {
		xs[i] = &wire.Exchange{Request: wire.Request{Op: wire.OpExists, Path: dir}}
	}
	ended := s.Do(ctx, xs...)
	for i, x := range xs {
		err := s.Outcome(ctx, x, ended)
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
func (p *Parents) remove(ctx context.Context, s Session, deletions []*wire.Exchange) (removed bool) {
	if len(deletions) == 0 {
		return false
	}
	ended := s.Do(ctx, deletions...)
	for _, x := range deletions {
		switch err := s.Outcome(ctx, x, ended); {
		case err == nil, errors.Is(err, zk.ErrNoNode):
			removed = true
			p.forget(x.Request.Path)
		case errors.Is(err, zk.ErrNoAuth), errors.Is(err, zk.ErrBadVersion):
			p.forget(x.Request.Path)
		}
	}
	return removed
}

func (p *Parents) czxid(dir string) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.made[dir]
}

func (p *Parents) forget(dir string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.made, dir)
}

// lastSweep is how long Close waits for the removal of empty parents.
const lastSweep = time.Second

// Leave removes the empty nodes before the client is closed.
func (p *Parents) Leave(ctx context.Context, s Session) {
	ctx, cancel := context.WithTimeout(ctx, lastSweep)
	defer cancel()
	for p.sweep(ctx, s) {
	}
}
