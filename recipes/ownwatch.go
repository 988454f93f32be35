package recipes

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// ownWatchers bounds the goroutines that watch the nodes of one hold, and so the
// reads that these have in flight.
const ownWatchers = 16

// watchOwn watches the nodes of the grant. It runs on a goroutine of its own. That and
// the goroutines that it starts end with the grant.
func (g *grant) watchOwn() {
	g.mu.Lock()
	if g.over != nil {
		g.mu.Unlock()
		return
	}
	ctx := g.life.get(g)
	g.mu.Unlock()
	var others sync.WaitGroup
	for i := 1; i < min(len(g.Paths), ownWatchers); i++ {
		others.Go(func() { g.watchFrom(ctx, i) })
	}
	g.watchFrom(ctx, 0)
	others.Wait()
}

// watchFrom watches a node of the grant and every ownWatchers-th behind it, until ctx
// ends.
func (g *grant) watchFrom(ctx context.Context, first int) {
	var nodes []*ownNode
	wake := []reflect.SelectCase{{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(ctx.Done())}}
	for i := first; i < len(g.Paths); i += ownWatchers {
		n := &ownNode{grant: g, path: g.Paths[i]}
		nodes = append(nodes, n)
		wake = append(wake, reflect.SelectCase{Dir: reflect.SelectRecv, Chan: n.look(ctx)})
	}
	for {
		i, _, _ := reflect.Select(wake)
		if i == 0 || ctx.Err() != nil {
			break
		}
		wake[i].Chan = nodes[i-1].look(ctx)
	}
	for _, n := range nodes {
		n.stop() // mostly the node is about to be deleted, which fires its watch
	}
}

// ownNode is a node of a hold that is watched.
type ownNode struct {
	*grant

	path  string
	blind bool   // that it may not be read was logged
	stop  func() // ends what look has begun
}

// look reads the node and returns a channel that says when to look again. It ends
// the hold when another client has deleted the node. That takes no right on the
// node itself, only on its parent. It also hears of a request to release, even of
// one that was written before it looked.
func (n *ownNode) look(ctx context.Context) reflect.Value {
	data, stat, w, err := n.Session.GetW(ctx, n.path)
	switch {
	case err == nil:
		if stat.EphemeralOwner != n.Session.ID() {
			n.lose(ErrNodeDeleted) // and another has made one of that name
		} else {
			n.heard(ctx, n.path, data, stat.Version)
		}
		n.stop = w.Stop
		return reflect.ValueOf(w.Done())
	case errors.Is(err, zk.ErrNoNode):
		n.lose(ErrNodeDeleted)
	case refused(err) && !n.blind:
		n.blind = true
		inner.Logger(n.c).Warn("zookeeper: a lock's own node may not be read, so that its deletion would not be noticed",
			"node", n.path, "reason", err)
	}
	// The client's retry policy gave up, or a right is missing; a hold goes on.
	t := time.NewTimer(n.timeout() / 6)
	n.stop = func() { t.Stop() }
	return reflect.ValueOf(t.C)
}

// heard tells the holds of the grant if data of its node, at a version, is a
// request to release. The request has replaced the data, by which operators know
// the holder: heard writes that again, with the request behind it. A
// newer request is not overwritten, since the version is checked. The hold does
// not depend on it, so that its error says nothing.
func (g *grant) heard(ctx context.Context, node string, data []byte, version int32) {
	_, asked := cutRevocation(data)
	if !asked {
		return
	}
	g.ask()
	if own := g.set.nodeData(g.c); string(data) == revocation && len(own) > 0 {
		_, _ = g.Session.Set(ctx, node, append(bytes.Clone(own), answered...), version)
	}
}

// ask ends the context that ends when the release is asked for.
func (g *grant) ask() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked.get(g)
	g.asked.stop()
}

// request returns the context that ends when the release is asked for.
func (g *grant) request() context.Context {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.asked.get(g)
}
