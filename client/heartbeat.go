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

// checksPerBeat bounds the nodes that one heartbeat checks; with more nodes they take
// turns.
const checksPerBeat = 64

// clockCheck is the longest time between two comparisons of the clocks while
// something is held. Timers do not run while the machine is suspended, so a timer
// alone would come late.
const clockCheck = time.Second

// errUnanswered is why the client gives up a connection on which a heartbeat got no
// answer.
var errUnanswered = errors.New("a heartbeat was not answered in time")

// pause is how long to wait before the next heartbeat. It is a period after the
// newest proof or heartbeat, or half of the time that was left then. A heartbeat does
// not always move the deadline: the server may have had nothing to tell the leader
// since the heartbeat before. So there is a least pause. The caller holds l.mu.
func (l *lease) pause(t leaseState) time.Duration {
	last := t.proof.Sent.At
	if l.beaten.After(last) {
		last = l.beaten
	}
	since := t.now.Sub(last)
	return min(t.beat, max((t.left+since)/2, t.beat/8)) - since
}

// wantsBeat reports whether heartbeats are needed. They are needed while something is
// held. They are also needed when the lease is over and a holder has not released
// yet, to save the session. The caller holds l.mu.
func (l *lease) wantsBeat(t leaseState) bool {
	return l.policy.Heartbeat == HeartbeatWrites && l.awaited == 0 &&
		(len(l.holdings) > 0 || len(l.unreleased) > 0 && t.left <= 0)
}

// heartbeat is a heartbeat that is due.
type heartbeat struct {
	number   int
	nodes    []string
	at       time.Time
	patience time.Duration // how long its answer is awaited
}

// nextBeat returns the next heartbeat if it is due. The heartbeat may wait for its
// answer for half of the time that is left. The other half is for another server,
// because this one may be cut off from its leader or from the client. The caller
// holds l.mu.
func (l *lease) nextBeat(t leaseState) (b heartbeat, due bool) {
	if !l.wantsBeat(t) || l.pause(t) > 0 {
		return heartbeat{}, false
	}
	patience := t.left / 2
	if t.left <= 0 {
		patience = t.promised.Sub(t.now)
	}
	l.beats++
	l.awaited, l.beaten = l.beats, t.now
	return heartbeat{l.beats, l.turn(), t.now, patience}, true
}

// beat sends a heartbeat and waits for its answer. It only reports doubts: the timer
// decides when holds end.
func (l *lease) beat(b heartbeat) {
	ctx, cancel := context.WithDeadlineCause(l.s.ctx, b.at.Add(b.patience), errUnanswered)
	defer cancel()
	x := checks(b.nodes)
	err := l.s.link.Do(ctx, x)
	if err == nil {
		err = l.s.answer(x)
	}
	switch {
	case errors.Is(err, wire.ErrNotConnected):
		l.missed(b, fmt.Errorf("%w: %s", ErrNotConnected, l.s.core.servers.Report()))
	case err != nil && errors.Is(context.Cause(ctx), errUnanswered):
		l.missed(b, errUnanswered)
		if l.s.restores() { // else the end of the connection would be the end of the session
			l.s.link.DropLive(b.at, errUnanswered)
		}
	case err != nil:
		l.missed(b, err)
	default:
		l.hear(b.nodes, x.Reply.Parts)
	}
	l.stopAwaiting(b)
	l.told(b, err)
}

// stopAwaiting notes that b is not awaited any more.
func (l *lease) stopAwaiting(b heartbeat) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.awaited == b.number {
		l.awaited = 0
	}
}

// missed is called when b got no answer, or an answer of no use. That says nothing
// about a connection that was made later.
func (l *lease) missed(b heartbeat, why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.awaited == b.number {
		l.endanger(why)
	}
}

// hear handles the results of the checks of nodes. A node that may not be read is
// checked behind the others in later heartbeats.
func (l *lease) hear(nodes []string, results []wire.Result) {
	for i, path := range nodes[:min(len(nodes), len(results))] {
		err := codeError(results[i].Code)
		if err == nil || errors.Is(err, codeRuntimeInconsistency) {
			continue
		}
		if errors.Is(err, zk.ErrNoNode) {
			l.missing(path, fmt.Errorf("heartbeat: %s: %w", path, err))
			return
		}
		l.mu.Lock()
		known := l.blind[path]
		l.blind[path] = true
		l.mu.Unlock()
		if !known {
			l.s.core.journal.Say(slog.LevelWarn, "zookeeper: a held node may not be read, so that its deletion would not be noticed",
				"node", path, "reason", err)
		}
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, path := range nodes {
		delete(l.blind, path)
	}
}

// turn returns the nodes that the next heartbeat checks. Nodes that could not be read
// before are left out, except for one, which is the last. If that one cannot be read
// now, the server stops there: it has checked all nodes before it, and has committed
// the transaction. The caller holds l.mu.
func (l *lease) turn() (nodes []string) {
	holdings := l.holdings
	if len(holdings) == 0 {
		holdings = l.unreleased
	}
	var all []string
	for _, h := range holdings {
		all = append(all, h.full...)
	}
	next := make([]string, min(len(all), checksPerBeat))
	for i := range next {
		next[i] = all[(l.next+i)%len(all)]
	}
	n := l.s.core.checkable(next)
	var blind []string
	for _, path := range next[:n] {
		if l.blind[path] {
			blind = append(blind, path)
		} else {
			nodes = append(nodes, path)
		}
	}
	l.next = (l.next + n) % len(all)
	return append(nodes, blind[:min(1, len(blind))]...)
}
