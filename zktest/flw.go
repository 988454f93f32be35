package zktest

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"
)

// versionText is what the server says it is where clients parse it.
const versionText = "3.8.0-zktest, built on 2022-03-07 19:32 UTC"

// fourLetterWord reports whether the length of a first frame spells a command.
func fourLetterWord(n uint32) (string, bool) {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], n)
	switch w := string(b[:]); w {
	case "ruok", "srvr", "stat", "mntr", "cons", "dump", "wchs", "wchp", "wchc", "envi", "conf", "isro":
		return w, true
	default:
		return "", false
	}
}

// answerWord answers a four-letter word. All are enabled.
func (s *Server) answerWord(word string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away() && word != "ruok" {
		return "This ZooKeeper instance is not currently serving requests\n"
	}
	switch word {
	case "ruok":
		return "imok"
	case "isro":
		if s.readOnly {
			return "ro"
		}
		return "rw"
	case "srvr":
		return "Zookeeper version: " + versionText + "\n" + s.srvr()
	case "stat":
		return "Zookeeper version: " + versionText + "\nClients:\n" + s.cons(true) + "\n" + s.srvr()
	case "cons":
		return s.cons(false) + "\n"
	case "mntr":
		return s.mntr()
	case "dump":
		return s.dump()
	case "wchs":
		return s.wchs()
	case "wchp":
		return s.wchp()
	case "wchc":
		return s.wchc()
	case "conf":
		return s.conf()
	default:
		return s.envi()
	}
}

func (s *Server) mode() string {
	switch {
	case s.readOnly:
		return "read-only"
	case s.member == nil:
		return "standalone"
	case s.member.role == roleLeading:
		return "leader"
	default:
		return "follower"
	}
}

// latency returns the least, mean and greatest latency in milliseconds.
func (s *Server) latency() (lo time.Duration, avg float64, hi time.Duration, received, sent int64) {
	var sum time.Duration
	for c := range s.conns {
		st := &c.stats
		if st.sent > 0 && (lo == 0 || st.minLat < lo) {
			lo = st.minLat
		}
		hi = max(hi, st.maxLat)
		sum += st.sum
		received += st.received
		sent += st.sent
	}
	if sent > 0 {
		avg = float64(sum.Microseconds()) / float64(sent) / 1000
	}
	return lo, avg, hi, received, sent
}

func (s *Server) srvr() string {
	lo, avg, hi, received, sent := s.latency()
	return fmt.Sprintf("Latency min/avg/max: %d/%.4g/%d\nReceived: %d\nSent: %d\nConnections: %d\n"+
		"Outstanding: %d\nZxid: 0x%x\nMode: %s\nNode count: %d\n",
		lo.Milliseconds(), avg, hi.Milliseconds(), received, sent, len(s.conns),
		len(s.pending), s.tree.lastZxid, s.mode(), len(s.tree.nodes)-1)
}

// sortedConns returns the connections in the order in which they were made.
func (s *Server) sortedConns() []*conn {
	out := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b *conn) int { return a.id - b.id })
	return out
}

func (s *Server) cons(brief bool) string {
	var b strings.Builder
	for _, c := range s.sortedConns() {
		st := &c.stats
		fmt.Fprintf(&b, " /%s[%d](queued=%d,recved=%d,sent=%d", c.end.remote, c.interest(),
			len(c.out), st.received, st.sent)
		if brief || c.session == 0 {
			b.WriteString(")\n")
			continue
		}
		avg := float64(0)
		if st.sent > 0 {
			avg = float64(st.sum.Milliseconds()) / float64(st.sent)
		}
		fmt.Fprintf(&b, ",sid=0x%x,lop=%s,est=%d,to=%d,lcxid=0x%x,lzxid=0x%x,lresp=%d,llat=0,minlat=%d,avglat=%.0f,maxlat=%d)\n",
			uint64(c.session), lastOpName(st.lastOp), st.established.UnixMilli(), c.timeout.Milliseconds(),
			uint32(st.lastXid), uint64(st.lastZxid), st.lastResponse.UnixMilli(),
			st.minLat.Milliseconds(), avg, st.maxLat.Milliseconds())
	}
	return b.String()
}

// interest is the selector's interest set: 1 for a connection that reads, 0
// for one that still waits for its session.
func (c *conn) interest() int {
	if c.session == 0 {
		return 0
	}
	return 1
}

func lastOpName(op Op) string {
	switch op {
	case OpPing:
		return "PING"
	case OpConnect:
		return "SESS"
	case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL:
		return "CREA"
	case OpDelete:
		return "DELE"
	case OpSetData:
		return "SETD"
	case OpSetACL:
		return "SETA"
	case OpGetACL:
		return "GETA"
	case OpGetData:
		return "GETD"
	case OpGetChildren, OpGetChildren2:
		return "GETC"
	case OpExists:
		return "EXIS"
	case OpMulti:
		return "MULT"
	case OpSetWatches, OpSetWatches2:
		return "SETW"
	case OpSync:
		return "SYNC"
	case OpCloseSession:
		return "CLOS"
	default:
		return "NA"
	}
}
