package client

import (
	"cmp"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/ctxerr"
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
	var listed []watchKey // what is to be removed and was not tried yet
	for {
		if len(listed) == 0 { // a list for each batch would cost more than all the requests
			wait, more := h.nextRemoval()
			if !more {
				return
			}
			if ctxerr.Sleep(h.s.ctx, wait) != nil {
				h.rest(&h.sweeping)
				return
			}
			listed = h.listUnwanted()
		}
		if err := h.s.supports(h.s.ctx, watchRemoval); err != nil {
			h.keepAll() // the session may be over
			listed = nil
			continue
		}
		batch, connection := h.takeUnwanted(&listed)
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

// listUnwanted lists what may be removed now: the persistent watches first, whose keys
// have no op.
func (h *hub) listUnwanted() []watchKey {
	h.mu.Lock()
	old := time.Now().Add(-watchLinger)
	var all []watchKey
	if h.all.hub == h {
		for path, since := range h.all.readerless {
			if !since.After(old) && h.free(path) {
				all = append(all, watchKey{path: path})
			}
		}
	}
	lasting := len(all)
	for key, u := range h.unwanted {
		if !u.since.After(old) && h.removable(key) {
			all = append(all, key)
		}
	}
	h.mu.Unlock()
	byPath := func(a, b watchKey) int { return cmp.Or(cmp.Compare(a.path, b.path), cmp.Compare(a.op, b.op)) }
	slices.SortFunc(all[:lasting], byPath)
	slices.SortFunc(all[lasting:], byPath)
	return all
}

// takeUnwanted takes the next watches of a list that may still be removed, and occupies
// their paths. A reader that wants to watch there waits until the server has answered.
func (h *hub) takeUnwanted(listed *[]watchKey) (batch []unwantedWatch, connection int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	old := time.Now().Add(-watchLinger)
	for len(*listed) > 0 && len(batch) < watchesAtOnce {
		key := (*listed)[0]
		*listed = (*listed)[1:]
		if u, ok := h.takeLocked(key, old); ok {
			h.occupy(u.path)
			batch = append(batch, u)
		}
	}
	return batch, h.all.connection
}

// takeLocked takes a watch that may be removed, and has no reader since old.
func (h *hub) takeLocked(key watchKey, old time.Time) (u unwantedWatch, ok bool) {
	if key.op == 0 {
		since, still := h.all.readerless[key.path]
		if !still || h.all.hub != h || since.After(old) || !h.free(key.path) {
			return u, false
		}
		e := h.all.paths[key.path]
		delete(h.all.readerless, key.path)
		e.connection = 0
		return unwantedWatch{path: key.path, kind: wire.RemoveAny, all: e}, true
	}
	w, still := h.unwanted[key]
	if !still || w.since.After(old) || !h.removable(key) {
		return u, false
	}
	u = unwantedWatch{path: key.path, kind: wire.RemoveData, keys: sameWatch(key)}
	if key.op == wire.OpGetChildren {
		u.kind = wire.RemoveChildren
	}
	for _, k := range u.keys {
		h.forgetLocked(k)
	}
	return u, true
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
