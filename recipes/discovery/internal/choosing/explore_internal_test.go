package choosing

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// Every short sequence of events is played on a chooser and on a reference. The reference
// remembers all that has happened, and works out for each pick who may get it.

// past is an instance and what has happened to it, since it came to the list.
type past struct {
	Instance[int]
	log []entry
}

type entry struct {
	at      time.Duration
	call    int // the number of the pick, of all picks
	begin   bool
	verdict Verdict
}

type model struct {
	rules Rules
	list  []*past
	last  string // the ID of the last pick
	stuck *past
	empty bool
	until time.Duration
	calls []*past // whom each pick got
	ended []bool
}

// blocked works out until when an instance may not be picked, 0 if it may at any time: it has been
// set aside, and not succeeded since.
func (m *model) blocked(p *past) (until time.Duration) {
	until, _ = m.known(p)
	return until
}

// known works out blocked, and whether the instance was silent when that began.
func (m *model) known(p *past) (until time.Duration, silent bool) {
	streak, bad, times, trial := 0, false, 0, -1
	failed := time.Duration(-1)
	lay := func(e entry) {
		bad, until, trial = true, e.at+min(m.rules.Aside<<times, m.rules.MaxAside), -1
		silent = e.verdict == Silent
		times++
	}
	for _, e := range p.log {
		tries := e.call == trial && e.at < until
		switch {
		case e.begin:
			if bad && e.at >= until {
				trial, until = e.call, e.at+m.rules.Aside
			}
		case e.verdict == Succeeded:
			streak, bad, times, trial = 0, false, 0, -1
		case e.verdict == None && tries:
			until, trial = e.at, -1
		case e.verdict == None:
		case tries, e.verdict == Silent && m.rules.Errors > 0 && (!bad || e.at >= until):
			lay(e)
		case e.verdict == Failed && !bad:
			if failed >= 0 && e.at-failed > m.rules.Aside {
				streak = 0
			}
			failed = e.at
			if streak++; streak == m.rules.Errors {
				lay(e)
			}
		}
	}
	if !bad {
		return 0, false
	}
	return until, silent
}

func (m *model) may(p *past, now time.Duration) bool { return now >= m.blocked(p) }

func (m *model) change(now time.Duration, instances []Instance[int]) {
	if len(instances) == 0 && m.rules.Keep > 0 {
		if !m.empty {
			m.empty, m.until = true, now+m.rules.Keep
		}
		return
	}
	m.empty = false
	m.set(instances)
}

func (m *model) set(instances []Instance[int]) {
	old := m.list
	m.list = nil
	for _, instance := range instances {
		i := slices.IndexFunc(old, func(p *past) bool {
			return p.ID == instance.ID && p.Address == instance.Address && p.Birth == instance.Birth
		})
		p := &past{}
		if i >= 0 {
			p = old[i]
		}
		p.Instance = instance
		m.list = append(m.list, p)
	}
	if !slices.Contains(m.list, m.stuck) {
		m.stuck = nil
	}
	if len(old) == 0 && len(m.list) > 0 {
		m.last = m.list[0].ID // the test draws the first
	}
}

// candidates are those among which the strategy chooses.
func (m *model) candidates(now time.Duration, except []string) []*past {
	var near, far, all, loud []*past
	blocked := 0
	for _, p := range m.list {
		excepted := slices.Contains(except, p.ID)
		if !excepted {
			all = append(all, p)
			if until, silent := m.known(p); !silent || now >= until {
				loud = append(loud, p)
			}
		}
		switch {
		case !m.may(p, now):
			blocked++
		case excepted:
		case m.rules.Zone != "" && p.Zone == m.rules.Zone:
			near = append(near, p)
		default:
			far = append(far, p)
		}
	}
	panics := float64(blocked)/float64(max(1, len(m.list))) > m.rules.Panic
	switch {
	case panics && len(except) == 0 && len(loud) > 0:
		return loud
	case len(near) > 0:
		return near
	case len(far) > 0:
		return far
	case panics && len(loud) > 0:
		return loud
	case panics:
		return all
	default:
		return nil
	}
}

func (m *model) load(p *past) int {
	flight, failures := 0, 0
	for call, of := range m.calls {
		if of == p && !m.ended[call] {
			flight++
		}
	}
	for _, e := range p.log { // good enough where MaxAside is not reached: the test has no gaps there
		switch {
		case e.begin:
		case e.verdict == Succeeded:
			failures = 0
		case e.verdict == Failed:
			failures++
		}
	}
	return flight + failures
}

var errNone = errors.New("none")

// pick checks a pick of the chooser.
func (m *model) pick(now time.Duration, got string, except []string) error {
	if m.empty && now >= m.until {
		m.empty = false
		m.set(nil)
	}
	among := m.candidates(now, except)
	if len(among) == 0 {
		if got != "" {
			return fmt.Errorf("picked %s, and nobody may be picked", got)
		}
		return errNone
	}
	at := slices.IndexFunc(among, func(p *past) bool { return p.ID == got })
	if at < 0 {
		return fmt.Errorf("picked %q, which may not be picked", got)
	}
	p := among[at]
	want := ""
	switch {
	case m.rules.Sticky && slices.Contains(among, m.stuck):
		want = m.stuck.ID
	case m.rules.Strategy == RoundRobin:
		want = among[0].ID
		for _, p := range slices.Backward(among) {
			if p.ID > m.last {
				want = p.ID
			}
		}
	case m.rules.Strategy == LeastLoaded && len(among) > 1 && m.rules.Errors > 8:
		if !slices.ContainsFunc(among, func(o *past) bool { return o != p && m.load(o)*p.Weight >= m.load(p)*o.Weight }) {
			return fmt.Errorf("picked %s, the most loaded", got)
		}
	}
	if want != "" && want != got {
		return fmt.Errorf("picked %s, want %s", got, want)
	}
	p.log = append(p.log, entry{at: now, call: len(m.calls), begin: true})
	m.calls, m.ended = append(m.calls, p), append(m.ended, false)
	m.last, m.stuck = p.ID, p
	return nil
}

// end notes a verdict.
func (m *model) end(now time.Duration, call int, verdict Verdict) {
	m.ended[call] = true
	p := m.calls[call]
	p.log = append(p.log, entry{at: now, call: call, verdict: verdict})
}

// play is one sequence.
type play struct {
	chooser *Chooser[int]
	model   model
	now     time.Duration
	picks   []Picked[int]
	draws   int
}

func newPlay(rules Rules, list string) *play {
	p := &play{}
	rules.Intn = func(n int) int {
		if rules.Strategy == RoundRobin { // it draws where to begin
			return 0
		}
		p.draws++
		return (p.draws * 7 / 3) % n
	}
	p.chooser, p.model = Of[int](rules), model{rules: rules}
	p.list(list)
	return p
}

var instances = map[byte]Instance[int]{
	'a': {ID: "a", Address: "1", Weight: 1},
	'b': {ID: "b", Address: "2", Zone: "x", Weight: 2},
	'B': {ID: "b", Address: "2", Zone: "x", Weight: 2, Birth: 1},
	'D': {ID: "b", Address: "9", Zone: "x", Weight: 2},
	'c': {ID: "c", Address: "2", Zone: "y", Weight: 2},
}

func (p *play) list(ids string) {
	var all []Instance[int]
	for _, id := range []byte(ids) {
		all = append(all, instances[id])
	}
	p.chooser.List(p.now, all)
	p.model.change(p.now, all)
}

// outstanding is the number of the oldest or newest pick whose call has not ended, or -1.
func (p *play) outstanding(newest bool) int {
	if newest {
		for i, ended := range slices.Backward(p.model.ended) {
			if !ended {
				return i
			}
		}
		return -1
	}
	return slices.Index(p.model.ended, false)
}

// do plays an event. It returns false if the event cannot happen.
func (p *play) do(event string) (bool, error) {
	word, arg, _ := strings.Cut(event, " ")
	switch word {
	case "pick":
		var except []string
		if arg != "" {
			except = []string{arg}
		}
		got, ok := p.chooser.Pick(p.now, except...)
		id := ""
		if ok {
			id = got.seat.ID
			p.picks = append(p.picks, got)
		}
		if err := p.model.pick(p.now, id, except); !errors.Is(err, errNone) {
			return true, err
		}
	case "ok", "fail", "silent", "none":
		i := p.outstanding(arg == "newest")
		if i < 0 || arg == "newest" && i == p.outstanding(false) {
			return false, nil
		}
		verdict := map[string]Verdict{"ok": Succeeded, "fail": Failed, "silent": Silent, "none": None}[word]
		p.chooser.Done(p.now, p.picks[i], verdict)
		p.model.end(p.now, i, verdict)
	case "list":
		p.list(arg)
	case "wait":
		d, err := time.ParseDuration(arg)
		p.now += d
		return true, err
	}
	return true, nil
}

// agree compares what the chooser and the reference know of each instance.
func (p *play) agree(event string) error {
	looked := !strings.HasPrefix(event, "wait") && !strings.HasPrefix(event, "list")
	if len(p.chooser.all.seats) != len(p.model.list) {
		return fmt.Errorf("%d instances, want %d", len(p.chooser.all.seats), len(p.model.list))
	}
	for i, s := range p.chooser.all.seats {
		want := max(p.model.blocked(p.model.list[i]), p.now)
		got := p.now
		if !s.may() {
			got = max(s.until, p.now)
		}
		if got != want {
			return fmt.Errorf("%s may be picked at %v, want %v", s.ID, got, want)
		}
		if looked && s.may() != (want == p.now) {
			return fmt.Errorf("%s may be picked: %v at %v, want from %v on", s.ID, s.may(), p.now, want)
		}
	}
	return nil
}

// explore plays all sequences of events up to a length.
func explore(rules Rules, list string, events []string, length int) (played int, err error) {
	sequence := make([]string, 0, length)
	var walk func() error
	walk = func() error {
		for _, event := range events {
			p := newPlay(rules, list)
			for _, e := range sequence {
				if _, err := p.do(e); err != nil {
					return err // cannot be: it was right before
				}
			}
			possible, err := p.do(event)
			if err == nil && possible {
				err = p.agree(event)
			}
			if err != nil {
				return fmt.Errorf("after %s, then %s: %w", strings.Join(sequence, ", "), event, err)
			}
			if !possible {
				continue
			}
			if played++; len(sequence)+1 < length {
				sequence = append(sequence, event)
				if err := walk(); err != nil {
					return err
				}
				sequence = sequence[:len(sequence)-1]
			}
		}
		return nil
	}
	return played, walk()
}

func TestExploreChooser(t *testing.T) {
	t.Parallel()
	base := Rules{Errors: 1, Aside: 2 * time.Second, MaxAside: 5 * time.Second, Panic: 1}
	with := func(change func(*Rules)) Rules {
		rules := base
		change(&rules)
		return rules
	}
	pair := with(func(r *Rules) { r.MaxAside = 3 * time.Second })
	calls := []string{"pick", "ok", "fail", "none", "fail newest", "wait 1s", "wait 2s"}
	lists := append(slices.Clone(calls), "pick b", "ok newest", "list abc", "list ac", "list ab", "list bc", "list aDc", "list aBc", "list ")
	for name, c := range map[string]struct {
		rules  Rules
		list   string
		events []string
		length int
	}{
		"one instance":     {base, "a", append(slices.Clone(calls), "none newest"), 7},
		"two errors":       {with(func(r *Rules) { r.Errors = 2 }), "a", []string{"pick", "fail", "ok", "wait 2s", "wait 3s"}, 7},
		"two instances":    {pair, "ab", []string{"pick", "fail", "fail newest", "wait 1s", "wait 2s"}, 8},
		"in turn":          {base, "ab", []string{"pick", "fail", "wait 1s"}, 10},
		"calls":            {base, "abc", calls, 6},
		"lists":            {base, "abc", lists, 4},
		"no setting aside": {with(func(r *Rules) { r.Errors = 0 }), "abc", calls, 4},
		"panic":            {with(func(r *Rules) { r.Panic = 0.5 }), "abc", append(slices.Clone(calls), "pick b"), 6},
		"zone":             {with(func(r *Rules) { r.Zone = "x" }), "abc", append(slices.Clone(calls), "pick b"), 6},
		"zone and lists":   {with(func(r *Rules) { r.Zone = "y"; r.Panic = 0.5 }), "abc", lists, 4},
		"sticky":           {with(func(r *Rules) { r.Sticky = true; r.Strategy = Random; r.Panic = 0.5 }), "abc", lists, 4},
		"sticky in turn":   {with(func(r *Rules) { r.Sticky = true }), "abc", lists, 4},
		"sticky zone":      {with(func(r *Rules) { r.Sticky = true; r.Zone = "x" }), "abc", append(slices.Clone(calls), "pick b"), 5},
		"sticky panic":     {with(func(r *Rules) { r.Sticky = true; r.Panic = 0.4 }), "ab", append(slices.Clone(calls), "pick b"), 5},
		"silent":           {with(func(r *Rules) { r.Errors = 2 }), "a", []string{"pick", "fail", "silent", "ok", "none", "wait 2s", "wait 3s"}, 6},
		"silent in panic":  {with(func(r *Rules) { r.Panic = 0.4 }), "ab", []string{"pick", "fail", "silent", "silent newest", "pick b", "wait 2s"}, 7},
		"silent of three":  {with(func(r *Rules) { r.Panic = 0.5 }), "abc", []string{"pick", "silent", "fail", "ok", "pick b", "wait 2s"}, 7},
		"silent zone":      {with(func(r *Rules) { r.Panic = 0.5; r.Zone = "x" }), "abc", []string{"pick", "silent", "fail", "pick b", "wait 2s"}, 6},
		"silent, sticky":   {with(func(r *Rules) { r.Panic = 0.4; r.Sticky = true }), "abc", []string{"pick", "silent", "fail", "pick b", "wait 2s"}, 6},
		"silent, random":   {with(func(r *Rules) { r.Panic = 0.4; r.Strategy = Random }), "abc", []string{"pick", "silent", "fail", "pick b", "wait 2s"}, 6},
		"silent, loaded":   {with(func(r *Rules) { r.Panic = 0.4; r.Strategy = LeastLoaded }), "abc", []string{"pick", "silent", "fail", "pick b", "wait 2s"}, 6},
		"silent, never":    {with(func(r *Rules) { r.Panic = 0.4; r.Errors = 0 }), "ab", []string{"pick", "silent", "fail", "wait 2s"}, 5},
		"kept":             {with(func(r *Rules) { r.Keep = 2 * time.Second }), "abc", lists, 4},
		"random":           {with(func(r *Rules) { r.Strategy = Random; r.Panic = 0.5 }), "abc", lists, 4},
		"least loaded":     {with(func(r *Rules) { r.Strategy = LeastLoaded; r.Errors = 9 }), "abc", append(slices.Clone(calls), "pick b", "ok newest"), 5},
		"least loaded bad": {with(func(r *Rules) { r.Strategy = LeastLoaded }), "abc", lists, 4},
		"least loaded one": {with(func(r *Rules) { r.Strategy = LeastLoaded }), "b", append(slices.Clone(calls), "pick b"), 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if os.Getenv("DOCENT_EXPLORE_LONG") != "" {
				c.length++
			}
			played, err := explore(c.rules, c.list, c.events, c.length)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d sequences", played)
		})
	}
}

// The time aside doubles up to its maximum, and never less.
func TestAsideGrows(t *testing.T) {
	t.Parallel()
	c := Of[int](Rules{Errors: 1, Aside: 3, MaxAside: math.MaxInt64 - 1000, Panic: 1, Intn: func(int) int { return 0 }})
	c.List(0, []Instance[int]{instances['a']})
	last := time.Duration(2)
	for i := range 100 {
		s := c.all.seats[0]
		s.stage = working // by itself, or the times would add up to more than there is
		c.far.seats = []*seat[int]{s}
		p, _ := c.Pick(0)
		c.Done(0, p, Failed)
		if s.until < last || i < 50 && s.until != 3<<i {
			t.Fatalf("set aside for %d after %d", s.until, last)
		}
		last = s.until
	}
}

// An instance that was silent once, has answered, and then fails, is no longer mute.
func TestFailsAfterSilence(t *testing.T) {
	t.Parallel()
	c := Of[int](Rules{Errors: 1, Aside: 2 * time.Second, MaxAside: 5 * time.Second, Panic: 0.4, Intn: func(int) int { return 0 }})
	c.List(0, []Instance[int]{instances['a'], instances['b']})
	end := func(now time.Duration, verdict Verdict) {
		t.Helper()
		p, ok := c.Pick(now, "b")
		if !ok || p.seat.ID != "a" {
			t.Fatal("a was not picked")
		}
		c.Done(now, p, verdict)
	}
	end(0, Silent)
	end(2*time.Second, Succeeded)
	end(2*time.Second, Failed)
	picked := map[string]bool{}
	for range 2 {
		p, _ := c.Pick(2 * time.Second)
		picked[p.seat.ID] = true
	}
	if !picked["a"] || !picked["b"] {
		t.Errorf("picked %v, want both: half of the list is aside", picked)
	}
}
