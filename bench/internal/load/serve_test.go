package load_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/bench/internal/load"
)

// mutex is a lock of this process; a broken one lets every contender in.
type mutex struct {
	held   chan struct{}
	broken bool
	fails  error
}

func (m *mutex) Acquire(context.Context) error {
	if m.broken {
		return m.fails
	}
	m.held <- struct{}{}
	return m.fails
}

func (m *mutex) Release(context.Context) error {
	if !m.broken {
		<-m.held
	}
	return nil
}

// dialogue talks to a server of the protocol whose contenders all use m.
type dialogue struct {
	t   *testing.T
	in  io.Writer
	out *bufio.Reader
}

func talk(t *testing.T, m *mutex, polls, floor bool) *dialogue {
	t.Helper()
	theirIn, in := io.Pipe()
	out, theirOut := io.Pipe()
	open := func(_ context.Context, spec *load.Spec) (*load.Field, error) {
		f := &load.Field{Polls: polls, Floor: floor, Close: func(context.Context) {}}
		for range spec.Contenders {
			f.Contenders = append(f.Contenders, load.Contender{Lock: m})
		}
		return f, nil
	}
	ended := make(chan error, 1)
	go func() { ended <- load.Serve(t.Context(), theirIn, theirOut, open) }()
	d := &dialogue{t: t, in: in, out: bufio.NewReader(out)}
	t.Cleanup(func() {
		d.say("quit")
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return d
}

// ask returns the whole answer.
func (d *dialogue) ask(command string) string {
	d.t.Helper()
	if _, err := io.WriteString(d.in, command+"\n"); err != nil {
		d.t.Fatal(err)
	}
	line, err := d.out.ReadString('\n')
	if err != nil {
		d.t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// say expects "ok" and returns what follows it.
func (d *dialogue) say(command string) string {
	d.t.Helper()
	rest, ok := strings.CutPrefix(d.ask(command), "ok")
	if !ok {
		d.t.Fatalf("%s: %s", command, rest)
	}
	return strings.TrimSpace(rest)
}

// until counts so many cycles.
func (d *dialogue) until(cycles int) {
	d.t.Helper()
	for {
		n, err := strconv.Atoi(d.say("count"))
		if err != nil {
			d.t.Fatal(err)
		}
		if n >= cycles {
			return
		}
	}
}

func (d *dialogue) end() load.Result {
	d.t.Helper()
	var r load.Result
	if err := json.Unmarshal([]byte(d.say("end")), &r); err != nil {
		d.t.Fatal(err)
	}
	return r
}

// patience is how long the test waits for goroutines that signal no end.
const patience = 20 * time.Second

const setup = "setup peer=x addrs=h:1 kind=mutex root=/r contenders=4 sessions=1 locks=1 permits=0 limit=0 timeout=1000"

// TestRounds: every round has cycles and hand-overs, with times that can be.
func TestRounds(t *testing.T) {
	t.Parallel()
	for _, polls := range []bool{false, true} {
		d := talk(t, &mutex{held: make(chan struct{}, 1)}, polls, false)
		d.say(setup)
		for round := range 3 {
			d.say("open")
			d.say("begin")
			d.until(100)
			r := d.end()
			d.say("close")
			if r.Cycles < 100 || r.Nanos <= 0 || r.Overlaps != 0 || len(r.Errors) != 0 || !r.Witnessed {
				t.Errorf("polls %v, round %d: %d cycles in %d ns, %d overlaps, errors %v", polls, round, r.Cycles, r.Nanos, r.Overlaps, r.Errors)
			}
			if len(r.Cycle) == 0 || len(r.HandOver) == 0 {
				t.Errorf("polls %v, round %d: %d cycles timed, %d hand-overs", polls, round, len(r.Cycle), len(r.HandOver))
			}
			for _, took := range append(r.Cycle, r.HandOver...) {
				if took < 0 || took > int64(time.Minute) {
					t.Fatalf("polls %v, round %d: a time of %d ns", polls, round, took)
				}
			}
		}
	}
}

// TestBroken: a lock that is none is found out, and a floor is allowed to be none.
func TestBroken(t *testing.T) {
	t.Parallel()
	for _, floor := range []bool{false, true} {
		d := talk(t, &mutex{broken: true}, false, floor)
		d.say(setup) // the four come inside and wait at the gate, one a little after the other
		r := d.end()
		for limit := time.Now().Add(patience); !floor && r.Overlaps < 3 && time.Now().Before(limit); {
			r = d.end()
		}
		if (r.Overlaps == 0) != floor || r.Witnessed == floor {
			t.Errorf("floor %v: %d overlaps, witnessed %v", floor, r.Overlaps, r.Witnessed)
		}
	}
}

// TestErrors: an error of a contender is told.
func TestErrors(t *testing.T) {
	t.Parallel()
	d := talk(t, &mutex{broken: true, fails: errors.New("it rains")}, false, false)
	d.say(setup)
	r := d.end()
	for limit := time.Now().Add(patience); len(r.Errors) < 4 && time.Now().Before(limit); {
		r = d.end()
	}
	if len(r.Errors) != 4 || r.Errors[0] != "acquire: it rains" || r.Cycles != 0 {
		t.Errorf("errors %q, %d cycles", r.Errors, r.Cycles)
	}
}

func TestProtocol(t *testing.T) {
	t.Parallel()
	d := talk(t, &mutex{held: make(chan struct{}, 1)}, false, false)
	for _, c := range []struct{ command, want string }{
		{"begin", "error not set up"},
		{"setup peer=x", "error load: incomplete: [peer=x]"},
		{"setup colour=red", "error load: colour=red: no such key"},
		{"setup contenders=many", `error load: contenders=many: strconv.Atoi: parsing "many": invalid syntax`},
		{setup, "ok"},
		{setup, "error set up already"},
		{"dance", "error no such command: dance"},
	} {
		if got := d.ask(c.command); got != c.want {
			t.Errorf("%s: %s, want %s", c.command, got, c.want)
		}
	}
}

func TestSpec(t *testing.T) {
	t.Parallel()
	want := &load.Spec{
		Peer: "docent", Addrs: []string{"a:1", "b:2"}, Kind: load.Semaphore, Root: "/r", Contenders: 3, Sessions: 2,
		Locks: 1, Permits: 4, Limit: 64, Timeout: 30 * time.Second,
	}
	got, err := load.ParseSpec(strings.Fields(want.Line())[1:])
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("ParseSpec(%s) = %+v, %v", want.Line(), got, err)
	}
}

// TestQueued: a hand-over is from one holder to one waiter, so it needs a lock that only
// one can hold.
func TestQueued(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		spec load.Spec
		want bool
	}{
		{load.Spec{Kind: load.Mutex, Contenders: 8, Locks: 1}, true},
		{load.Spec{Kind: load.Mutex, Contenders: 8, Locks: 8}, false},
		{load.Spec{Kind: load.Multi, Contenders: 8, Locks: 1}, true},
		{load.Spec{Kind: load.Multi, Contenders: 1, Locks: 1}, false},
		{load.Spec{Kind: load.Semaphore, Contenders: 8, Locks: 1, Permits: 1, Limit: 1}, true},
		{load.Spec{Kind: load.Semaphore, Contenders: 8, Locks: 1, Permits: 1, Limit: 4}, false},
		{load.Spec{Kind: load.Semaphore, Contenders: 8, Locks: 1, Permits: 8, Limit: 64}, false},
		{load.Spec{Kind: load.ReadWrite, Contenders: 8, Locks: 1}, false},
		{load.Spec{Kind: load.Counter, Contenders: 8, Locks: 1}, false},
	} {
		if got := c.spec.Queued(); got != c.want {
			t.Errorf("%+v: %v", c.spec, got)
		}
	}
}

// TestLone: the other process has one contender, and all else is the same.
func TestLone(t *testing.T) {
	t.Parallel()
	crowd := load.Spec{Peer: "docent", Kind: load.Semaphore, Root: "/r", Contenders: 400, Sessions: 2, Locks: 1, Permits: 1, Limit: 1}
	want := crowd
	want.Contenders, want.Sessions = 1, 1
	if lone := crowd.Lone(); !reflect.DeepEqual(*lone, want) || crowd.Contenders != 400 {
		t.Errorf("beside %+v stands %+v", crowd, *lone)
	}
}
