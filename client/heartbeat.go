package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/wire"
)

// checksPerBeat bounds a heartbeat; with more nodes they take turns.
const checksPerBeat = 64

// clockCheck is how often the clocks are compared while something is held:
// timers do not run while the machine is suspended and so come late.
const clockCheck = time.Second

// errUnanswered is why a connection is given up that keeps a heartbeat.
var errUnanswered = errors.New("a heartbeat was not answered in time")

// pause is how long to wait before the next heartbeat: a period after the
// newest proof or heartbeat, or half of the time that was left then. A
// heartbeat need not move the deadline, if the server has had nothing to tell
// the leader since the last, so there is a least pause. The caller holds l.mu.
func (l *lease) pause(t standing) time.Duration {
	last := t.proof.Sent.At
	if l.beaten.After(last) {
		last = l.beaten
	}
	since := t.now.Sub(last)
	return min(t.beat, max((t.left+since)/2, t.beat/8)) - since
}

// run renews the lease while anything is held. There is one at a time.
func (l *lease) run() {
	if !l.s.begin() {
		return
	}
	defer l.s.running.Done()
	l.mu.Lock()
	l.starter = nil
	if l.running {
		l.mu.Unlock()
		return
	}
	l.running = true
	l.mu.Unlock()
	connected := true
	for l.goOn() {
		t := l.standing()
		if l.expired(t) {
			continue
		}
		l.mu.Lock()
		l.relieve(t)
		wait := l.pause(t)
		l.mu.Unlock()
		switch {
		case l.policy.Heartbeat == HeartbeatPings || !connected:
			wait = t.left
		case wait <= 0:
			connected = l.beat(t)
			continue
		}
		connected = l.sleep(min(wait, t.left)) || connected
	}
}

// goOn reports whether anything is held.
func (l *lease) goOn() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running = len(l.holdings) > 0 && l.s.over() == nil
	return l.running
}

// sleep waits for d to pass or something to change, and reports the latter.
func (l *lease) sleep(d time.Duration) bool {
	if l.s.core.cfg.clock.Slept != nil {
		d = min(d, clockCheck)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return false
	case <-l.poke:
		return true
	case <-l.s.link.Over():
		return true
	case <-l.s.ctx.Done(): // earlier if Close was called
		return true
	}
}

// beat commits one heartbeat, and reports whether there is a connection for
// the next. It has half of the time that is left; the other half is for
// another server, since this one may be cut off from its leader, or its way
// here may be.
func (l *lease) beat(t standing) bool {
	now := time.Now()
	ctx, cancel := context.WithDeadlineCause(l.s.ctx, now.Add(t.left/2), errUnanswered)
	defer cancel()
	nodes := l.turn(now)
	if len(nodes) == 0 { // given up in this moment
		return true
	}
	failed, why, err := l.s.link.Check(ctx, nodes...)
	switch {
	case errors.Is(err, wire.ErrNotConnected):
		l.unease(fmt.Errorf("%w: %s", ErrNotConnected, l.s.core.servers.report()))
		return false
	case err != nil && ctx.Err() != nil && l.s.ctx.Err() == nil:
		l.unease(errUnanswered)
		l.s.link.DropLive(now, errUnanswered)
		return false
	case err != nil:
		l.unease(err)
		// Otherwise the connection is gone, and the next one wakes us.
		var code wire.ServerError
		return errors.As(err, &code) || errors.Is(err, wire.ErrProtocol)
	}
	if failed >= 0 {
		l.refused(nodes[failed], answerOf(why))
	} else {
		l.see(nodes)
	}
	return true
}

// see notes that all nodes could be read.
func (l *lease) see(nodes []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, path := range nodes {
		delete(l.blind, path)
	}
}

// turn returns the nodes to check, and behind them one of those that might not
// be read when they were checked last: the answer then says nothing about it,
// but what stands before it was checked, and the transaction is committed.
func (l *lease) turn(now time.Time) (nodes []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.beaten = now
	var all []string
	for _, h := range l.holdings {
		all = append(all, h.full...)
	}
	n := min(len(all), checksPerBeat)
	var blind []string
	for i := range n {
		path := all[(l.next+i)%len(all)]
		if l.blind[path] {
			blind = append(blind, path)
		} else {
			nodes = append(nodes, path)
		}
	}
	l.next = (l.next + n) % max(1, len(all))
	return append(nodes, blind[:min(1, len(blind))]...)
}

// refused deals with a node that did not pass the check.
func (l *lease) refused(path string, why error) {
	switch {
	case errors.Is(why, zk.ErrNoNode):
		l.gone(path, fmt.Errorf("heartbeat: %s: %w", path, why))
	case l.s.ifExpired(why):
	case l.ignore(path):
		l.s.core.journal.say(slog.LevelWarn, "zookeeper: a held node may not be read, so that its deletion would not be noticed",
			"node", path, "reason", why)
	}
}

// ignore takes a node to the end of later heartbeats, and reports whether that is
// news.
func (l *lease) ignore(path string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.blind[path]
	l.blind[path] = true
	return !known
}

// ifExpired ends the session if that is what a server said, and reports it.
func (s *session) ifExpired(err error) bool {
	if !errors.Is(err, zk.ErrSessionExpired) {
		return false
	}
	s.link.End(err)
	return true
}

// answerOf gives an error of the wire the type that go-zookeeper would.
func answerOf(err error) error {
	var code wire.ServerError
	if !errors.As(err, &code) {
		return err
	}
	switch code {
	case -101:
		return zk.ErrNoNode
	case -102:
		return zk.ErrNoAuth
	case -112:
		return zk.ErrSessionExpired
	case -118:
		return zk.ErrSessionMoved
	default:
		return Code(code)
	}
}
