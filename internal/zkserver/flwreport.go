package zkserver

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"
)

// dump lists sessions and connections by the time at which they expire, and the
// ephemeral nodes of each session.
func (s *Server) dump() string {
	var b strings.Builder
	sessions := map[time.Time][]string{}
	for _, id := range sortedKeys(s.sessions) {
		at := s.epoch.Add(time.Duration(s.sessions[id].expires) * s.cfg.Tick)
		sessions[at] = append(sessions[at], fmt.Sprintf("\t0x%x\n", uint64(id)))
	}
	fmt.Fprintf(&b, "SessionTracker dump:\nSession Sets (%d)/(%d):\n", len(sessions), len(s.sessions))
	s.writeExpiries(&b, sessions)
	owners := map[int64][]string{}
	for id := range s.tree.ephemerals {
		if owned := s.tree.ephemeralsOf(id); len(owned) > 0 {
			owners[id] = owned
		}
	}
	fmt.Fprintf(&b, "ephemeral nodes dump:\nSessions with Ephemerals (%d):\n", len(owners))
	for _, id := range sortedKeys(owners) {
		fmt.Fprintf(&b, "0x%x:\n\t%s\n", uint64(id), strings.Join(owners[id], "\n\t"))
	}
	conns := map[time.Time][]string{}
	for _, c := range s.sortedConns() {
		timeout := c.timeout
		if c.session == 0 {
			timeout = connExpiry
		}
		at := s.epoch.Add((c.stats.lastIn.Sub(s.epoch) + timeout).Truncate(connExpiry) + connExpiry)
		conns[at] = append(conns[at], fmt.Sprintf("\tip: /%s sessionId: 0x%x\n", c.end.remote, uint64(c.session)))
	}
	fmt.Fprintf(&b, "Connections dump:\nConnections Sets (%d)/(%d):\n", len(conns), len(s.conns))
	s.writeExpiries(&b, conns)
	return b.String()
}

// connExpiry is zookeeper.nio.sessionlessCnxnTimeout. At multiples of it the real
// server lets connections expire. Here it is used in texts only.
const connExpiry = 10 * time.Second

// writeExpiries writes lines under the times that they belong to, the earliest
// first.
func (s *Server) writeExpiries(b *strings.Builder, lines map[time.Time][]string) {
	for _, at := range slices.SortedFunc(maps.Keys(lines), time.Time.Compare) {
		date := at.Add(s.wallOffset).Format("Mon Jan 02 15:04:05 MST 2006")
		fmt.Fprintf(b, "%d expire at %s:\n%s", len(lines[at]), date, strings.Join(lines[at], ""))
	}
}

func sortedKeys[V any](m map[int64]V) []int64 {
	keys := make([]int64, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// wchs counts connections, paths and watches on data and existence. The real
// server's summary looks at that table only.
func (s *Server) wchs() string {
	t := s.watches.tables[dataTable]
	total := 0
	for _, paths := range t.byConn {
		total += len(paths)
	}
	return fmt.Sprintf("%d connections watching %d paths\nTotal watches:%d\n",
		len(t.byConn), len(t.byPath), total)
}

func (s *Server) wchp() string {
	var b strings.Builder
	t := s.watches.tables[dataTable]
	paths := make([]string, 0, len(t.byPath))
	for p := range t.byPath {
		paths = append(paths, p)
	}
	slices.Sort(paths)
	for _, p := range paths {
		var ids []int64
		for c := range t.byPath[p] {
			ids = append(ids, c.session)
		}
		slices.Sort(ids)
		b.WriteString(p + "\n")
		for _, id := range ids {
			fmt.Fprintf(&b, "\t0x%x\n", uint64(id))
		}
	}
	b.WriteString("\n")
	return b.String()
}

func (s *Server) wchc() string {
	sessions := map[int64][]string{}
	for c, paths := range s.watches.tables[dataTable].byConn {
		for p := range paths {
			sessions[c.session] = append(sessions[c.session], p)
		}
	}
	var b strings.Builder
	for _, id := range sortedKeys(sessions) {
		slices.Sort(sessions[id])
		fmt.Fprintf(&b, "0x%x\n\t%s\n", uint64(id), strings.Join(sessions[id], "\n\t"))
	}
	b.WriteString("\n")
	return b.String()
}

func (s *Server) conf() string {
	port := "0"
	if s.listener != nil {
		a := s.listener.Addr().String()
		port = a[strings.LastIndexByte(a, ':')+1:]
	}
	return fmt.Sprintf("clientPort=%s\nsecureClientPort=-1\ndataDir=\ndataDirSize=0\ndataLogDir=\n"+
		"dataLogSize=0\ntickTime=%d\nmaxClientCnxns=%d\nminSessionTimeout=%d\nmaxSessionTimeout=%d\n"+
		"clientPortListenBacklog=-1\nserverId=0\n", port, s.cfg.Tick.Milliseconds(), s.maxConns,
		s.cfg.MinTimeout.Milliseconds(), s.cfg.MaxTimeout.Milliseconds())
}

// envi has the keys of the real server. The keys about a Java machine have no value
// here.
func (s *Server) envi() string {
	var b strings.Builder
	product := "zookeeper"
	if s.cfg.Keeper {
		product = "clickhouse.keeper"
	}
	b.WriteString("Environment:\n" + product + ".version=" + s.cfg.versionText() + "\nhost.name=localhost\n")
	for key := range strings.FieldsSeq("java.version java.vendor java.home java.class.path java.library.path " +
		"java.io.tmpdir java.compiler") {
		b.WriteString(key + "=<NA>\n")
	}
	fmt.Fprintf(&b, "os.name=%s\nos.arch=%s\n", runtime.GOOS, runtime.GOARCH)
	for key := range strings.FieldsSeq("os.version user.name user.home user.dir os.memory.free os.memory.max " +
		"os.memory.total") {
		b.WriteString(key + "=<NA>\n")
	}
	return b.String()
}
