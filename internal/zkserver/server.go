package zkserver

import (
	"context"
	"sync"
	"time"

	"github.com/docent-go/docent/internal/zkserver/access"
	"github.com/docent-go/docent/internal/zkserver/jute"
	"github.com/docent-go/docent/internal/zkserver/pipe"
	"github.com/docent-go/docent/internal/zkserver/sasl"
	"github.com/docent-go/docent/internal/zkserver/stats"
	"github.com/docent-go/docent/internal/zkserver/watch"
	"github.com/docent-go/docent/internal/zoodefs"
)

// New starts a server. The caller must Close it.
func New(cfg Config) *Server {
	s := newServer(newConfig(cfg))
	s.tree.lastZxid, s.prep.zxid = cfg.Zxid, cfg.Zxid
	return s
}

func newServer(cfg config) *Server {
	s := &Server{
		cfg:      cfg,
		mu:       new(sync.Mutex),
		journal:  newJournal(cfg.LogSize),
		epoch:    time.Now(),
		sessions: map[int64]*session{},
		clients:  map[string]*ClientLink{},
		conns:    map[*conn]struct{}{},
		links:    map[*link]struct{}{},
		changed:  make(chan struct{}),
		counts:   newCounts(),
		stats:    stats.NewServer(),
		logDelay: cfg.CommitDelay,
	}
	s.timetable = pipe.NewTimetable(s.epoch)
	s.ctx, s.cancel = context.WithCancel(lifetime{})
	s.rng = s.generator("", 0, streamServer)
	s.watches = watch.New(!s.cfg.traits.manyModes, s.cfg.has(QuirkEventOfWatch), s.deliver)
	s.users = sasl.NewUsers(cfg.SASL, !cfg.traits.ownLogins)
	s.tree = newDataTree(s.watches, &s.cfg)
	s.prep = s.newPrep()
	s.nextSession = firstSessionID(1, s.wall())
	return s
}

// Seed returns the seed that all random draws of the server come from.
func (s *Server) Seed() uint64 { return s.cfg.Seed }

// Close ends the server: every connection is closed, the context of every hook
// ends, and Close returns when no goroutine of the server is left. A second Close
// waits as the first does. Hooks and observers must not call Close. The error is
// always nil.
func (s *Server) Close() error {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	s.cancel()
	if first {
		s.shutdown()
	}
	s.mu.Unlock()
	s.closePort()
	s.wg.Wait()
	return nil
}

// shutdown ends timers, connections and links. The mutex is held.
func (s *Server) shutdown() {
	for _, t := range []*time.Timer{s.expiryTimer, s.sweepTimer, s.logTimer} {
		if t != nil {
			t.Stop()
		}
	}
	for c := range s.conns {
		c.close()
	}
	for k := range s.links {
		k.abort()
	}
	s.pending = nil
	s.networkChanged()
}

// deliver hands an event to a watching connection, unless its client may not read
// the node (CVE-2024-23944).
func (s *Server) deliver(c *conn, t zoodefs.EventType, path string, zxid int64, a []jute.ACL) {
	if !access.Permitted(a, zoodefs.PermRead, c.auth) {
		return
	}
	if !s.cfg.traits.eventZxid {
		zxid = -1
	}
	c.event(t, path, zxid)
}
