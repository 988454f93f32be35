package zkserver

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/docent-go/docent/internal/zoodefs"
)

// latencies sums up how long requests took.
type latencies struct {
	n                   int64
	last, min, max, sum time.Duration
}

func (l *latencies) add(d time.Duration) {
	if l.n == 0 || d < l.min {
		l.min = d
	}
	l.max = max(l.max, d)
	l.n++
	l.last = d
	l.sum += d
}

// mean returns milliseconds with at most four decimals and always a point, as Java
// prints them.
func (l *latencies) mean() string {
	if l.n == 0 {
		return "0.0"
	}
	ms := l.sum.Seconds() * 1000 / float64(l.n)
	text := strconv.FormatFloat(math.Round(ms*1e4)/1e4, 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text
}

// connStats is what the four-letter words tell about a connection, since it was
// made or since crst.
type connStats struct {
	established    time.Time
	lastIn         time.Time // its expiry counts from here
	received, sent int64
	latency        latencies
	lastOp         zoodefs.Op
	lastXid        int32 // -1 if there was none
	lastZxid       int64 // that of the server at the last reply
	lastResponse   time.Time
}

func newConnStats(now time.Time) connStats {
	return connStats{established: now, lastIn: now, lastXid: -1, lastZxid: -1}
}

// serverStats is what the four-letter words tell about the server, since its start
// or since srst.
type serverStats struct {
	received, sent int64
	latency        latencies
	traceMask      int64
	// Sizes of replies in bytes, -1 when there was none. They are not reset.
	lastResponse, minResponse, maxResponse int
}

// defaultTraceMask is that of the real server: client requests, sessions and
// warnings.
const defaultTraceMask = 306

func newServerStats() serverStats {
	return serverStats{traceMask: defaultTraceMask, lastResponse: -1, minResponse: -1, maxResponse: -1}
}

// received counts a packet from the client. The mutex is held.
func (c *conn) received() {
	c.stats.received++
	c.stats.lastIn = time.Now()
	c.s.stats.received++
}

// sent counts a packet to the client. The mutex is held.
func (c *conn) sent() {
	c.stats.sent++
	c.s.stats.sent++
}

// observe counts a request that is answered with size bytes. Auth requests and the
// handshakes of sessions that come back do not count, because they do not pass the
// stages of the real server.
func (c *conn) observe(r *request, size int) {
	if r.op == zoodefs.OpAuth || r.op == zoodefs.OpSASL || r.op == zoodefs.OpConnect && r.txn == nil {
		return
	}
	now := time.Now()
	for _, l := range []*latencies{&c.stats.latency, &c.s.stats.latency} {
		l.add(now.Sub(r.at))
	}
	st, all := &c.stats, &c.s.stats
	st.lastOp, st.lastZxid, st.lastResponse = r.op, c.s.tree.lastZxid, now
	if r.txn != nil && r.txn.op == zoodefs.OpError {
		st.lastOp = zoodefs.OpError
	}
	if r.op == zoodefs.OpConnect {
		return
	}
	if r.xid >= 0 {
		st.lastXid = r.xid
	}
	if all.lastResponse < 0 || size < all.minResponse {
		all.minResponse = size
	}
	all.maxResponse = max(all.maxResponse, size)
	all.lastResponse = size
}

// lastOpName is the name that cons gives a request. A write that failed has no
// name.
func lastOpName(op zoodefs.Op) string {
	switch op {
	case zoodefs.OpPing:
		return "PING"
	case zoodefs.OpConnect:
		return "SESS"
	case zoodefs.OpCreate, zoodefs.OpCreate2, zoodefs.OpCreateContainer, zoodefs.OpCreateTTL:
		return "CREA"
	case zoodefs.OpDelete:
		return "DELE"
	case zoodefs.OpExists:
		return "EXIS"
	case zoodefs.OpGetData:
		return "GETD"
	case zoodefs.OpSetData:
		return "SETD"
	case zoodefs.OpGetACL:
		return "GETA"
	case zoodefs.OpSetACL:
		return "SETA"
	case zoodefs.OpGetChildren, zoodefs.OpGetChildren2:
		return "GETC"
	case zoodefs.OpGetAllChildrenNumber:
		return "GETACN"
	case zoodefs.OpGetEphemerals:
		return "GETE"
	case zoodefs.OpSync:
		return "SYNC"
	case zoodefs.OpMulti:
		return "MULT"
	case zoodefs.OpMultiRead:
		return "MLTR"
	case zoodefs.OpSetWatches:
		return "SETW"
	case zoodefs.OpSetWatches2:
		return "STW2"
	case zoodefs.OpAddWatch:
		return "ADDW"
	case zoodefs.OpCheckWatches:
		return "CHKW"
	case zoodefs.OpRemoveWatches:
		return "REMW"
	case zoodefs.OpWhoAmI:
		return "HOMI"
	case zoodefs.OpCloseSession:
		return "CLOS"
	default:
		return "NA"
	}
}
