package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/docent-go/docent/zktest"
)

// sample is the state at a time. With zktest the memory and the handles of the server count
// as well.
type sample struct {
	at             time.Duration
	done, failed   int64
	heap, resident int64 // bytes
	goroutines     int64
	handles        int64
	watches, nodes int64
}

func columns() []string {
	return []string{"seconds", "done", "failed", "heap MiB", "resident MiB", "goroutines", "file handles", "watches", "nodes"}
}

func (s sample) row() []string {
	row := []string{fmt.Sprintf("%.0f", s.at.Seconds()), fmt.Sprint(s.done), fmt.Sprint(s.failed)}
	for _, v := range s.measures() {
		row = append(row, strconv.FormatFloat(v, 'f', -1, 64))
	}
	return row
}

// measures are what must not grow, in the order of the columns.
func (s sample) measures() []float64 {
	const mib = 1 << 20
	return []float64{
		float64(s.heap*10/mib) / 10, float64(s.resident*10/mib) / 10,
		float64(s.goroutines), float64(s.handles), float64(s.watches), float64(s.nodes),
	}
}

// measured are the names of the measures.
func measured() []string { return columns()[3:] }

func measure(ctx context.Context, srv *zktest.Server, servers string, at time.Duration, done, failed int64) (sample, error) {
	runtime.GC() // so that the heap is what is reachable
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	s := sample{at: at, done: done, failed: failed, heap: int64(mem.HeapAlloc), goroutines: int64(runtime.NumGoroutine())}
	if status, err := os.ReadFile("/proc/self/status"); err == nil { // Linux
		_, rest, _ := strings.Cut(string(status), "VmRSS:")
		_, _ = fmt.Sscan(rest, &s.resident)
		s.resident *= 1024
	}
	if handles, err := os.ReadDir("/proc/self/fd"); err == nil {
		s.handles = int64(len(handles))
	}
	if srv != nil {
		s.watches, s.nodes = int64(srv.WatchCount()), int64(len(srv.Tree()))
		return s, nil
	}
	var err error
	s.watches, s.nodes, err = mntr(ctx, servers)
	return s, err
}

// mntr asks the first server for its watches and nodes.
func mntr(ctx context.Context, servers string) (watches, nodes int64, err error) {
	first, _, _ := strings.Cut(servers, ",")
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", first)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(opTimeout)); err != nil {
		return 0, 0, err
	}
	if _, err := io.WriteString(conn, "mntr"); err != nil {
		return 0, 0, err
	}
	text, err := io.ReadAll(conn)
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "\t")
		n, _ := strconv.ParseInt(value, 10, 64)
		switch name {
		case "zk_watch_count":
			watches = n
		case "zk_znode_count":
			nodes = n
		}
	}
	if nodes == 0 {
		return 0, 0, fmt.Errorf("%s does not answer mntr: set 4lw.commands.whitelist", first)
	}
	return watches, nodes, nil
}

// growth names each measure whose median in the last quarter exceeds that in the second by its
// slack. The first quarter is for caches and pools to fill. The samples are those at rest: while
// something works, there are the more nodes and watches the more the processors leave for it.
func growth(rested []sample) (grown []string) {
	if len(rested) < rests-1 { // too short to tell
		return nil
	}
	quarter := len(rested) / 4
	for i, slack := range []float64{4, 16, 20, 10, 20, 40} {
		was, is := median(rested[quarter:2*quarter], i), median(rested[len(rested)-quarter:], i)
		if is > was+slack {
			grown = append(grown, fmt.Sprintf("%s: %g in the second quarter, %g in the last", measured()[i], was, is))
		}
	}
	return grown
}

func median(samples []sample, i int) float64 {
	values := make([]float64, len(samples))
	for j, s := range samples {
		values[j] = s.measures()[i]
	}
	slices.Sort(values)
	return values[len(values)/2]
}
