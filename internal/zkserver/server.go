package zkserver

import (
	"context"
	"encoding/binary"
	"hash/fnv"
	"math/rand/v2"
	"net"
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

// Server is a ZooKeeper server in this process. All its methods are safe for
// concurrent use.
type Server struct {
	cfg   config
	epoch time.Time // sessions expire at multiples of the tick from here

	// ctx ends with Close; hooks get it. It is the lifetime of the server and of no
	// caller.
	ctx    context.Context //nolint:containedctx // see above
	cancel context.CancelFunc
	wg     sync.WaitGroup // readers, bridges, listeners, hooks

	// member is set for a server of an ensemble, whose servers share mu,
	// journal and timetable.
	member *Member

	// mu guards the rest and all state of connections, sessions and the tree. No
	// goroutine holds it while it does I/O, runs a hook or waits.
	mu        *sync.Mutex
	rng       *rand.Rand
	tree      *dataTree
	prep      *prepStage
	watches   *watch.Manager[conn]
	users     *sasl.Users // who can log in; nil without a login configuration
	sessions  map[int64]*session
	clients   map[string]*ClientLink
	timetable *pipe.Timetable
	conns     map[*conn]struct{}
	links     map[*link]struct{}

	nextSession int64
	lastConn    int

	closed      bool
	stopped     bool
	suspended   bool // sessions do not expire
	refusing    bool
	hanging     bool
	partitioned bool
	readOnly    bool
	maxConns    int
	held        pipe.HoldCause
	changed     chan struct{} // closed at each change of the flags above
	eventDelay  time.Duration
	wallOffset  time.Duration

	pending  []*request // prepared, not yet applied
	logDelay time.Duration
	logHeld  bool
	logArmed bool
	logTimer *time.Timer

	expiryArmed bool
	expiryAt    int64 // tick
	expiryTimer *time.Timer
	sweepArmed  bool
	sweepTimer  *time.Timer

	judge     Judge
	outGate   func(Outgoing) bool // may be nil
	outNumber int                 // of the newest Outgoing
	counts    Counts
	stats     stats.Server
	journal   *journal

	address  net.Addr     // over TCP; nil until Listen
	listener net.Listener // nil without an address, and while the server is stopped
}

// Counts is what a server counts for assertions.
type Counts struct {
	Ops     map[zoodefs.Op]int // requests that have arrived, by type
	Events  int                // watch events that have been sent
	Expired int                // sessions that the server has ended
}

func newCounts() Counts { return Counts{Ops: map[zoodefs.Op]int{}} }

// New starts a server. The caller must Close it.
func New(cfg Config) *Server { return newServer(newConfig(cfg)) }

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

// Streams of random numbers. Each has one user, so that the draws of one user never
// shift those of another.
const (
	streamServer uint64 = iota
	streamDial
	streamUp
	streamDown
	streamConn
	streamLane
)

// generator returns the random numbers of one stream of one connection.
func (s *Server) generator(client string, dial int, stream uint64) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(client)) // a hash does not fail
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(dial))
	_, _ = h.Write(b[:])
	sum := h.Sum64() ^ stream<<56
	if s.member != nil {
		sum ^= uint64(s.member.id) << 48
	}
	return rand.New(rand.NewPCG(s.cfg.Seed, sum))
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

// beginTimer locks the mutex for a timer that has fired, and makes Close wait until
// the caller calls wg.Done. If the server is closed already, it reports false and
// leaves the mutex unlocked.
func (s *Server) beginTimer() bool {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return false
	}
	s.wg.Add(1)
	return true
}

// networkChanged wakes the dials and handshakes that wait for the network or the
// server to change.
func (s *Server) networkChanged() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// wall returns the time of the server's wall clock, which stamps nodes and ages
// TTLs.
func (s *Server) wall() time.Time { return s.cfg.Clock().Add(s.wallOffset) }

func (s *Server) wallMillis() int64 { return s.wall().UnixMilli() }

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
