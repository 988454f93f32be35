package zkserver

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/docent-go/docent/internal/zkserver/watch"
)

// mntr returns gauges, which follow the state of the server, and then counters and
// summaries, which stay at zero here. The names are those of the release; their
// order is that of release 3.8.
func (s *Server) mntr() string {
	st := &s.stats
	size := 0
	for path, n := range s.tree.nodes {
		size += len(path) + len(n.data)
	}
	ephemerals := 0
	for _, owned := range s.tree.ephemerals {
		ephemerals += len(owned)
	}
	var b strings.Builder
	for _, g := range []struct {
		name  string
		value any
	}{
		{"version", s.cfg.versionText()},
		{"server_state", s.mode()},
		{"ephemerals_count", ephemerals},
		{"num_alive_connections", len(s.conns)},
		{"avg_latency", st.Latency.Mean()},
		{"outstanding_requests", len(s.pending)},
		{"znode_count", len(s.tree.nodes)},
		{"global_sessions", len(s.sessions)},
		{"non_mtls_remote_conn_count", 0},
		{"last_client_response_size", st.LastResponse},
		{"packets_sent", st.Sent},
		{"packets_received", st.Received},
		{"max_client_response_size", st.MaxResponse},
		{"connection_drop_probability", "0.0"},
		{"watch_count", s.watches.Size()},
		{"auth_failed_count", 0},
		{"min_latency", st.Latency.Min.Milliseconds()},
		{"max_file_descriptor_count", 0},
		{"approximate_data_size", size},
		{"open_file_descriptor_count", 0},
		{"local_sessions", 0},
		{"uptime", time.Since(s.epoch).Milliseconds()},
		{"max_latency", st.Latency.Max.Milliseconds()},
		{"outstanding_tls_handshake", 0},
		{"min_client_response_size", st.MinResponse},
		{"non_mtls_local_conn_count", 0},
	} {
		fmt.Fprintf(&b, "zk_%s\t%v\n", g.name, g.value)
	}
	counters, summaries := mntrCounters, mntrSummaries
	if s.cfg.traits.restores {
		counters += mntrRestoreCounters
		summaries += " restore_time"
	}
	for name := range strings.FieldsSeq(counters) {
		fmt.Fprintf(&b, "zk_%s\t0\n", name)
	}
	for name := range strings.FieldsSeq(summaries) {
		fmt.Fprintf(&b, "zk_avg_%s\t0.0\n", name)
		writeZeros(&b, name, "min", "max", "cnt", "sum")
	}
	for name := range strings.FieldsSeq(mntrPercentiles) {
		fmt.Fprintf(&b, "zk_avg_%s\t0.0\n", name)
		writeZeros(&b, name, "min", "max", "cnt", "sum", "p50", "p95", "p99", "p999")
	}
	return b.String()
}

func writeZeros(b *strings.Builder, name string, kinds ...string) {
	for _, kind := range kinds {
		fmt.Fprintf(b, "zk_%s_%s\t0\n", kind, name)
	}
}

const mntrCounters = `
proposal_count watch_bytes outstanding_changes_removed throttled_ops stale_requests_dropped
large_requests_rejected insecure_admin_count connection_rejected
cnxn_closed_without_zk_server_running sessionless_connections_expired looking_count
dead_watchers_queued stale_requests connection_drop_count learner_proposal_received_count
digest_mismatches_count dead_watchers_cleared response_packet_cache_hits bytes_received_count
add_dead_watcher_stall_time request_throttle_wait_count
requests_not_forwarded_to_commit_processor response_packet_cache_misses ensemble_auth_success
prep_processor_request_queued learner_commit_received_count stale_replies
connection_request_count response_bytes ensemble_auth_fail diff_count
response_packet_get_children_cache_misses connection_revalidate_count
quit_leading_due_to_disloyal_voter snap_count unrecoverable_error_count unsuccessful_handshake
commit_count stale_sessions_expired response_packet_get_children_cache_hits
sync_processor_request_queued outstanding_changes_queued request_commit_queued
ensemble_auth_skip skip_learner_request_to_next_processor_count tls_handshake_exceeded
revalidate_count`

// mntrRestoreCounters are the counters that came with 3.9.0.
const mntrRestoreCounters = `
restore_error_count restore_rate_limited_count snapshot_error_count snapshot_rate_limited_count`

const mntrSummaries = `
socket_closing_time proposal_process_time leader_unavailable_time node_created_watch_count
session_queues_drained write_commit_proc_req_queued connection_token_deficit
read_commit_proc_req_queued node_deleted_watch_count startup_txns_load_time
sync_processor_queue_size follower_sync_time prep_processor_queue_size fsynctime
inflight_snap_count reads_issued_from_session_queue learner_request_processor_queue_size
snapshottime unavailable_time startup_txns_loaded reads_after_write_in_session_queue
requests_in_session_queue write_commit_proc_issued prep_process_time pending_session_queue_size
time_waiting_empty_pool_in_commit_processor_read_ms commit_process_time dbinittime
inflight_diff_count netty_queued_buffer_capacity election_time commit_commit_proc_req_queued
sync_processor_batch_size node_children_watch_count write_batch_time_in_commit_processor
read_commit_proc_issued concurrent_request_processing_in_commit_processor observer_sync_time
node_changed_watch_count sync_process_time startup_snap_load_time`

// mntrPercentiles are the summaries that have percentiles too.
const mntrPercentiles = `
prep_processor_queue_time_ms jvm_pause_time_ms close_session_prep_time read_commitproc_time_ms
updatelatency local_write_committed_time_ms request_throttle_queue_time_ms readlatency
quorum_ack_latency om_commit_process_time_ms read_final_proc_time_ms commit_propagation_latency
dead_watchers_cleaner_latency write_final_proc_time_ms proposal_ack_creation_latency
proposal_latency om_proposal_process_time_ms sync_processor_queue_and_flush_time_ms
propagation_latency server_write_committed_time_ms sync_processor_queue_time_ms
sync_processor_queue_flush_time_ms write_commitproc_time_ms`

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
		at := s.epoch.Add((c.stats.LastIn.Sub(s.epoch) + timeout).Truncate(connExpiry) + connExpiry)
		conns[at] = append(conns[at], fmt.Sprintf("\tip: /%s sessionId: 0x%x\n", c.end.Remote, uint64(c.session)))
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
	t := s.watches.Tables[watch.DataTable]
	total := 0
	for _, paths := range t.ByConn {
		total += len(paths)
	}
	return fmt.Sprintf("%d connections watching %d paths\nTotal watches:%d\n",
		len(t.ByConn), len(t.ByPath), total)
}

func (s *Server) wchp() string {
	var b strings.Builder
	t := s.watches.Tables[watch.DataTable]
	paths := make([]string, 0, len(t.ByPath))
	for p := range t.ByPath {
		paths = append(paths, p)
	}
	slices.Sort(paths)
	for _, p := range paths {
		var ids []int64
		for c := range t.ByPath[p] {
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
	for c, paths := range s.watches.Tables[watch.DataTable].ByConn {
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

// sortedConns returns the connections in the order in which they were made.
func (s *Server) sortedConns() []*conn {
	out := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b *conn) int { return a.id - b.id })
	return out
}

func (s *Server) mode() string {
	switch {
	case s.readsOnly():
		return "read-only"
	case s.member == nil:
		return "standalone"
	case s.member.role == roleLeading:
		return "leader"
	default:
		return "follower"
	}
}
