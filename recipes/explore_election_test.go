package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// electionProgramEnv is "KIND: CALL, CALL": the only program to play, as a finding names it.
const electionProgramEnv = "DOCENT_EXPLORE_ELECTION"

// electionKind is an election, with its programs.
type electionKind struct {
	name    string
	starts  []string // that put somebody into the line: campaign, mutex
	rest    time.Duration
	calls   int // of a program
	inLine  int // goroutines that lead or wait at once
	clients []string
}

// electionKinds are the elections with the programs of this run. After a rest of a few
// milliseconds no mutex and no hold watches its own node. After one of more than a second
// all do.
func electionKinds() []electionKind {
	const hasty, patient = 5 * time.Millisecond, 1100 * time.Millisecond
	both := []string{"a", "b"}
	n := electionCalls
	if os.Getenv("DOCENT_EXPLORE_LONG") != "" {
		n += 2
	}
	return []electionKind{
		{"latch", []string{"campaign"}, hasty, n, electionsInLine, both},
		{"selector", []string{"campaign", "mutex"}, hasty, n, electionsInLine, both},
		{"patient selector", []string{"campaign", "mutex"}, patient, n - 1, electionsInLine, both[:1]},
	}
}

// electionCall is a call of a program. Places in line count from 1.
type electionCall struct {
	op     string // campaign, mutex, try; cancel, release, delete, hand over
	by     string // the client
	at, to int    // whose call it is; to whom a term is handed over
}

func (c electionCall) String() string {
	switch {
	case c.by != "":
		return c.op + " " + c.by
	case c.to > 0:
		return fmt.Sprint(c.op, " ", c.at, " to ", c.to)
	default:
		return fmt.Sprint(c.op, " ", c.at)
	}
}

// electionPlace is one in line, by the rule. The first holds.
type electionPlace struct {
	mutex bool
	by    int // which of the calls that put somebody into the line; only when it is played
}

// electionPaper is where a program stands by the rule, which is Curator's: the first in line
// holds, and who comes, or comes again, stands behind all others.
type electionPaper struct {
	line  []electionPlace
	loose int // so many at the end stand in any order
}

// callsIn are those that the state allows. A program with the clients changed for each other
// is the same, so that b comes after a. A try that finds somebody in line changes nothing,
// so that no call follows.
func (k electionKind) callsIn(s *electionPaper, before []electionCall) (all []electionCall) {
	last := len(before) == k.calls-1
	for i, by := range k.clients {
		if i > 0 && !slices.ContainsFunc(before, func(c electionCall) bool { return c.by == k.clients[i-1] }) {
			break
		}
		if len(s.line) < k.inLine {
			for _, op := range k.starts {
				all = append(all, electionCall{op: op, by: by})
			}
		}
		if len(s.line) == 0 || last {
			all = append(all, electionCall{op: "try", by: by})
		}
	}
	for i, p := range s.line {
		all = append(all, electionCall{op: "delete", at: i + 1})
		if i == 0 {
			all = append(all, electionCall{op: "release", at: 1})
			continue
		}
		all = append(all, electionCall{op: "cancel", at: i + 1})
		if !s.line[0].mutex && !p.mutex {
			all = append(all, electionCall{op: "hand over", at: 1, to: i + 1})
		}
	}
	return all
}

// electionEnd is what the rule says of those whom a call concerns.
type electionEnd struct {
	call  error // what the call returns
	over  int   // who is out of line, -1 if nobody; of the numbers of electionPlace
	waits error // what the acquire of that one returns
	lost  bool  // it has lost its hold
}

// play plays one call, which puts number by into the line.
func (s *electionPaper) play(c electionCall, by int) (end electionEnd) {
	end.over = -1
	s.loose = 0
	var of electionPlace
	if c.at > 0 {
		of = s.line[c.at-1]
	}
	leave := func() {
		s.line, end.over = slices.Delete(slices.Clone(s.line), c.at-1, c.at), of.by
	}
	switch c.op {
	case "campaign", "mutex":
		s.line = append(slices.Clip(s.line), electionPlace{c.op == "mutex", by})
	case "try":
		if len(s.line) > 0 {
			end.over, end.waits = by, recipes.ErrBusy
			break
		}
		s.line = append(s.line, electionPlace{false, by})
	case "release":
		leave()
	case "cancel":
		end.waits = context.Canceled
		leave()
	case "delete":
		leave()
		switch {
		case c.at == 1:
			end.lost = true
		case of.mutex:
			end.waits = recipes.ErrNodeDeleted
		default:
			end.over = -1
			s.line = append(s.line, of)
		}
	case "hand over":
		between := s.line[1 : c.to-1]
		if slices.ContainsFunc(between, func(p electionPlace) bool { return p.mutex }) {
			end.call = recipes.ErrNotMovable
			break
		}
		s.loose = len(between)
		s.line = slices.Concat(s.line[c.to-1:], between)
		end.over = of.by
	}
	return end
}

// programs yields all programs.
func (k electionKind) programs(yield func([]electionCall) bool) {
	k.after(&electionPaper{}, nil, yield)
}

// after yields the programs that begin with calls, which lead to s.
func (k electionKind) after(s *electionPaper, calls []electionCall, yield func([]electionCall) bool) bool {
	if len(calls) == k.calls {
		return yield(calls)
	}
	for _, c := range k.callsIn(s, calls) {
		next := electionPaper{line: s.line}
		next.play(c, 0)
		if !k.after(&next, append(slices.Clip(calls), c), yield) {
			return false
		}
	}
	return true
}

// parseElectionCalls is the opposite of fmt.Sprint of calls.
func parseElectionCalls(text string) (calls []electionCall, err error) {
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		c := electionCall{}
		if _, err := fmt.Sscanf(part, "hand over %d to %d", &c.at, &c.to); err == nil {
			c.op = "hand over"
		} else {
			var arg string
			c.op, arg, _ = strings.Cut(part, " ")
			if c.at, err = strconv.Atoi(arg); err != nil {
				c.by = arg
			}
		}
		if c.String() != part {
			return nil, fmt.Errorf("%q is no call", part)
		}
		calls = append(calls, c)
	}
	return calls, nil
}

func electionText(calls []electionCall) string {
	all := make([]string, len(calls))
	for i, c := range calls {
		all[i] = c.String()
	}
	return strings.Join(all, ", ")
}

// TestExploreShortElections plays every program of a few calls, by several goroutines of one
// client and of two, on an election and by mutexes beside it. After each call all comes to
// rest. Then the first in line by the nodes on the server holds, and no other does. The line
// is the one that the rule names, and at the end nothing is left.
func TestExploreShortElections(t *testing.T) {
	t.Parallel()
	replay := os.Getenv(electionProgramEnv)
	name, text, _ := strings.Cut(replay, ":")
	for _, k := range electionKinds() {
		switch {
		case replay == "":
			t.Run(k.name, func(t *testing.T) {
				t.Parallel()
				k.playAll(t)
			})
		case k.name == name:
			calls, err := parseElectionCalls(text)
			if err == nil {
				_, err = k.play(t, [][]electionCall{calls})
			}
			if err != nil {
				t.Error(err)
			}
			return
		}
	}
	if replay != "" {
		t.Errorf("%s: there is no kind %q", electionProgramEnv, name)
	}
}

// playAll plays all programs on as many threads as there are. Some share a server, with a
// path for each, since most of the time goes into connecting.
func (k electionKind) playAll(t *testing.T) {
	t.Helper()
	begun := time.Now()
	batches := make(chan [][]electionCall)
	var mu sync.Mutex // guards the rest
	played, found := 0, 0
	enough := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return found >= 3
	}
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for batch := range batches {
				for len(batch) > 0 && !enough() {
					n, err := k.play(t, batch)
					mu.Lock()
					played += n
					if err != nil {
						found++
						t.Errorf("after %d programs: %v\nrepeat: %s='%s: %s' go test -run TestExploreShortElections ./recipes",
							played, err, electionProgramEnv, k.name, electionText(batch[n-1]))
					}
					mu.Unlock()
					batch = batch[n:]
				}
			}
		})
	}
	ops, whole := map[string]int{}, true
	var batch [][]electionCall
	for p := range k.programs {
		for _, c := range p {
			ops[c.op]++
		}
		if batch = append(batch, p); len(batch) == 100 {
			batches <- batch
			batch = nil
		}
		end, limited := t.Deadline()
		if whole = !enough() && (!limited || time.Until(end) > 10*time.Second); !whole {
			break
		}
	}
	batches <- batch
	close(batches)
	workers.Wait()
	t.Logf("%d programs of %d calls in %v, %d bad, whole: %v", played, k.calls, time.Since(begun).Round(time.Millisecond), found, whole)
	if found > 0 {
		return
	}
	if !whole {
		t.Error("time for a part of the programs: give more with -timeout")
	}
	for _, op := range append([]string{"try", "release", "cancel", "delete", "hand over"}, k.starts...) {
		if ops[op] == 0 {
			t.Errorf("no program calls %q", op)
		}
	}
}

// play plays programs one after the other on one server. It stops after the first that fails,
// and returns how many it has played.
func (k electionKind) play(t *testing.T, programs [][]electionCall) (played int, err error) {
	t.Helper()
	if len(programs) == 0 {
		return 0, nil
	}
	bubbleWith(t, func(r *rig) {
		clients := map[string]*client.Client{}
		for _, name := range k.clients {
			clients[name] = r.Connect(name)
		}
		for i, p := range programs {
			w := &electionWorld{rig: r, kind: k, clients: clients, path: fmt.Sprint("/short/", i)}
			played++
			if err = w.play(p); err != nil {
				return
			}
		}
		time.Sleep(2 * time.Second) // watches that are given up are removed a moment later
		for _, watch := range r.Srv.Watches() {
			if strings.HasPrefix(watch.Path, "/short/") && !watch.Children && strings.Contains(watch.Path, "_c_") {
				err = fmt.Errorf("a watch is left on %s", watch.Path)
			}
		}
		if left := testrig.Goroutines(r.T, ourFrames); len(left) > 0 {
			err = fmt.Errorf("%d goroutines are left, one of them:\n%s", len(left), left[0])
		}
	}, zktest.WithSeed(1), zktest.WithLatency(0, 0))
	return played, err
}

// electionWorld is where one program is played.
type electionWorld struct {
	*rig

	kind    electionKind
	clients map[string]*client.Client
	path    string

	mu     sync.Mutex // guards the rest, and what is in actors
	actors []*electionActor
	token  int64 // the greatest so far
	seen   error // what was wrong first, while calls were under way
}

// electionActor is one that has asked to lead, or for the mutex.
type electionActor struct {
	number  int
	cancel  context.CancelFunc
	done    bool  // its acquire has returned
	err     error // with that
	hold    electionHold
	deleted bool // an operator has deleted the node that it holds
}

// play plays a program and says what is wrong.
func (w *electionWorld) play(p []electionCall) (err error) {
	var s electionPaper
	step := 0
	for i, c := range p {
		step = i + 1
		if c.at > len(s.line) || c.to > len(s.line) {
			return fmt.Errorf("after call %d: %d stand in line", i, len(s.line))
		}
		var of *electionActor
		if c.at > 0 {
			of = w.actors[s.line[c.at-1].by]
		}
		end := s.play(c, len(w.actors))
		if err = w.call(c, of, &s, end); err == nil {
			err = w.compare(&s, end)
		}
		if err != nil {
			break
		}
	}
	w.end()
	if left := w.Srv.Children(w.path); err == nil && len(left) > 0 {
		err = fmt.Errorf("left at the end: %v", left)
	}
	if w.seen != nil { // what is wrong at rest comes of it
		err = w.seen
	}
	if err != nil {
		err = fmt.Errorf("call %d of [%s]: %w", step, electionText(p), err)
	}
	return err
}

// rest waits until nothing goes on any more. A mutex, and a hold, notices within a second
// that its node was deleted. A participant that waits notices at once.
func (w *electionWorld) rest(c electionCall, end electionEnd) {
	pause := w.kind.rest
	if c.op == "delete" && end.over >= 0 {
		pause = 1100 * time.Millisecond
	}
	time.Sleep(pause)
	synctest.Wait()
}

// call makes a call, lets all come to rest, and compares its result with the rule.
func (w *electionWorld) call(c electionCall, of *electionActor, s *electionPaper, by electionEnd) error {
	result := make(chan error, 1)
	switch c.op {
	case "campaign", "mutex", "try":
		result <- w.ask(c)
	case "cancel":
		of.cancel()
		result <- nil
	case "release":
		go func() { result <- of.hold.Release(w.Ctx) }()
	case "hand over":
		to := strconv.Itoa(s.target(by, c))
		term, ok := of.hold.(*recipes.Term)
		if !ok {
			return errors.New("a mutex is handed over")
		}
		go func() { result <- term.HandOver(w.Ctx, to) }()
	case "delete":
		node := w.nodeOf(of.number)
		w.mu.Lock()
		of.deleted = true
		w.mu.Unlock()
		result <- w.Srv.Delete(node)
	}
	w.rest(c, by)
	select {
	case err := <-result:
		if !errors.Is(err, by.call) {
			return fmt.Errorf("returns %v, by the rule %v", err, by.call) //nolint:errorlint // it is another one
		}
		return nil
	default:
		return errors.New("does not return")
	}
}

// target is the number of the one to whom the term is handed over. s is after the call.
func (s *electionPaper) target(by electionEnd, c electionCall) int {
	if by.call != nil {
		return s.line[c.to-1].by
	}
	return s.line[0].by
}

// ask asks to lead, or for the mutex.
func (w *electionWorld) ask(c electionCall) error {
	a := &electionActor{number: len(w.actors)}
	id := strconv.Itoa(a.number)
	acquire, err := w.acquirer(c, id)
	if err != nil {
		return err
	}
	var ctx context.Context
	ctx, a.cancel = context.WithCancel(w.Ctx)
	w.mu.Lock()
	w.actors = append(w.actors, a)
	w.mu.Unlock()
	go func() {
		h, err := acquire(ctx)
		w.mu.Lock()
		defer w.mu.Unlock()
		a.done, a.err = true, err
		if err != nil {
			return
		}
		a.hold = h
		for _, o := range w.actors {
			if o != a && !o.deleted && o.hold != nil && o.hold.Err() == nil {
				w.note("%d holds beside %d", a.number, o.number)
			}
		}
		if token := h.FencingToken(); token > w.token {
			w.token = token
		} else {
			w.note("%d has the token %d after %d", a.number, token, w.token)
		}
	}()
	return nil
}

// note notes what was seen while calls were under way. The caller holds w.mu.
func (w *electionWorld) note(text string, args ...any) {
	if w.seen == nil {
		w.seen = fmt.Errorf(text, args...)
	}
}

// electionHold is a term, or a hold of a mutex.
type electionHold interface {
	recipes.AnyHold
	FencingToken() int64
}

func (w *electionWorld) acquirer(c electionCall, id string) (func(context.Context) (electionHold, error), error) {
	wrap := func(h electionHold, err error) (electionHold, error) {
		if err != nil {
			return nil, err
		}
		return h, nil
	}
	if c.op == "mutex" {
		m, err := recipes.NewInterProcessMutex(w.clients[c.by], w.path, recipes.WithNodeData([]byte(id)))
		return func(ctx context.Context) (electionHold, error) { return wrap(m.Acquire(ctx)) }, err
	}
	var e *recipes.Election
	if w.kind.name == "latch" {
		l, err := recipes.NewLeaderLatch(w.clients[c.by], w.path, recipes.WithID(id))
		if err != nil {
			return nil, err
		}
		e = l.Election
	} else {
		l, err := recipes.NewLeaderSelector(w.clients[c.by], w.path, recipes.WithID(id))
		if err != nil {
			return nil, err
		}
		e = l.Election
	}
	if c.op == "try" {
		return func(ctx context.Context) (electionHold, error) { return wrap(e.TryCampaign(ctx)) }, nil
	}
	return func(ctx context.Context) (electionHold, error) { return wrap(e.Campaign(ctx)) }, nil
}

// onServer are the numbers of those in line by the server's nodes, in Curator's order.
func (w *electionWorld) onServer() (line []int, err error) {
	names := w.Srv.Children(w.path)
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(a[len(a)-10:], b[len(b)-10:]) })
	for _, name := range names {
		node, _ := w.Srv.Node(w.path + "/" + name)
		number, err := strconv.Atoi(string(node.Data))
		if err != nil {
			return nil, err
		}
		line = append(line, number)
	}
	return line, nil
}

func (w *electionWorld) nodeOf(number int) string {
	for _, name := range w.Srv.Children(w.path) {
		if node, _ := w.Srv.Node(w.path + "/" + name); string(node.Data) == strconv.Itoa(number) {
			return node.Path
		}
	}
	return ""
}

// compare compares the line on the server with the rule, and who holds with both.
func (w *electionWorld) compare(s *electionPaper, end electionEnd) error {
	line, err := w.onServer()
	if err != nil {
		return err
	}
	var by []int
	for _, p := range s.line {
		by = append(by, p.by)
	}
	same := slices.Clone(line)
	if n := len(line); n == len(by) && s.loose > 0 {
		slices.Sort(same[n-s.loose:])
		slices.Sort(by[n-s.loose:])
	}
	if !slices.Equal(same, by) {
		return fmt.Errorf("in line are %v, by the rule %v", line, by)
	}
	slices.SortFunc(s.line, func(p, q electionPlace) int { // what was loose is known now
		return slices.Index(line, p.by) - slices.Index(line, q.by)
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range w.actors {
		leads := a.done && a.err == nil && a.hold.Err() == nil
		switch place := slices.Index(line, a.number); {
		case place == 0 && !leads:
			return fmt.Errorf("%d is the first in line %v and does not hold (it has returned: %v, %w)", a.number, line, a.done, errors.Join(a.err))
		case place != 0 && leads:
			return fmt.Errorf("%d holds, in line are %v", a.number, line)
		case place > 0 && a.done:
			return fmt.Errorf("%d waits in line %v, and has returned %w", a.number, line, errors.Join(a.err))
		case place < 0 && !a.done:
			return fmt.Errorf("%d is out of line %v, and has not returned", a.number, line)
		}
		if a.number != end.over {
			continue
		}
		if !errors.Is(a.err, end.waits) {
			return fmt.Errorf("%d returns %v, by the rule %v", a.number, a.err, end.waits) //nolint:errorlint // it is another one
		}
		if end.lost && (!errors.Is(a.hold.Err(), recipes.ErrLost) || !errors.Is(a.hold.Err(), recipes.ErrNodeDeleted)) {
			return fmt.Errorf("%d has lost its node, and its hold says %w", a.number, errors.Join(a.hold.Err()))
		}
	}
	return nil
}

// end ends what the program has left: first those that wait, then the one that holds.
func (w *electionWorld) end() {
	for _, a := range w.actors {
		a.cancel()
	}
	for range 2 {
		time.Sleep(50 * time.Millisecond)
		synctest.Wait()
		for _, a := range w.actors {
			if a.hold != nil {
				_ = a.hold.Close() // it may be over
			}
		}
	}
	synctest.Wait()
}
