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

// ClientLink is the network between one client and the server. Its random draws
// depend on the server's seed, the client's name and the number of the connection,
// and on nothing else. A ClientLink is safe for concurrent use.
type ClientLink struct {
	s    *Server
	name string

	// Guarded by the server's mutex.
	dials       int
	rng         *rand.Rand
	held        pipe.HoldCause
	refusing    bool
	partitioned bool
	paused      chan struct{} // closed on resume; nil while not paused
	latency     pipe.Latency
	lane        pipe.Lane // the instants at which its dials end
}

// link is a connection between a client and the server.
type link struct {
	up, down *pipe.Half // client to server, server to client
	owner    *ClientLink
	tcp      net.Conn // set when the client's end is bridged to a socket

	clientGone, serverGone bool // guarded by the server's mutex
}

func (k *link) hold(c pipe.HoldCause) {
	k.up.Hold(c)
	k.down.Hold(c)
}

func (k *link) release(c pipe.HoldCause) {
	k.up.Release(c)
	k.down.Release(c)
}

// abort ends the connection at once for both sides.
func (k *link) abort() {
	k.up.Abort()
	k.down.Abort()
	if k.tcp != nil {
		_ = k.tcp.Close() // its reader hears of it
	}
}

// conn is the server's end of a connection. One goroutine reads it. The server's
// mutex guards everything below the blank line.
type conn struct {
	s     *Server
	id    int
	owner *ClientLink
	link  *link
	end   *pipe.End
	done  chan struct{} // closed when the connection is over
	ready chan struct{} // closed when the handshake has been answered

	rng       *rand.Rand
	auth      []access.ID
	session   int64
	timeout   time.Duration
	oldClient bool
	login     *sasl.Login // nil before the first token
	out       []*outItem
	muted     bool // nothing more goes out
	dead      bool
	moved     bool       // the session belongs to another server now
	waiting   []*request // of an ensemble: in order, the first a write of this connection
	stats     stats.Conn
}

// outItem is a frame on its way out. Frames leave in order, so a frame that is not
// ready holds back the frames behind it.
type outItem struct {
	frame []byte
	event bool
	close bool
	ready bool
	stays *Outgoing // set while a gate keeps the frame
}

// session is the session of a client. The server's mutex guards it.
type session struct {
	id      int64
	timeout time.Duration // negotiated when it was created
	expires int64         // tick at which it is over
	closing bool
	local   bool    // of a server without a quorum, which alone knows it
	conn    *conn   // nil while no connection is attached
	owner   *Server // of an ensemble: the server that it was last attached to; nil if unknown
	client  string
}

// request is one request on its way through the server. When it has been submitted,
// the server's mutex guards it.
type request struct {
	s        *Server
	c        *conn // nil for the server's own requests
	client   string
	session  int64
	xid      int32
	op       zoodefs.Op
	logOp    zoodefs.Op // its type in the log, if that differs
	body     []byte
	ids      []access.ID
	internal bool // not bound to a session

	// Of a request in an ensemble: the leader that prepared it, and the timeout of
	// the session that it opens. sent means to the leader, and committed that a
	// quorum has it.
	leader    *Server
	timeout   time.Duration
	sent      bool
	committed bool

	verdict Verdict
	path    string // for the log and for rules
	paths   []string
	flags   int32
	watch   bool
	step    int // of a login
	// unknownPart is set for a transaction with a request of an unknown type.
	unknownPart bool
	at          time.Time

	txn *txn
	err zoodefs.Code
	// keepBody marks an error whose answer has a body: what the server had written
	// before it met the error.
	keepBody bool
	due      time.Time // when it may leave the log
	result   txnResult
}

// Counts is what a server counts for assertions.
type Counts struct {
	Ops     map[zoodefs.Op]int // requests that have arrived, by type
	Events  int                // watch events that have been sent
	Expired int                // sessions that the server has ended
}

func newCounts() Counts { return Counts{Ops: map[zoodefs.Op]int{}} }

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

// journal keeps the requests whose outcome is known and tells observers. The
// servers of an ensemble share one. Their mutex guards it.
type journal struct {
	size      int
	observers []func(Request)
	log       []Request
	unseen    []Request // recorded, not yet given to observers
	reporting bool

	commitObservers []func(Commit)
	unseenCommits   []Commit
}

func newJournal(size int) *journal { return &journal{size: size} }
