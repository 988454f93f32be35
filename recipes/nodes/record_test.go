package nodes_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/docent-go/docent/zktest"
)

// record is what the servers have done, from which the promises are judged at the end.
type record struct {
	mu      sync.Mutex
	clients map[int64]string  // the client of each session
	closing map[string]bool   // clients whose object is being closed, or is closed
	objects map[string]int    // how many objects each client has had
	commits []commit          // that made or deleted nodes below /workers
	looks   map[string][]look // by client and path
	writes  []zktest.Request  // of data, that succeeded
	met     int               // writes and deletions that met another's node at the same version
}

// commit is a transaction, and which clients were closing their objects.
type commit struct {
	zktest.Commit
	closing map[string]bool
	objects map[string]int
}

// look is an answer to a client that asked for the stat of a node.
type look struct {
	order int // among the writes
	zxid  int64
}

func newRecord() *record {
	return &record{clients: map[int64]string{}, closing: map[string]bool{}, objects: map[string]int{}, looks: map[string][]look{}}
}

func (h *record) commit(c zktest.Commit) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.commits = append(h.commits, commit{c, maps.Clone(h.closing), maps.Clone(h.objects)})
}

func (h *record) request(q zktest.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if q.Client != "" && q.Session != 0 {
		h.clients[q.Session] = q.Client
	}
	switch {
	case q.Op == zktest.OpExists && q.Zxid != 0:
		h.looks[q.Client+q.Path] = append(h.looks[q.Client+q.Path], look{len(h.writes), q.Zxid})
	case q.Op == zktest.OpMulti && len(q.Paths) == 1 && q.Err == 0 && q.Zxid != 0: // or a deletion, after which no node stands
		h.writes = append(h.writes, q)
	}
}

// close notes whether a client's object is being closed from now on.
func (h *record) close(name string, closing bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closing[name] = closing
	if !closing {
		h.objects[name]++
	}
}

// closes reports whether a client's object is being closed.
func (h *record) closes(name string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.closing[name]
}

// life is that of one node.
type life struct {
	path     string
	from, to int64 // it stood in the states [from, to)
	session  int64 // that made it
	object   int   // of the client, that made it
}

const forever = int64(1) << 62

// lives are the lives of all nodes below /workers.
func (h *record) lives() (all []*life) {
	standing := map[string]*life{}
	slices.SortStableFunc(h.commits, func(a, b commit) int { return int(a.Zxid - b.Zxid) })
	for _, c := range h.commits {
		for _, p := range c.Deleted {
			if l := standing[p]; l != nil {
				l.to = c.Zxid
				delete(standing, p)
			}
		}
		for _, p := range c.Created {
			if strings.HasPrefix(p, "/workers/") {
				l := &life{path: p, from: c.Zxid, to: forever, session: c.Session, object: c.objects[h.clients[c.Session]]}
				standing[p] = l
				all = append(all, l)
			}
		}
	}
	return all
}

// broken judges the whole record. It returns the first promise that was broken.
func (h *record) broken(ephemeral bool) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := h.lives()
	at := func(path string, zxid int64) *life {
		for _, l := range all {
			if l.path == path && l.from <= zxid && zxid < l.to {
				return l
			}
		}
		return nil
	}
	// sawOwn reports whether the newest look of a client before that write, or before
	// that state, showed a node of its own.
	sawOwn := func(name, path string, before func(look) bool) bool {
		looks := h.looks[name+path]
		for _, k := range slices.Backward(looks) {
			if before(k) {
				l := at(path, k.zxid)
				return l != nil && h.clients[l.session] == name
			}
		}
		return false
	}
	if err := h.twice(all); err != nil {
		return err
	}
	for i, q := range h.writes {
		l := at(q.Path, q.Zxid)
		if l == nil || !ephemeral || l.session == q.Session || q.Client == "" || q.Client == stranger {
			continue
		}
		if !sawOwn(q.Client, q.Path, func(k look) bool { return k.order <= i && k.zxid < q.Zxid }) {
			return fmt.Errorf("wrote into a foreign node: %v into that of session %#x (%s)", q, l.session, h.clients[l.session])
		}
		h.met++
	}
	for _, c := range h.commits {
		name := h.clients[c.Session]
		if name == "" || name == stranger || c.Op != zktest.OpMulti {
			continue
		}
		for _, p := range c.Deleted {
			l := at(p, c.Zxid-1)
			if l == nil {
				continue
			}
			if h.clients[l.session] != name {
				if !ephemeral || sawOwn(name, p, func(k look) bool { return k.zxid < c.Zxid }) {
					h.met++
					continue
				}
				return fmt.Errorf("deleted a foreign node: %s, %+v", name, c)
			}
			if len(c.Created) == 0 && !c.closing[name] {
				return fmt.Errorf("a moment without the node: %s, %+v", name, c)
			}
		}
	}
	return nil
}

// twice finds an instant at which two nodes of one object stood.
func (h *record) twice(all []*life) error {
	for i, a := range all {
		for _, b := range all[:i] {
			if name := h.clients[a.session]; a.object == b.object && a.from < b.to && name != "" && name != stranger && name == h.clients[b.session] {
				return fmt.Errorf("two nodes of an object of %s at once: %+v and %+v", name, *b, *a)
			}
		}
	}
	return nil
}
