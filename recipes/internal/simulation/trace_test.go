package simulation_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
	sim "github.com/docent-go/docent/recipes/internal/simulation"
	"github.com/docent-go/docent/zktest"
)

// trace is everything that happened, with virtual times. Its hash tells
// whether two runs were the same.
type trace struct {
	mu    sync.Mutex // guards lines
	lines []event
}

// event is one line of a trace. It is written out on demand.
type event struct {
	at   time.Duration
	what fmt.Stringer // without errors and without what is drawn from crypto/rand
	err  error
}

// text is an event of few words.
type text string

func (t text) String() string { return string(t) }

// request is a request without what the order of goroutines within one
// instant decides: the xid, and the order of what a heartbeat checks.
type request zktest.Request

func (r request) String() string { return "server: " + zktest.Request(r).String() }

// outcome is an attempt without its error.
type outcome sim.Attempt

func (a *outcome) String() string {
	return fmt.Sprintf("%s: %s %s since %v", a.Actor, a.Call, a.Lock, a.Begun)
}

func (tr *trace) note(at time.Duration, err error, what fmt.Stringer) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.lines = append(tr.lines, event{at, what, err})
}

// request adds a request. The nodes that a heartbeat checks stand in the order of
// their grants. Of nodes granted at one instant any may be the first.
func (tr *trace) request(at time.Duration, r zktest.Request) {
	r.Xid = 0
	if r.Op == zktest.OpMulti {
		r.Paths = slices.Sorted(slices.Values(r.Paths))
	}
	tr.note(at, nil, request(r))
}

func (tr *trace) attempt(a *sim.Attempt) { tr.note(a.Ended, a.Err, (*outcome)(a)) }

var uuid = regexp.MustCompile(`_c_[0-9a-f]{8}-[0-9a-f-]{27}-`)

// short leaves out what is drawn from crypto/rand.
func short(text string) string { return uuid.ReplaceAllString(text, "~") }

// matched is what an error matches. When two reasons come at one instant its
// text may name either.
func matched(err error) string {
	var kinds []string
	for _, k := range []error{
		context.Canceled, context.DeadlineExceeded, client.ErrSessionLost, client.ErrClosed,
		recipes.ErrNodeDeleted, recipes.ErrBusy, recipes.ErrLost, recipes.ErrReleased, recipes.ErrTooManyPermits,
	} {
		if errors.Is(err, k) {
			kinds = append(kinds, k.Error())
		}
	}
	return strings.Join(kinds, ", ")
}

// canonical returns the lines. The lines of one instant are in order of what they
// say.
func (tr *trace) canonical() []string {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	lines := make([]string, len(tr.lines))
	for i, e := range tr.lines {
		lines[i] = short(fmt.Sprintf("%020d %s [%s]", e.at, e.what, matched(e.err)))
	}
	slices.Sort(lines)
	return lines
}

func (tr *trace) sum() uint64 {
	h := fnv.New64a()
	for _, l := range tr.canonical() {
		_, _ = h.Write([]byte(l))
	}
	return h.Sum64()
}

// story is the trace for people.
func (tr *trace) story() string {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	var b strings.Builder
	for _, e := range tr.lines {
		fmt.Fprintf(&b, "%-13v %s", e.at, e.what)
		if e.err != nil {
			fmt.Fprintf(&b, ": %v", e.err)
		}
		b.WriteByte('\n')
	}
	return short(b.String())
}
