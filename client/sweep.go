package client

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/wire"
)

// watchLinger is how long a watch without readers stays on the server. Most fire
// within it, because the node is about to be deleted. Or the reader comes back to
// wait again.
const watchLinger = time.Second

// unwantedWatch is a watch that is to be removed from a server.
type unwantedWatch struct {
	path string
	kind int32
	keys []watchKey // the one-shot watches
	all  *lasting   // or the persistent watch; with it all others on the path are removed
}

// sweep removes watches without readers from the server. It ends when there are none,
// or with the session.
func (h *hub) sweep() {
	defer h.s.running.Done()
	for {
		wait, more := h.nextRemoval()
		if !more {
			return
		}
		if sleep(h.s.ctx, wait) != nil {
			h.rest(&h.sweeping)
			return
		}
		if err := h.s.supports(h.s.ctx, watchRemoval); err != nil {
			h.keepAll() // the session may be over
			continue
		}
		batch, connection := h.takeUnwanted()
		xs := make([]*wire.Exchange, len(batch))
		for i, u := range batch {
			xs[i] = asked(wire.OpRemoveWatches, u.path)
			xs[i].Request.Flags = u.kind
		}
		if len(xs) == 0 {
			continue
		}
		h.change(xs)
		h.removed(batch, xs, connection)
	}
}

// nextRemoval returns how long it takes until a watch may be removed. If there is no
// such watch, the caller must end.
func (h *hub) nextRemoval() (wait time.Duration, more bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	next := func(since time.Time) {
		if left := since.Add(watchLinger).Sub(now); !more || left < wait {
			wait, more = left, true
		}
	}
	for key, u := range h.unwanted {
		if h.removable(key) {
			next(u.since)
		}
	}
	if h.all.hub == h {
		for path, since := range h.all.readerless {
			if h.free(path) {
				next(since)
			}
		}
	}
	h.sweeping = more
	return wait, more
}

// removable reports whether the server's watch behind key can be removed. The watches
// of getData and exists are one watch there, and a persistent watch on the path might
// be removed with it.
func (h *hub) removable(key watchKey) bool {
	if h.all.paths[key.path] != nil || !h.free(key.path) || h.heard(key) {
		return false
	}
	return !slices.ContainsFunc(sameWatch(key), h.isWanted)
}

// sameWatch are all keys that share the server's watch of key.
func sameWatch(key watchKey) []watchKey {
	if key.op == wire.OpGetChildren {
		return []watchKey{key}
	}
	return []watchKey{{wire.OpGetData, key.path}, {wire.OpExists, key.path}}
}

func (h *hub) isWanted(key watchKey) bool {
	w := h.watches[key]
	return w != nil && w.wanted > 0
}

// takeUnwanted occupies the paths of watches that are to be removed next. A reader
// that wants to watch there waits until the server has answered.
func (h *hub) takeUnwanted() (batch []unwantedWatch, connection int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	old := time.Now().Add(-watchLinger)
	atOnce := max(watchesAtOnce, len(h.unwanted)/16) // each batch sorts them all
	take := func(u unwantedWatch) {
		h.occupy(u.path)
		batch = append(batch, u)
	}
	if h.all.hub == h {
		for _, path := range slices.Sorted(maps.Keys(h.all.readerless)) {
			if e := h.all.paths[path]; len(batch) < watchesAtOnce && h.free(path) && !h.all.readerless[path].After(old) {
				delete(h.all.readerless, path)
				e.connection = 0
				take(unwantedWatch{path: path, kind: wire.RemoveAny, all: e})
			}
		}
	}
	keys := slices.SortedFunc(maps.Keys(h.unwanted), func(a, b watchKey) int {
		return cmp.Or(cmp.Compare(a.path, b.path), cmp.Compare(a.op, b.op))
	})
	for _, key := range keys {
		w, still := h.unwanted[key]
		if !still || len(batch) >= atOnce || w.since.After(old) || !h.removable(key) {
			continue
		}
		u := unwantedWatch{path: key.path, kind: wire.RemoveData, keys: sameWatch(key)}
		if key.op == wire.OpGetChildren {
			u.kind = wire.RemoveChildren
		}
		for _, k := range u.keys {
			h.forgetLocked(k)
		}
		take(u)
	}
	return batch, h.all.connection
}

// forgetLocked forgets a watch without readers.
func (h *hub) forgetLocked(key watchKey) {
	delete(h.unwanted, key)
	if w := h.watches[key]; w != nil {
		w.stray = false
		h.fireLocked(w, zk.EventNotWatching, errStopped)
	}
}

// removed looks at the answers. If the server knows no such watch, it was dropped
// with its connection.
func (h *hub) removed(batch []unwantedWatch, xs []*wire.Exchange, connection int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, u := range batch {
		h.vacate(u.path)
		stays := false
		if xs[i].Answered() {
			stays = passing(h.s.refused(watchRemoval, h.s.answer(xs[i]))) && h.all.connection == connection
		}
		switch {
		case u.all != nil && stays:
			if u.all.connection = connection; len(u.all.readers) == 0 {
				h.all.readerlessLocked(u.all)
			}
		case u.all != nil:
			// The watches that it covered are gone, and all others that the server
			// kept for the path.
			h.firePathLocked(u.path, errDisarmed)
			if len(u.all.readers) == 0 { // a reader may have come and gone meanwhile
				h.all.readerlessLocked(u.all)
			}
		case stays:
			for _, key := range u.keys {
				h.unwanted[key] = unwanted{since: time.Now()}
			}
		}
	}
	h.startWorkLocked() // for a reader that came meanwhile
}

// keepAll stops removing watches: the servers cannot.
func (h *hub) keepAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.unwanted)
	clear(h.all.readerless)
}
