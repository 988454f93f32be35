package seqqueue

import (
	"slices"
	"sync"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/inside"
)

// hot is how soon a chain has to be used again for a guard to be worth its request.
const hot = time.Second

// mostIdle bounds the chains that a client keeps without a member.
const mostIdle = 256

// chains are the chains of one client.
type chains struct {
	mu      sync.Mutex // guards the rest; never held across I/O
	all     map[chainKey]*chain
	idle    []*chain // without a use, in the order in which they became idle
	windows map[string]*window
}

// keptChains is the key under which a client keeps its chains.
type keptChains struct{}

// chainsOf returns the chains of the client of c.
func chainsOf(c *client.Client) *chains {
	all, _ := inner.Kept(c, keptChains{}, func() any { return &chains{all: map[chainKey]*chain{}, windows: map[string]*window{}} }).(*chains) // no other package has the key
	return all
}

// use returns the chain with the given key. The client keeps it at least until done.
func (s *chains) use(key chainKey) *chain {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.all[key]
	if c == nil {
		c = &chain{key: key, window: s.window(key.dir), members: map[string]*Member{}}
		c.window.chains = append(c.window.chains, c)
		s.all[key] = c
	}
	if i := slices.Index(s.idle, c); i >= 0 {
		s.idle = slices.Delete(s.idle, i, i+1)
		c.resume()
	}
	c.uses++
	return c
}

// done ends one use. If many chains are idle, done forgets the one that was idle for longest.
func (s *chains) done(c *chain) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.uses--; c.uses > 0 {
		return
	}
	c.rest()
	s.idle = append(s.idle, c)
	if len(s.idle) > mostIdle {
		s.forget(s.idle[0])
		s.idle = slices.Delete(s.idle, 0, 1)
	}
}

// window returns the window for one more chain. All recipes on one directory share it.
func (s *chains) window(dir string) *window {
	w := s.windows[dir]
	if w == nil {
		w = &window{}
		s.windows[dir] = w
	}
	return w
}

// forget forgets a chain that is idle. No member of it is in its window. An acquire that gave up
// may still count there, if its node is not deleted yet: the next window does not know of it.
func (s *chains) forget(c *chain) {
	delete(s.all, c.key)
	w := c.window
	if w.chains = slices.DeleteFunc(w.chains, func(o *chain) bool { return o == c }); len(w.chains) == 0 {
		delete(s.windows, c.key.dir)
	}
}

// rest lets the client remove the guard from the server, if the chain stays idle.
func (c *chain) rest() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rested = time.Now()
	if c.guard != nil {
		c.guard.Stop()
	}
}

// resume keeps the guard, if it still stands.
func (c *chain) resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy = time.Since(c.rested) < hot
	if c.guard != nil && !c.guard.Resume() {
		c.guard = nil
	}
}

// join counts n more acquires that are about to make their nodes, or -1 that has.
func (c *chain) join(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.joining += n
}

// joinUnlessBehind enters the window and is join of one acquire, unless that would stand behind
// another one: behind a node that blocks it, or before it makes a node. With past it joins in
// any case.
func (c *chain) joinUnlessBehind(shared, past bool, most int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if past {
		c.window.enterPast()
	} else if c.behindOne(shared) || !c.window.tryEnter(most) {
		return false
	}
	c.joining++
	return true
}

// behindOne reports whether a new member would stand behind another one. The caller holds c.mu.
func (c *chain) behindOne(shared bool) bool {
	for _, m := range c.members {
		if m.state != over && m.state != left && !m.broken && (!shared || !m.shared) {
			return true
		}
	}
	return !shared && c.joining > 0
}

// ready prepares the chain for another member. list says that a list should follow the
// create, because the number of the node will not tell its place. If the chain was used a
// short time ago, and has no guard, arm says that the caller is to set the guard that numbers
// need, and to call armed.
func (c *chain) ready() (list, arm bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	stands := c.guard != nil && c.guard.Stands()
	list = !stands || c.missed || c.tail == nil || c.tail.broken || c.tail.state == left
	// Several acquires may wait for one connection, and go on at one instant. Which of
	// them comes first depends on the scheduler, so none of these sets the guard.
	arm = !stands && c.busy && !c.arming && c.joining == 1
	c.busy, c.arming = true, c.arming || arm
	return list, arm
}

// armed gives the chain a new guard, or none.
func (c *chain) armed(g inside.Guard) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.arming = false
	if c.guard != nil {
		c.guard.Stop()
	}
	c.guard = g
}
