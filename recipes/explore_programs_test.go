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

const (
	exploreLongEnv    = "DOCENT_EXPLORE_LONG"    // 1: longer programs, for hours
	exploreProgramEnv = "DOCENT_EXPLORE_PROGRAM" // "KIND: CALL, CALL": the only program to play
	programsPerServer = 50
	enoughFindings    = 3 // of a kind
)

// TestEveryShortProgram plays every program of a few calls, for each kind of lock. After each
// call all comes to rest. Then those hold that Curator's rule names, and no others; the nodes
// on the server are theirs and the waiters'; and at the end nothing is left.
func TestEveryShortProgram(t *testing.T) {
	t.Parallel()
	if text := os.Getenv(exploreProgramEnv); text != "" {
		replayShort(t, text)
		return
	}
	for _, k := range shortKinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			playKind(t, k.sized())
		})
	}
}

// replayShort plays the program that a finding has named.
func replayShort(t *testing.T, text string) {
	t.Helper()
	name, calls, _ := strings.Cut(text, ":")
	for _, k := range shortKinds {
		if k.name != name {
			continue
		}
		p, err := k.parse(calls)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := playPrograms(t, k, []program{p}); err != nil {
			t.Error(err)
		}
		return
	}
	t.Fatalf("%s: there is no kind %q", exploreProgramEnv, name)
}

// playKind plays the programs of a kind on as many threads as there are. Some programs share
// a server, with a path for each, since to start one and to connect takes most of the time.
func playKind(t *testing.T, k *shortKind) {
	t.Helper()
	begun := time.Now()
	batches := make(chan []program)
	var mu sync.Mutex // guards the rest
	played, found, words := 0, 0, map[string]int{}
	enough := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return found >= enoughFindings
	}
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for batch := range batches {
				for len(batch) > 0 && !enough() {
					n, err := playPrograms(t, k, batch)
					mu.Lock()
					for _, p := range batch[:n] {
						for _, c := range p {
							words[c.op+" "+c.mode]++
						}
					}
					played += n
					if err != nil {
						found++
						t.Errorf("after %d programs, %v: %s: %v\nrepeat: %s='%[3]s: %[6]s' go test -run TestEveryShortProgram ./recipes",
							played, time.Since(begun).Round(time.Millisecond), k.name, err, exploreProgramEnv, batch[n-1])
					}
					mu.Unlock()
					batch = batch[n:]
				}
			}
		})
	}
	complete := true
	var batch []program
	for p := range k.programs {
		if batch = append(batch, p); len(batch) == programsPerServer {
			batches <- batch
			batch = nil
		}
		if complete = !enough() && timeLeftFor(t); !complete {
			break
		}
	}
	batches <- batch
	close(batches)
	workers.Wait()
	t.Logf("%s: %d programs of %d calls by %d acquires of %d clients in %v, %d bad, complete: %v", k.name, played, k.length, k.acquires, k.clients, time.Since(begun).Round(time.Millisecond), found, complete)
	k.wantAll(t, played, words)
	if !complete && found == 0 {
		t.Error("time for a part of the programs: give more with -timeout")
	}
}

// timeLeftFor reports whether the test has time for another batch.
func timeLeftFor(t *testing.T) bool {
	t.Helper()
	end, limited := t.Deadline()
	return !limited || time.Until(end) > 10*time.Second
}

// wantAll checks that programs were played, with each call of the kind in some of them.
func (k *shortKind) wantAll(t *testing.T, played int, words map[string]int) {
	t.Helper()
	if played == 0 {
		t.Errorf("%s: no program was played", k.name)
	}
	for _, word := range k.begins {
		if op, mode, tries := strings.Cut(word, " "); tries && words[op+" "+mode] == 0 || !tries && words["acquire "+word] == 0 {
			t.Errorf("%s: no program calls %q", k.name, word)
		}
	}
	for _, mode := range k.nested {
		if words["nest "+mode] == 0 {
			t.Errorf("%s: no program calls %q in a hold", k.name, mode)
		}
	}
	for _, op := range k.calls {
		if words[op+" "] == 0 {
			t.Errorf("%s: no program calls %q", k.name, op)
		}
	}
}

// playPrograms plays programs one after the other on one server, each on a path of its own.
// It stops after the first that fails, and returns how many it has played.
func playPrograms(t *testing.T, k *shortKind, all []program) (played int, err error) {
	t.Helper()
	if len(all) == 0 {
		return 0, nil
	}
	bubbleWith(t, func(r *rig) {
		clients := map[string]*client.Client{"a": r.Connect("a")}
		if strings.Contains(fmt.Sprint(all), "by b") {
			clients["b"] = r.Connect("b")
		}
		for i, p := range all {
			w := &shortWorld{rig: r, kind: k, clients: clients, path: fmt.Sprint("/short/", i), nodes: map[string]int{}, permits: map[*client.Client]*recipes.InterProcessSemaphoreV2{}}
			played++
			if bad := w.play(p); bad != nil {
				err = fmt.Errorf("%v: %w", p, bad)
				return
			}
		}
		if left := testrig.Goroutines(r.T, ourFrames); len(left) > 0 {
			err = fmt.Errorf("%v, or one before: %d goroutines are left, one of them:\n%s", all[len(all)-1], len(left), left[0])
		}
	}, zktest.WithSeed(1), zktest.WithLatency(0, 0))
	return played, err
}

// shortWorld is where one program is played.
type shortWorld struct {
	*rig

	kind     *shortKind
	clients  map[string]*client.Client
	path     string
	acquires []*shortAcquire
	nodes    map[string]int // whose node it is, of those that were seen
	permits  map[*client.Client]*recipes.InterProcessSemaphoreV2
}

// shortAcquire is an acquire of a program that is played.
type shortAcquire struct {
	by     string // the client
	cancel context.CancelFunc
	done   chan error // has the result of the acquire
	over   bool       // the acquire has returned
	err    error
	hold   recipes.AnyHold
	ending chan error // has the result of a release or a downgrade that is under way
	lost   bool       // the hold was lost, and released after that
}

// play plays a program and says what is wrong.
func (w *shortWorld) play(p program) error {
	defer w.end()
	s := &paper{kind: w.kind}
	for _, c := range p {
		if err := w.call(c); err != nil {
			return err
		}
		w.rest(c)
		s.play(c)
		if err := w.releaseLost(s); err != nil {
			return err
		}
		if err := errors.Join(w.compare(s), w.compareNodes(s)); err != nil {
			return err
		}
	}
	w.end()
	return w.left()
}

// rest waits until nothing goes on any more. A waiter further back notices within a second
// that its node was deleted.
func (w *shortWorld) rest(c shortCall) {
	if c.op == "delete" {
		time.Sleep(1100 * time.Millisecond)
	} else {
		time.Sleep(50 * time.Millisecond)
	}
	synctest.Wait()
}

// call begins a call. It does not wait for its end.
func (w *shortWorld) call(c shortCall) error {
	var of *shortAcquire
	if c.of >= 0 {
		of = w.acquires[c.of]
	}
	ctx := context.WithoutCancel(w.Ctx)
	switch c.op {
	case "acquire", "try", "nest":
		return w.acquire(c, of)
	case "cancel":
		of.cancel()
	case "release":
		of.ending = make(chan error, 1)
		go func() { of.ending <- of.hold.Release(ctx) }()
	case "downgrade":
		of.ending = make(chan error, 1)
		write, is := of.hold.(*recipes.WriteHold)
		if !is {
			return fmt.Errorf("a hold to write is a %T", of.hold)
		}
		go func() {
			h, err := write.Downgrade(ctx)
			if err == nil {
				of.hold = h
			}
			of.ending <- err
		}()
	case "delete":
		return w.Srv.Delete(w.nodeOf(c.of))
	case "ask":
		return w.kind.ask(w, w.nodeOf(c.of))
	}
	return nil
}

// nodeOf is the path of an acquire's node: of those that it has, the last.
func (w *shortWorld) nodeOf(acquire int) string {
	switch h := w.acquires[acquire].hold.(type) {
	case nil:
	case *recipes.MultiHold:
		return h.Holds()[len(h.Holds())-1].Path()
	case interface{ Path() string }:
		return h.Path()
	}
	last := ""
	for _, dir := range w.kind.dirs {
		for _, name := range w.line(w.path + dir) {
			path := w.path + dir + "/" + name
			if by, known := w.nodes[path]; known && by == acquire {
				last = path
			}
		}
	}
	return last
}

func (w *shortWorld) acquire(c shortCall, outer *shortAcquire) error {
	a := &shortAcquire{by: c.client, done: make(chan error, 1)}
	base := w.Ctx
	if outer != nil {
		a.by, base = outer.by, outer.hold.Context()
	}
	var ctx context.Context
	ctx, a.cancel = context.WithCancel(base)
	acquire, try, err := w.kind.lock(w, w.clients[a.by], len(w.acquires), c.mode)
	if err != nil {
		return err
	}
	if c.op == "try" {
		acquire = try
	}
	w.acquires = append(w.acquires, a)
	go func() {
		h, err := acquire(ctx)
		if err == nil {
			a.hold = h
		}
		a.done <- err
	}()
	return nil
}

// compare compares what the program has seen with the rule.
func (w *shortWorld) compare(s *paper) error {
	for _, a := range w.acquires {
		select {
		case a.err = <-a.done:
			a.over = true
		default:
		}
	}
	for i, a := range w.acquires {
		if err := a.compare(s.acquires[i]); err != nil {
			return fmt.Errorf("acquire %d %w", i, err)
		}
	}
	return nil
}

func (a *shortAcquire) compare(by *paperAcquire) error {
	select {
	case err := <-a.ending:
		if a.ending = nil; err != nil {
			return fmt.Errorf("is not released: %w", err)
		}
	default:
		if a.ending != nil {
			return errors.New("is released, and Release does not return")
		}
	}
	granted := a.over && a.err == nil
	switch {
	case by.state == waits && granted:
		return errors.New("holds, by the rule it must not")
	case by.state == waits && a.over:
		return fmt.Errorf("ends, by the rule it waits: %w", a.err)
	case by.state == holds && !a.over:
		return errors.New("waits, by the rule it holds")
	case by.state == holds && !granted:
		return fmt.Errorf("ends, by the rule it holds: %w", a.err)
	case by.state == holds && a.hold.Err() != nil:
		return fmt.Errorf("has lost its hold, by the rule it has not: %w", a.hold.Err())
	case by.state == holds:
		return a.compareRequest(by)
	case by.state == over && !a.over:
		return fmt.Errorf("does not return, and must: %v", by.err) //nolint:errorlint // it is what should be
	case errors.Is(by.err, recipes.ErrLost):
		return nil // see releaseLost
	case by.state == over && !errors.Is(a.err, by.err):
		return fmt.Errorf("ends with %v, by the rule with %v", a.err, by.err) //nolint:errorlint // it is another one
	}
	return nil
}

// releaseLost releases the holds that the rule names as lost, once the program knows.
func (w *shortWorld) releaseLost(s *paper) error {
	lost := false
	for i, a := range w.acquires {
		if a.lost || !errors.Is(s.acquires[i].err, recipes.ErrLost) {
			continue
		}
		if a.hold == nil || !errors.Is(a.hold.Err(), recipes.ErrLost) {
			return fmt.Errorf("acquire %d has not lost its hold, and must", i)
		}
		a.lost, lost = true, true
		_ = a.hold.Close() // it says that the hold was lost
	}
	if lost {
		w.rest(shortCall{})
	}
	return nil
}

// compareRequest checks whether the holder is asked to release.
func (a *shortAcquire) compareRequest(by *paperAcquire) error {
	h, is := a.hold.(interface{ Revoked() <-chan struct{} })
	if !is {
		return nil
	}
	asked := false
	select {
	case <-h.Revoked():
		asked = true
	default:
	}
	if want := slices.ContainsFunc(by.nodes, func(n *paperNode) bool { return n.asked }); asked != want {
		return fmt.Errorf("is asked to release: %v, by the rule %v", asked, want)
	}
	return nil
}

// compareNodes compares the nodes on the server with the lines of the rule.
func (w *shortWorld) compareNodes(s *paper) error {
	for i, dir := range w.kind.dirs {
		var want, got []string
		for _, n := range s.lines[i] {
			each := 1
			if n.mode == "P" {
				each = n.units
			}
			for range each {
				want = append(want, w.kind.text(n))
			}
		}
		for _, name := range w.line(w.path + dir) {
			got = append(got, w.kind.text(w.read(w.path+dir+"/"+name)))
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("in line are %v, by the rule %v", got, want)
		}
		if w.kind.permits > 0 && strings.HasSuffix(dir, "/locks") {
			for j, name := range w.line(w.path + dir) {
				w.nodes[w.path+dir+"/"+name] = s.lines[i][j].by
			}
		}
	}
	return nil
}

// shortTags are in the names of contenders.
var shortTags = map[string]string{"-lock-": "L", "__READ__": "R", "__WRIT__": "W", "-lease-": "P"}

// shortMode is what a contender is; "" is no contender.
func shortMode(path string) string {
	for tag, mode := range shortTags {
		if strings.Contains(path, tag) {
			return mode
		}
	}
	return ""
}

// line lists the contenders in a directory, in order. Those with the same number are a writer
// and its readers, in whatever order these came.
func (w *shortWorld) line(dir string) (names []string) {
	for _, name := range w.Srv.Children(dir) {
		if shortMode(name) != "" {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		return w.read(dir + "/" + a).before(w.read(dir + "/" + b))
	})
	return names
}

// read reads a node on the server as the rule has it. The data of a node says whose it is,
// until somebody asks for its release.
func (w *shortWorld) read(path string) *paperNode {
	n := &paperNode{mode: shortMode(path)}
	n.number, _ = strconv.Atoi(path[len(path)-10:])
	if strings.Contains(path, "/p/") {
		return n // the data of permits does not say whose they are
	}
	by, known := w.nodes[path]
	if node, stands := w.Srv.Node(path); !known && stands {
		by, _ = strconv.Atoi(strings.TrimPrefix(string(node.Data), "acquire "))
		w.nodes[path] = by
	}
	n.by = by
	return n
}

// end ends what the program has left.
func (w *shortWorld) end() {
	for _, a := range w.acquires {
		a.cancel()
	}
	time.Sleep(50 * time.Millisecond)
	for _, a := range w.acquires {
		if !a.over {
			select {
			case a.err = <-a.done:
				a.over = true
			default:
			}
		}
		if a.hold != nil {
			_ = a.hold.Close() // it may have ended
		}
	}
	time.Sleep(50 * time.Millisecond)
	synctest.Wait()
}

// left says what is left after the end.
func (w *shortWorld) left() error {
	for i, a := range w.acquires {
		if !a.over {
			return fmt.Errorf("acquire %d does not return after its context has ended", i)
		}
	}
	for _, dir := range w.kind.dirs {
		if line := w.line(w.path + dir); len(line) > 0 {
			return fmt.Errorf("left in %s: %v", dir, line)
		}
	}
	for _, watch := range w.Srv.Watches() {
		if strings.HasPrefix(watch.Path, w.path+"/") && shortMode(watch.Path) != "" {
			return fmt.Errorf("a watch is left on %s", watch.Path)
		}
	}
	return nil
}
