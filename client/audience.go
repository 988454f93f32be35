package client

import (
	"context"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/internal/wire"
)

// audience are the feeds that one-shot watches on a path tell: the watch on its data,
// and the watch on its children. A cache of a large tree may have two watches on each
// node. So all that the hub keeps of them is one entry of a map for each node.
//
// Unlike the watches of other readers they are not shared: each feed arms its own. A
// server keeps them as one. An event ends the watches of all feeds on its path, and
// those of other readers.
type audience struct{ data, children *listeners }

// listeners are feeds. They are never changed: a watch that tells one feed has
// [feed.alone].
type listeners struct{ feeds []*feed }

// side is one of the two tables in which a server keeps watches, or both.
type side uint8

const (
	dataSide side = 1 << iota
	childSide
)

func sideOf(op wire.Op) side {
	if op == wire.OpGetChildren {
		return childSide
	}
	return dataSide
}

// sides are the tables in which an event ends watches.
func sides(t zk.EventType) (s side) {
	for _, op := range firedBy(t) {
		s |= sideOf(op)
	}
	return s
}

func (a *audience) side(s side) **listeners {
	if s == childSide {
		return &a.children
	}
	return &a.data
}

func (l *listeners) all() []*feed {
	if l == nil {
		return nil
	}
	return l.feeds
}

// hears reports whether the watch on key tells f. The caller holds h.mu.
func (h *hub) hears(f *feed, key watchKey) bool {
	a := h.audiences[key.path]
	return slices.Contains((*a.side(sideOf(key.op))).all(), f)
}

// heard reports whether the watch on key tells a feed. The caller holds h.mu.
func (h *hub) heard(key watchKey) bool {
	a := h.audiences[key.path]
	return *a.side(sideOf(key.op)) != nil
}

// listenLocked makes the watch on key tell f.
func (h *hub) listenLocked(f *feed, key watchKey) {
	a := h.audiences[key.path]
	to := a.side(sideOf(key.op))
	switch was := *to; {
	case was == nil:
		*to = f.alone
	case slices.Contains(was.feeds, f):
		return
	default:
		*to = &listeners{append(slices.Clone(was.feeds), f)}
	}
	f.hearing[key.path] |= sideOf(key.op)
	h.audiences[key.path] = a
}

// deafenLocked makes the watch on key tell f no more.
func (h *hub) deafenLocked(f *feed, key watchKey) {
	if !h.hears(f, key) {
		return
	}
	a := h.audiences[key.path]
	to := a.side(sideOf(key.op))
	if left := slices.DeleteFunc(slices.Clone((*to).feeds), func(other *feed) bool { return other == f }); len(left) > 0 {
		*to = &listeners{left}
	} else {
		*to = nil
	}
	f.deafenLocked(key.path, sideOf(key.op))
	h.seatLocked(key.path, a)
}

// deafenLocked notes that the watches on a path and sides tell f no more.
func (f *feed) deafenLocked(path string, s side) {
	if f.hearing[path] &^= s; f.hearing[path] == 0 {
		delete(f.hearing, path)
	}
}

// seatLocked makes a the audience of path.
func (h *hub) seatLocked(path string, a audience) {
	switch {
	case a != audience{}:
		h.audiences[path] = a
	case len(h.audiences) > 1:
		delete(h.audiences, path)
	default:
		h.audiences = map[string]audience{} // a map that was large stays large
	}
}

// fireAudienceLocked ends the watches of feeds on a path, and calls tell for each of
// the feeds.
func (h *hub) fireAudienceLocked(path string, s side, tell func(*feed)) {
	for _, key := range []watchKey{{wire.OpGetData, path}, {wire.OpExists, path}, {wire.OpGetChildren, path}} {
		if s&sideOf(key.op) != 0 && h.watches[key] == nil {
			h.goneLocked(key)
		}
	}
	a, some := h.audiences[path]
	if !some {
		return
	}
	var told []*feed
	for _, one := range []side{dataSide, childSide} {
		if s&one == 0 {
			continue
		}
		to := a.side(one)
		for _, f := range (*to).all() {
			f.deafenLocked(path, one)
			if !slices.Contains(told, f) {
				told = append(told, f)
			}
		}
		*to = nil
	}
	h.seatLocked(path, a)
	for _, f := range told {
		tell(f)
	}
}

// enlist makes the watches on keys tell f. It comes before the requests that arm them,
// so no event comes too early. Reads arm watches that stand too: of a node that the
// client could not read for a while, a server may have kept the event to itself. The caller
// calls done.
func (h *hub) enlist(ctx context.Context, f *feed, keys []watchKey) (*enlistment, error) {
	e := &enlistment{h: h, f: f, keys: keys, arms: make([]bool, len(keys))}
	for {
		busy, err := e.try()
		if busy == nil {
			return e, err
		}
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, ctxerr.Ended(ctx)
		}
	}
}

// enlistment are watches that requests of a feed are about to arm.
type enlistment struct {
	h          *hub
	f          *feed
	keys       []watchKey
	arms       []bool // for each of keys: no persistent watch of another reader covers it
	connection int    // the connection
}

// try enlists, unless the watches on one of the paths are about to be changed.
func (e *enlistment) try() (busy chan struct{}, err error) {
	h := e.h
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over != nil {
		return nil, h.over
	}
	for _, key := range e.keys {
		if busy := h.busy[key.path]; busy != nil {
			return busy, nil
		}
	}
	e.connection = h.all.connection
	for i, key := range e.keys {
		if e.arms[i] = !h.covered(key); e.arms[i] {
			h.asking[key.path]++
		}
		h.listenLocked(e.f, key)
		delete(h.unwanted, key)
	}
	return nil, nil
}

// done notes what has become of the requests, and returns which of the watches tell
// the feed. A watch that does not stand tells the feed no more: the reader knows that
// its request has failed.
func (e *enlistment) done(ctx context.Context, answer func(i int) (*wire.Exchange, error)) []bool {
	h := e.h
	h.mu.Lock()
	defer h.mu.Unlock()
	tells := make([]bool, len(e.keys))
	for i, key := range e.keys {
		if e.arms[i] {
			x, err := answer(i)
			e.armedLocked(ctx, key, x, err)
		}
		tells[i] = h.hears(e.f, key)
	}
	if len(h.asking) == 0 {
		h.asking = map[string]int{}
	}
	h.startWorkLocked() // the paths are free for the goroutines that arm and remove watches
	return tells
}

func (e *enlistment) armedLocked(ctx context.Context, key watchKey, x *wire.Exchange, err error) {
	h := e.h
	h.askedLocked(key.path)
	told := !h.hears(e.f, key)
	if err != nil {
		h.deafenLocked(e.f, key)
	}
	left := false // a watch, by the request or by an earlier one, and unknown to all
	switch {
	case !x.Sent():
		left = !told && h.all.connection == e.connection // an earlier one may stand
	case !x.Answered(): // otherwise the connection has ended, and its watches with it
		left = ctx.Err() != nil
	case x.Err() != nil || x.Reply.Code == wire.CodeReplyTooLarge:
		left = true
	case err == nil && told:
		// The request may have left on a new connection. Or the event was that of an
		// earlier watch, and came before this one. The feed may never read here again.
		left = true
	}
	if !left {
		return
	}
	// A request without an answer may set a watch after an event has ended the watch of
	// another reader. Or its own event comes, which ends no watch.
	coming := x.Sent() && !x.Answered()
	if w := h.watches[key]; w != nil {
		w.stray = w.stray || coming
	} else if coming || !h.heard(key) {
		h.unwanted[key] = unwanted{time.Now(), coming}
	}
}

// leaveLocked ends the watches of f.
func (h *hub) leaveLocked(f *feed) {
	for path := range f.hearing {
		for _, key := range []watchKey{{wire.OpGetData, path}, {wire.OpGetChildren, path}} {
			if !h.hears(f, key) {
				continue
			}
			if h.deafenLocked(f, key); !h.heard(key) && !h.unwanted[key].coming {
				h.unwanted[key] = unwanted{since: time.Now()}
			}
		}
	}
	h.startWorkLocked()
}
