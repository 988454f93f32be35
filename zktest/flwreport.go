package zktest

import (
	"fmt"
	"slices"
	"strings"
)

func (s *Server) mntr() string {
	lo, avg, hi, received, sent := s.latency()
	size := 0
	for path, n := range s.tree.nodes {
		size += len(path) + len(n.data)
	}
	ephemerals := 0
	for _, owned := range s.tree.ephemerals {
		ephemerals += len(owned)
	}
	var b strings.Builder
	put := func(key string, value any) { fmt.Fprintf(&b, "zk_%s\t%v\n", key, value) }
	put("version", versionText)
	put("server_state", s.mode())
	put("avg_latency", fmt.Sprintf("%.4g", avg))
	put("max_latency", hi.Milliseconds())
	put("min_latency", lo.Milliseconds())
	put("packets_received", received)
	put("packets_sent", sent)
	put("num_alive_connections", len(s.conns))
	put("outstanding_requests", len(s.pending))
	put("znode_count", len(s.tree.nodes)-1)
	put("watch_count", s.watches.size())
	put("ephemerals_count", ephemerals)
	put("approximate_data_size", size)
	put("global_sessions", len(s.sessions))
	return b.String()
}

// dump lists sessions by the time they expire, and who owns which ephemeral.
func (s *Server) dump() string {
	var b strings.Builder
	buckets := map[int64][]int64{}
	for id, ses := range s.sessions {
		buckets[ses.expires] = append(buckets[ses.expires], id)
	}
	fmt.Fprintf(&b, "SessionTracker dump:\nSession Sets (%d)/(%d):\n", len(buckets), len(s.sessions))
	for _, tick := range sortedKeys(buckets) {
		ids := buckets[tick]
		slices.Sort(ids)
		fmt.Fprintf(&b, "%d expire at tick %d:\n", len(ids), tick)
		for _, id := range ids {
			fmt.Fprintf(&b, "\t0x%x\n", uint64(id))
		}
	}
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
	fmt.Fprintf(&b, "Connections dump:\nConnections Sets (%d)/(%d):\n", 1, len(s.conns))
	return b.String()
}

func sortedKeys[V any](m map[int64]V) []int64 {
	keys := make([]int64, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// wchs counts connections, paths and watches on data and existence, which is
// the table the server's own summary looks at.
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
	return b.String()
}

func (s *Server) conf() string {
	port := "0"
	if s.listener != nil {
		a := s.listener.Addr().String()
		port = a[strings.LastIndexByte(a, ':')+1:]
	}
	return fmt.Sprintf("clientPort=%s\ndataDir=\ndataLogDir=\ntickTime=%d\nmaxClientCnxns=0\n"+
		"minSessionTimeout=%d\nmaxSessionTimeout=%d\nserverId=0\n", port, s.cfg.tick.Milliseconds(),
		s.cfg.minTimeout.Milliseconds(), s.cfg.maxTimeout.Milliseconds())
}

func (s *Server) envi() string {
	return "Environment:\nzookeeper.version=" + versionText + "\nhost.name=localhost\n" +
		fmt.Sprintf("zktest.seed=%d\n", s.cfg.seed)
}
