// Package stats keeps what the four-letter words tell of a server and its connections.
package stats

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/docent-go/docent/internal/zoodefs"
)

// Latencies sums up how long requests took.
type Latencies struct {
	N                   int64
	Last, Min, Max, Sum time.Duration
}

// Add counts a request that took d.
func (l *Latencies) Add(d time.Duration) {
	if l.N == 0 || d < l.Min {
		l.Min = d
	}
	l.Max = max(l.Max, d)
	l.N++
	l.Last = d
	l.Sum += d
}

// Mean returns milliseconds with at most four decimals and always a point, as Java
// prints them.
func (l *Latencies) Mean() string {
	if l.N == 0 {
		return "0.0"
	}
	ms := l.Sum.Seconds() * 1000 / float64(l.N)
	text := strconv.FormatFloat(math.Round(ms*1e4)/1e4, 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text
}

// Conn is what the four-letter words tell about a connection, since it was
// made or since crst.
type Conn struct {
	Established    time.Time
	LastIn         time.Time // its expiry counts from here
	Received, Sent int64
	Latency        Latencies
	LastOp         zoodefs.Op
	LastXid        int32 // -1 if there was none
	LastZxid       int64 // that of the server at the last reply
	LastResponse   time.Time
}

// NewConn returns the counts of a connection that is made now.
func NewConn(now time.Time) Conn {
	return Conn{Established: now, LastIn: now, LastXid: -1, LastZxid: -1}
}

// Server is what the four-letter words tell about the server, since its start
// or since srst.
type Server struct {
	Received, Sent int64
	Latency        Latencies
	TraceMask      int64
	// Sizes of replies in bytes, -1 when there was none. They are not reset.
	LastResponse, MinResponse, MaxResponse int
}

// defaultTraceMask is that of the real server: client requests, sessions and
// warnings.
const defaultTraceMask = 306

// NewServer returns the counts of a server that starts now.
func NewServer() Server {
	return Server{TraceMask: defaultTraceMask, LastResponse: -1, MinResponse: -1, MaxResponse: -1}
}

// LastOpName is the name that cons gives a request. A write that failed has no
// name.
func LastOpName(op zoodefs.Op) string {
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
