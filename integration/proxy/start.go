package proxy

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// New starts a proxy for the server at target. It listens on a port of 127.0.0.1,
// see [Proxy.Addr], until Close. ctx bounds the start only.
func New(ctx context.Context, target string, opts ...Option) (*Proxy, error) {
	addr, err := reserve()
	if err != nil {
		return nil, fmt.Errorf("proxy: reserve a port: %w", err)
	}
	listener, err := addr.listen()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("proxy: listen: %w", err), addr.release())
	}
	p := &Proxy{
		target: target, seed: rand.Uint64(), addr: addr,
		done: make(chan struct{}), listeners: make(chan net.Listener), dialer: net.Dialer{Timeout: dialLimit},
		listener: listener, live: map[*conn]bool{}, hung: map[net.Conn]bool{}, trace: newTrace(),
	}
	for _, o := range opts {
		o(p)
	}
	p.draw = rand.New(rand.NewPCG(p.seed, p.seed))
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	p.cancel = cancel
	p.group.Go(func() { p.acceptAll(life) })
	p.listeners <- listener
	return p, nil
}

// Start is New for a test. It ends the test on an error, and closes the proxy when
// the test ends. If the test failed, it prints the seed and what passed last.
func Start(t testing.TB, target string, opts ...Option) *Proxy {
	t.Helper()
	p, err := New(t.Context(), target, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("close proxy of %s: %v", target, err)
		}
		if t.Failed() {
			t.Logf("proxy %s of %s, seed %d:\n%s", p.Addr(), target, p.Seed(), p.Trace())
		}
	})
	return p
}

// Close cuts all connections and returns when no goroutine of the proxy is left. It
// returns the first error that kept the proxy from listening again. Rules may be
// read afterwards. Further calls do nothing.
func (p *Proxy) Close() error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil
	}
	p.closed = true
	close(p.done)
	listener := p.listener
	p.listener = nil
	p.mu.Unlock()

	p.cancel()
	if listener != nil {
		_ = listener.Close()
	}
	for _, c := range p.connections() {
		c.kill()
	}
	p.closeHung()
	p.group.Wait()
	return errors.Join(p.failed, p.addr.release())
}
