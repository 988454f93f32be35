package client

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/internal/wire"
)

const (
	// watchesAtOnce bounds how many watches one write arms or removes. Heartbeats and the
	// requests of callers come between two of these writes, so it must not be many.
	watchesAtOnce = 64
	// watchPause is how long to wait when a server throttles.
	watchPause = time.Second
)

// arm arms the persistent watches that are due, on the present connection and on
// later ones. It ends with the session, or when no watch is due that could be armed.
func (h *hub) arm() {
	defer h.s.running.Done()
	var due []string // what takeDue has listed and not tried yet
	for {
		if _, err := h.s.core.await(h.s.ctx, h.s, nil); err != nil {
			h.rest(&h.arming)
			return
		}
		switch err := h.s.supports(h.s.ctx, persistentWatches); {
		case errors.Is(err, ErrUnsupported):
			h.refuse(err)
		case err != nil: // the session is over
			h.rest(&h.arming)
			return
		}
		batch, connection := h.takeDue(&due)
		if len(batch) == 0 {
			return
		}
		xs := make([]*wire.Exchange, len(batch))
		for i, e := range batch {
			xs[i] = asked(wire.OpAddWatch, e.path)
			if e.deep {
				xs[i].Request.Flags = wire.WatchRecursive
			}
		}
		h.change(xs)
		h.stand(batch, xs, connection)
		if pause := pauseAfter(xs); pause > 0 {
			_ = ctxerr.Sleep(h.s.ctx, pause) // await sees the end
		}
	}
}

// rest notes that a goroutine of the hub ends.
func (h *hub) rest(running *bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	*running = false
}

// takeDue occupies the paths of the watches that are to be armed next. It takes them
// from due. Once that is empty, takeDue lists all that are due: a list for each batch
// would cost more than all the requests. If it returns none, the caller must end.
func (h *hub) takeDue(due *[]string) (batch []*lasting, connection int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	a := h.all
	if a.hub == h {
		batch = h.takeListed(due)
		if len(batch) == 0 {
			*due = slices.Sorted(maps.Keys(a.due))
			batch = h.takeListed(due)
		}
	}
	h.arming = len(batch) > 0
	return batch, a.connection
}

// takeListed takes the next watches of a list that are still due, if their paths are
// free.
func (h *hub) takeListed(due *[]string) (batch []*lasting) {
	for len(*due) > 0 && len(batch) < watchesAtOnce {
		path := (*due)[0]
		*due = (*due)[1:]
		if e := h.all.due[path]; e != nil && h.free(path) {
			e.connection, e.deep = 0, e.recursive()
			h.occupy(path)
			batch = append(batch, e)
		}
	}
	return batch
}

// stand looks at the answers for the watches of batch. It tells the readers of each
// watch that stands to read.
func (h *hub) stand(batch []*lasting, xs []*wire.Exchange, connection int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	a := h.all
	for i, e := range batch {
		h.vacate(e.path)
		if a.over != nil {
			continue
		}
		var err error
		if xs[i].Answered() {
			err = h.s.refused(persistentWatches, h.s.answer(xs[i]))
		}
		switch {
		case !xs[i].Answered() || err != nil && passing(err):
		case err != nil:
			h.failLocked(e, err)
			h.firePathLocked(e.path, errDisarmed)
			continue
		case a.hub == h && a.connection == connection:
			e.connection = connection
			if !e.recursive() || e.deep {
				delete(a.due, e.path)
			}
			if e.deep {
				// Before ZooKeeper 3.9 the server has forgotten this watch, or it relied
				// on e.
				if w := h.watches[watchKey{wire.OpGetChildren, e.path}]; w != nil {
					h.fireLocked(w, zk.EventNotWatching, errDisarmed)
				}
				h.fireAudienceLocked(e.path, childSide, (*feed).missed)
			}
			for _, c := range e.readers {
				if e.deep || !c.recursive {
					c.missed(a.why)
				}
			}
		}
		if len(e.readers) == 0 {
			a.readerlessLocked(e)
		}
	}
	h.startWorkLocked()
}

// pauseAfter is how long to wait before a request that was not carried out is sent
// again. After the loss of a connection that is a moment; if the server throttles it
// is more.
func pauseAfter(xs []*wire.Exchange) (pause time.Duration) {
	for _, x := range xs {
		switch {
		case !x.Answered():
			pause = max(pause, watchPause/100)
		case x.Reply.Code != 0:
			pause = watchPause
		}
	}
	return pause
}

// refuse ends the readers of all watches that are due: the servers know none.
func (h *hub) refuse(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.all.due {
		if h.failLocked(e, err); h.all.stands(e) { // otherwise no one-shot watch relies on it
			h.firePathLocked(e.path, errDisarmed)
		}
	}
}

// failLocked ends the readers of a watch that cannot be armed.
func (h *hub) failLocked(e *lasting, err error) {
	a := h.all
	if a.paths[e.path] != e {
		return
	}
	for _, c := range e.readers {
		c.end(err)
	}
	delete(a.paths, e.path)
	delete(a.due, e.path)
	delete(a.readerless, e.path)
}
