package zkcontainer

import (
	"context"
	"net"
	"sync"
	"time"
)

// front is a proxy before one port of one server.
type front struct {
	listener net.Listener
	target   string
	ctx      context.Context //nolint:containedctx // the life of the front, for its dials
	cancel   context.CancelFunc
	group    sync.WaitGroup // every goroutine of the front

	requests, replies gate

	mu     sync.Mutex // guards the rest; never held across I/O
	refuse bool
	delay  time.Duration
	pairs  map[*pair]bool
	closed bool
}

func newFront(ctx context.Context, target string) (*front, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	f := &front{listener: listener, target: target, pairs: map[*pair]bool{}}
	f.ctx, f.cancel = context.WithCancel(context.WithoutCancel(ctx))
	f.group.Go(f.accept)
	return f, nil
}

func (f *front) addr() string { return f.listener.Addr().String() }

func (f *front) accept() {
	for {
		conn, err := f.listener.Accept()
		if err != nil {
			return // closed
		}
		p := newPair(f, conn)
		if !f.take(p) {
			p.close()
			continue
		}
		f.group.Go(p.serve)
	}
}

// take adds a pair unless the front refuses.
func (f *front) take(p *pair) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.refuse || f.closed {
		return false
	}
	f.pairs[p] = true
	return true
}

func (f *front) drop(p *pair) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.pairs, p)
}

func (f *front) hold(requests, replies bool) {
	f.requests.set(requests)
	f.replies.set(replies)
}

func (f *front) setRefuse(refuse bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refuse = refuse
}

func (f *front) setDelay(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.delay = max(d, 0)
}

func (f *front) currentDelay() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.delay
}

func (f *front) all() []*pair {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []*pair
	for p := range f.pairs {
		all = append(all, p)
	}
	return all
}

func (f *front) cut() {
	for _, p := range f.all() {
		p.close()
	}
}

func (f *front) sessions() []Session {
	var all []Session
	for _, p := range f.all() {
		if s, ok := p.session(); ok {
			all = append(all, s)
		}
	}
	return all
}

// close returns when every goroutine has ended.
func (f *front) close() {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.cancel()
	_ = f.listener.Close()
	f.cut()
	f.group.Wait()
}

// gate lets one direction pass, or not.
type gate struct {
	mu   sync.Mutex
	shut chan struct{} // closed when the gate opens; nil if it is open
}

func (g *gate) set(shut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case shut && g.shut == nil:
		g.shut = make(chan struct{})
	case !shut && g.shut != nil:
		close(g.shut)
		g.shut = nil
	}
}

// pass waits until the gate is open or ctx has ended.
func (g *gate) pass(ctx context.Context) error {
	for {
		g.mu.Lock()
		shut := g.shut
		g.mu.Unlock()
		if shut == nil {
			return context.Cause(ctx)
		}
		select {
		case <-shut:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
