package exclusion_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// who is one goroutine of one worker.
type who struct{ worker, routine int }

// witness is the resource that the lock protects. It stands outside of the
// lock and sees the reports in one order, its own. It accepts an open only
// with a token greater than all before.
type witness struct {
	socket string
	ln     net.Listener
	wg     sync.WaitGroup

	mu      sync.Mutex // guards the rest; not held while a hook runs
	inside  map[*witnessed]bool
	token   int64 // greatest accepted
	seq     int64 // of the node with that token
	hook    func(report) time.Duration
	tally   tally
	turns   map[who]int
	changed chan struct{} // closed and replaced with every report
}

// tally is what the witness has seen.
type tally struct {
	opens, closes int
	refused       int      // opens with an old token
	overlaps      int      // opens while another holder had not closed
	deceived      []string // of such opens: the other believed to hold when it closed
	disorder      []string // a greater token with a lower sequence number
	lateRefused   int
	lateAccepted  int
}

// witnessed is one open that is not closed.
type witnessed struct {
	report
	overlap string // by which goroutine
}

func startWitness(t *testing.T) *witness {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	ln, err := net.Listen("unix", socket)
	check(t, err)
	w := &witness{
		socket: socket, ln: ln, seq: -1,
		inside:  map[*witnessed]bool{},
		turns:   map[who]int{},
		changed: make(chan struct{}),
	}
	w.wg.Go(w.accept)
	t.Cleanup(func() {
		_ = ln.Close()
		w.wg.Wait() // the workers are gone by now
	})
	return w
}

func (w *witness) accept() {
	for {
		conn, err := w.ln.Accept()
		if err != nil {
			return
		}
		w.wg.Go(func() { w.serve(conn) })
	}
}

// serve hears one goroutine of a worker until it is gone. A process that died
// believes nothing any more.
func (w *witness) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	var in *witnessed
	dec, enc := json.NewDecoder(conn), json.NewEncoder(conn)
	for {
		var r report
		if dec.Decode(&r) != nil {
			break
		}
		var v verdict
		var hook func(report) time.Duration
		w.mu.Lock()
		in, v.Accepted = w.judge(in, r)
		if r.Kind == opened && v.Accepted {
			hook, w.hook = w.hook, nil
		}
		close(w.changed)
		w.changed = make(chan struct{})
		w.mu.Unlock()
		if hook != nil {
			v.Spin = hook(r)
		}
		if enc.Encode(v) != nil {
			break
		}
	}
	w.mu.Lock()
	delete(w.inside, in)
	w.mu.Unlock()
}

// judge is the witness's rule. in is the open of this goroutine.
func (w *witness) judge(in *witnessed, r report) (*witnessed, bool) {
	switch r.Kind {
	case opened:
		if r.Token <= w.token {
			w.tally.refused++
			return nil, false
		}
		return w.open(r), true
	case shunned:
		if r.Believes {
			w.deceived(r, fmt.Sprintf("token %d", w.token))
		}
		return nil, true
	case closed:
		w.tally.closes++
		if r.Believes && in.overlap != "" {
			w.deceived(r, in.overlap)
		}
		delete(w.inside, in)
		return nil, r.Token == w.token
	default: // late
		if r.Token < w.token {
			w.tally.lateRefused++
			return nil, false
		}
		w.tally.lateAccepted++ // no other holder has come
		return nil, true
	}
}

func (w *witness) open(r report) *witnessed {
	if r.Sequence <= w.seq {
		w.tally.disorder = append(w.tally.disorder, fmt.Sprintf("%d after %d", r.Sequence, w.seq))
	}
	for other := range w.inside {
		w.tally.overlaps++
		other.overlap = fmt.Sprintf("worker %d routine %d token %d", r.Worker, r.Routine, r.Token)
	}
	w.token, w.seq = r.Token, r.Sequence
	w.tally.opens++
	w.turns[who{r.Worker, r.Routine}]++
	in := &witnessed{report: r}
	w.inside[in] = true
	return in
}

func (w *witness) deceived(r report, by string) {
	w.tally.deceived = append(w.tally.deceived,
		fmt.Sprintf("worker %d routine %d believed to hold with token %d after %s", r.Worker, r.Routine, r.Token, by))
}

// atNextOpen runs f in the time of the next holder. The holder's worker hears
// that it may work when f has returned, and spins as long as f says.
func (w *witness) atNextOpen(f func(report) time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hook = f
}

// now returns the tally, each goroutine's turns, and a channel that is closed
// when they change.
func (w *witness) now() (tally, map[who]int, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.tally, maps.Clone(w.turns), w.changed
}
