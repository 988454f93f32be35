package load

import "sync"

// Result is what was recorded between begin and end. Times are in nanoseconds.
type Result struct {
	Cycles    int      `json:"cycles"`   // that ended
	Nanos     int64    `json:"nanos"`    // from begin to end
	Overlaps  int64    `json:"overlaps"` // times that a contender came in that should not
	Errors    []string `json:"errors"`   // of contenders, which then are out
	Cycle     []int64  `json:"cycle"`    // from the call of acquire to the return of release
	HandOver  []int64  `json:"handover"` // from the call of release to the next grant
	Witnessed bool     `json:"witnessed"`
}

// record is what one contender has measured.
type record struct {
	mu       sync.Mutex // guards the rest
	on       bool
	cycles   int
	cycle    []int64
	handOver []int64
}

// begin forgets what was and begins to record.
func (r *record) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.on, r.cycles, r.cycle, r.handOver = true, 0, nil, nil
}

// end adds what was recorded to all.
func (r *record) end(all *Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.on = false
	all.Cycles += r.cycles
	all.Cycle = append(all.Cycle, r.cycle...)
	all.HandOver = append(all.HandOver, r.handOver...)
}

// count is how many cycles have ended since begin.
func (r *record) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cycles
}

// granted records a hand-over.
func (r *record) granted(took int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.on {
		r.handOver = append(r.handOver, took)
	}
}

// ended records a cycle. The first of a contender is no sample of how long one takes: it
// began while the line was being made.
func (r *record) ended(took int64, first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.on {
		return
	}
	r.cycles++
	if !first {
		r.cycle = append(r.cycle, took)
	}
}
