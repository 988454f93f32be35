package wire

import (
	"context"
	"fmt"
	"net"
	"time"
)

// Dial connects to address for go-zookeeper; it has the type zk.Dialer. It ignores
// the network, which Config.Dial knows. It ignores the timeout too: the limit of
// Config.Servers replaces it and covers the handshake as well.
//
// After a failed Dial the session may live on and the next Dial may succeed. If the
// error wraps [ErrOver], nothing was dialed, and no later Dial will dial.
// go-zookeeper does not know that and calls again at once. So its host provider must
// report the start of a round, which makes go-zookeeper sleep.
func (l *Link) Dial(_, address string, _ time.Duration) (net.Conn, error) {
	l.mu.Lock()
	prev := l.live
	l.mu.Unlock()
	if prev != nil {
		l.failConn(prev, errSuperseded)
	}
	if err := l.ended(); err != nil {
		return nil, err
	}
	if l.cfg.Pace != nil {
		if err := l.cfg.Pace(l.life, address); err != nil {
			return nil, l.attemptFailed(nil, address, fmt.Errorf("pause before the dial of %s: %w", address, err))
		}
		if err := l.ended(); err != nil {
			return nil, err
		}
	}
	l.mu.Lock()
	l.tries++
	l.mu.Unlock()
	login, err := l.beginLogin(address)
	if err != nil {
		return nil, l.unready(address, err)
	}
	d := &Dialed{Server: address, Begun: time.Now()}
	limit := l.limit()
	most := max(limit, min(limit+l.patience(), l.Timeout()/3))
	ctx, cancel := context.WithDeadline(context.WithValue(l.life, dialedKey{}, d), d.Begun.Add(most))
	nc, err := l.cfg.Dial(ctx, address)
	late := ctx.Err() != nil || !time.Now().Before(d.Begun.Add(most)) // net's own timer may come before that of ctx
	cancel()
	if err != nil {
		if late {
			l.noAnswer()
		}
		return nil, l.attemptFailed(d, address, fmt.Errorf("dial %s: %w", address, err))
	}
	d.connected()
	c := newConn(l, nc, address)
	c.dialed, c.login = d, login
	// The dial may have resolved a name and so found that there are more servers to try.
	end := d.Begun.Add(l.limit() + l.patience())
	if first := time.Now().Add(firstAnswer); l.inFirstRound() && first.Before(end) {
		end = first
	}
	if err := l.adopt(c, end); err != nil {
		c.shut()
		return nil, err
	}
	return c, nil
}

// leastLimit is how long a dial may take however many servers there are, unless the
// session timeout is very short: a server in a far region takes as long with TLS.
const leastLimit = time.Second

// firstAnswer is how long a connected server has for the handshake in the first round, so that
// one that accepts and is silent costs little. The dial before that has its usual time: servers
// that are far away take it at each try.
const firstAnswer = 1500 * time.Millisecond

// limit bounds dial, TLS and handshake together. All servers can be tried before the
// session expires unless there are very many, and one silent server does not use the
// whole session up.
func (l *Link) limit() time.Duration {
	timeout := l.Timeout()
	return max(timeout/time.Duration(max(3, l.cfg.Servers()+1)), min(leastLimit, timeout/3))
}

// patience is how much longer the attempt may take while there is no session that
// could expire meanwhile.
func (l *Link) patience() time.Duration {
	limit, servers := l.limit(), max(1, l.cfg.Servers())
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.id != 0 {
		return 0
	}
	rounds := min(l.unanswered/servers, 8)
	return max(0, min(limit<<rounds, 2*l.timeout)-limit)
}

// inFirstRound reports whether there is no session, and another server that was not tried yet or
// is tried now. A try counts however it ends.
func (l *Link) inFirstRound() bool {
	servers := l.cfg.Servers()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.id == 0 && servers > 1 && l.tries <= servers
}

// adopt makes c the live connection unless the Link ended during the dial. The time for
// the handshake ends by a timer and not by a deadline of c: connections of a tunnel
// may have none, as those of golang.org/x/crypto/ssh.
func (l *Link) adopt(c *conn, end time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause != nil {
		return overError(l.cause)
	}
	l.live = c
	c.late = time.AfterFunc(time.Until(end), c.tooLate)
	return nil
}

// attemptFailed reports an attempt that did not yield a connection. d is nil if
// nothing was dialed.
func (l *Link) attemptFailed(d *Dialed, server string, err error) error {
	l.mu.Lock()
	if l.cause != nil {
		defer l.mu.Unlock()
		return overError(l.cause)
	}
	l.enqueueDialed(d, err)
	l.enqueueDown(server, err)
	l.mu.Unlock()
	l.deliver()
	return err
}
