package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// Refuse makes the port refuse connections, for d, or until Accept when d is 0.
// Connections that there are go on. When it returns, dials already fail.
func (p *Proxy) Refuse(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.mode = refusing
	p.turn++
	if p.listener != nil {
		_ = p.listener.Close()
		p.listener = nil
	}
	p.trace.add("refuse %v", d)
	if d <= 0 {
		return
	}
	turn := p.turn
	p.group.Go(func() {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			p.acceptAgain(func() bool { return p.turn == turn })
		case <-p.done:
		}
	})
}

// AcceptAndHang accepts connections from now on and says nothing on them, until
// Accept. The server hears nothing of them; they stay silent until their client
// closes them or CutAll.
func (p *Proxy) AcceptAndHang() { p.listenAs(hanging, func() bool { return true }) }

// Accept passes new connections on again.
func (p *Proxy) Accept() { p.acceptAgain(func() bool { return true }) }

func (p *Proxy) acceptAgain(still func() bool) { p.listenAs(accepting, still) }

// listenAs changes the mode, if still, called under the lock, agrees.
func (p *Proxy) listenAs(m mode, still func() bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || !still() {
		return
	}
	p.mode = m
	p.turn++
	p.trace.add("accept (mode %d)", m)
	if p.listener != nil {
		return
	}
	listener, err := p.addr.listen()
	if err != nil {
		p.failed = errors.Join(p.failed, fmt.Errorf("proxy: listen again: %w", err))
		p.trace.add("%v", p.failed)
		return
	}
	p.listener = listener
	p.listeners <- listener
}

// acceptAll serves one listener after the other until the proxy is closed.
func (p *Proxy) acceptAll(ctx context.Context) {
	for {
		select {
		case l := <-p.listeners:
			p.group.Go(func() { p.acceptFrom(ctx, l) })
		case <-p.done:
			return
		}
	}
}

// acceptFrom serves a listener's connections until it is closed.
func (p *Proxy) acceptFrom(ctx context.Context, listener net.Listener) {
	for {
		accepted, err := listener.Accept()
		if err != nil {
			return
		}
		client, ok := accepted.(*net.TCPConn)
		if !ok {
			_ = accepted.Close()
			continue
		}
		p.group.Go(func() {
			if p.hang(client) {
				return
			}
			p.serve(ctx, client)
		})
	}
}

// hang keeps a connection silent if that is the mode.
func (p *Proxy) hang(client net.Conn) bool {
	p.mu.Lock()
	if p.mode != hanging || p.closed {
		p.mu.Unlock()
		return false
	}
	p.hung[client] = true
	p.trace.add("accept and hang")
	p.mu.Unlock()
	_, _ = io.Copy(io.Discard, client)
	_ = client.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.hung, client)
	return true
}
