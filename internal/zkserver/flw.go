package zkserver

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/docent-go/docent/internal/zkserver/stats"
)

// fourLetterWord reports whether the length of a first frame spells a command, and
// which.
func fourLetterWord(n uint32) (string, bool) {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], n)
	switch w := string(b[:]); w {
	case "ruok", "srvr", "stat", "mntr", "cons", "dump", "wchs", "wchp", "wchc", "envi", "conf", "isro",
		"crst", "srst", "dirs", "gtmk", "stmk", "hash":
		return w, true
	default:
		return "", false
	}
}

// answerWord answers a four-letter word and ends the connection. All words are
// enabled.
func (c *conn) answerWord(word string, br *bufio.Reader) error {
	var mask [8]byte
	if word == "stmk" {
		// The real server takes the bytes that are there, and closes if they are too few.
		if br.Buffered() < len(mask) {
			return io.ErrUnexpectedEOF
		}
		_, _ = io.ReadFull(br, mask[:]) // it is buffered
	}
	c.s.mu.Lock()
	c.received()
	if word == "stmk" {
		c.s.stats.TraceMask = int64(binary.BigEndian.Uint64(mask[:]))
	}
	text := c.s.answerWord(word)
	for range packets(text) {
		c.sent()
	}
	c.s.mu.Unlock()
	c.end.Out.Write([]byte(text), 0)
	return errConnOver
}

// packets returns in how many pieces the real server sends a text. It sends one
// when 2 KiB have come together.
func packets(text string) int {
	n, size := 0, 0
	for line := range strings.Lines(text) {
		if size += len(line); size > 2048 {
			n, size = n+1, 0
		}
	}
	if size > 0 {
		n++
	}
	return n
}

// needsQuorum reports whether a server without a quorum leaves the word unanswered.
func needsQuorum(word string) bool {
	switch word {
	case "ruok", "envi", "gtmk", "stmk", "isro":
		return false
	default:
		return true
	}
}

func (s *Server) answerWord(word string) string {
	if s.away() && !s.readsOnly() {
		if needsQuorum(word) {
			return "This ZooKeeper instance is not currently serving requests\n"
		}
		if word == "isro" {
			return "null"
		}
	}
	switch word {
	case "ruok":
		return "imok"
	case "isro":
		if s.readsOnly() {
			return "ro"
		}
		return "rw"
	case "srvr":
		return s.versionLine() + s.srvr()
	case "stat":
		return s.versionLine() + "Clients:\n" + s.cons(true) + "\n" + s.srvr()
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
	case "envi":
		return s.envi()
	case "dirs":
		return "datadir_size: 0\nlogdir_size: 0\n"
	case "gtmk", "stmk":
		return fmt.Sprint(s.stats.TraceMask)
	case "crst":
		for c := range s.conns {
			established, lastIn := c.stats.Established, c.stats.LastIn
			c.stats = stats.NewConn(established)
			c.stats.LastIn = lastIn
		}
		return "Connection stats reset.\n"
	case "srst":
		s.stats.Received, s.stats.Sent, s.stats.Latency = 0, 0, stats.Latencies{}
		return "Server stats reset.\n"
	default:
		return "" // hash: the tree has no digests
	}
}

func (s *Server) versionLine() string {
	product := "Zookeeper"
	if s.cfg.Keeper {
		product = "ClickHouse Keeper"
	}
	return product + " version: " + s.cfg.versionText() + "\n"
}

func (s *Server) srvr() string {
	st := &s.stats
	return fmt.Sprintf("Latency min/avg/max: %d/%s/%d\nReceived: %d\nSent: %d\nConnections: %d\n"+
		"Outstanding: %d\nZxid: 0x%x\nMode: %s\nNode count: %d\n",
		st.Latency.Min.Milliseconds(), st.Latency.Mean(), st.Latency.Max.Milliseconds(),
		st.Received, st.Sent, len(s.conns),
		len(s.pending), s.tree.lastZxid, s.mode(), len(s.tree.nodes))
}

// cons describes the connections: in full for cons, briefly for stat.
func (s *Server) cons(brief bool) string {
	var b strings.Builder
	for _, c := range s.sortedConns() {
		st := &c.stats
		fmt.Fprintf(&b, " /%s[%d](queued=%d,recved=%d,sent=%d", c.end.Remote, c.interest(),
			c.outstanding(), st.Received, st.Sent)
		if brief || c.session == 0 {
			b.WriteString(")\n")
			continue
		}
		fmt.Fprintf(&b, ",sid=0x%x,lop=%s,est=%d,to=%d", uint64(c.session), stats.LastOpName(st.LastOp),
			st.Established.UnixMilli(), c.timeout.Milliseconds())
		if st.LastXid >= 0 {
			fmt.Fprintf(&b, ",lcxid=0x%x", st.LastXid)
		}
		answered := int64(0)
		if !st.LastResponse.IsZero() {
			answered = st.LastResponse.UnixMilli()
		}
		l := &st.Latency
		fmt.Fprintf(&b, ",lzxid=0x%x,lresp=%d,llat=%d,minlat=%d,avglat=%d,maxlat=%d)\n",
			uint64(st.LastZxid), answered, l.Last.Milliseconds(), l.Min.Milliseconds(),
			(l.Sum / time.Duration(max(1, l.N))).Milliseconds(), l.Max.Milliseconds())
	}
	return b.String()
}

// outstanding counts the requests of a connection that have no answer yet.
func (c *conn) outstanding() int {
	n := 0
	for _, r := range c.s.pending {
		if r.c == c && r.xid > 0 {
			n++
		}
	}
	return n + len(c.waiting)
}

// interest is the connection's interest set in the selector of the real server.
// It is 1 for a connection that reads, and 0 for one that still waits for its
// session.
func (c *conn) interest() int {
	if c.session == 0 {
		return 0
	}
	return 1
}
