package nodes_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/nodes"
	"github.com/docent-go/docent/zktest"
)

const (
	exploreLongEnv    = "DOCENT_EXPLORE_LONG"    // 1: longer programs, for minutes
	exploreProgramEnv = "DOCENT_EXPLORE_PROGRAM" // "KIND: CALL, CALL": the only program to play
	programsPerServer = 100
)

// kind is what two objects at one path are.
type kind struct {
	name    string
	mode    nodes.Mode
	opts    []nodes.Option
	clients int
}

var kinds = []kind{
	{"ephemeral by one client", nodes.Ephemeral, nil, 1},
	{"ephemeral by two clients", nodes.Ephemeral, nil, 2},
	{"stopped by one client", nodes.Ephemeral, []nodes.Option{nodes.StopWhenRemoved()}, 1},
	{"stopped by two clients", nodes.Ephemeral, []nodes.Option{nodes.StopWhenRemoved()}, 2},
	{"persistent by one client", nodes.Persistent, nil, 1},
	{"persistent by two clients", nodes.Persistent, nil, 2},
}

// phase is where an object is, as the rule has it.
type phase int

const (
	fresh phase = iota
	live
	removed
	closed
)

// paper is the rule: what must be so at rest after some calls. Whose node stands, when
// several objects may have made it, the server says.
type paper struct {
	kind  kind
	at    [2]phase
	gen   [2]int // of the data that Set has given
	owner int    // whose node stands; -1 if none does
	free  bool   // any live object may have made the node
	shy   bool   // nobody can tell which of two has made a persistent node
}

func (k kind) clientOf(object int) int { return min(object, k.clients-1) }

func (p *paper) live() (all []int) {
	for i, at := range p.at {
		if at == live {
			all = append(all, i)
		}
	}
	return all
}

// calls are those that come next.
func (p *paper) calls() (all []string) {
	for i, at := range p.at {
		if i == 1 && p.at[0] == fresh && p.gen[0] == 0 {
			break // the objects are alike
		}
		if at == fresh {
			all = append(all, fmt.Sprint("start ", i))
		}
		if at == fresh && p.gen[i] == 0 || at == live || at == removed {
			all = append(all, fmt.Sprint("set ", i))
		}
		if at == live || at == removed {
			all = append(all, fmt.Sprint("close ", i))
		}
	}
	if len(p.live()) > 0 {
		all = append(all, "delete")
	}
	for c := range p.kind.clients {
		if slices.ContainsFunc(p.live(), func(i int) bool { return p.kind.clientOf(i) == c }) {
			all = append(all, fmt.Sprint("expire ", c))
		}
	}
	return all
}

// play says what must be so after a call.
func (p *paper) play(call string) {
	var what string
	var i int
	_, _ = fmt.Sscan(call, &what, &i) // "delete" has no number
	p.free = false
	switch what {
	case "start":
		if p.at[i] = live; p.owner < 0 {
			p.owner = i
		}
	case "set":
		p.gen[i]++
	case "close":
		if p.at[i] = closed; p.shy && len(p.live()) > 0 {
			p.owner, p.shy, p.free = p.live()[0], false, true
			return
		}
		p.gone(p.owner == i)
	case "delete":
		if len(p.kind.opts) > 0 {
			p.at[p.owner] = removed
		}
		p.gone(true)
	case "expire":
		p.gone(p.kind.mode == nodes.Ephemeral && p.owner >= 0 && p.kind.clientOf(p.owner) == i)
	}
}

// gone says that the node is gone, if it is, and made again.
func (p *paper) gone(gone bool) {
	if !gone {
		return
	}
	p.owner, p.shy = -1, false
	if all := p.live(); len(all) > 0 {
		p.owner, p.free = all[0], len(all) > 1
		p.shy = p.free && p.kind.mode == nodes.Persistent
	}
}

// programs yields each program of n calls.
func (k kind) programs(n int, yield func([]string) bool) {
	var more func(p paper, calls []string) bool
	more = func(p paper, calls []string) bool {
		next := p.calls()
		if len(calls) == n || len(next) == 0 {
			return yield(slices.Clone(calls))
		}
		for _, call := range next {
			after := p
			after.play(call)
			if !more(after, append(calls, call)) {
				return false
			}
		}
		return true
	}
	more(paper{kind: k, owner: -1}, nil)
}

// object is an object of a program that is played.
type object struct {
	*nodes.PersistentNode

	sets []chan error
}

// stage is where a program is played.
type stage struct {
	*rig

	clients []*client.Client
	path    string
	objects [2]*object
	paper   paper
	czxid   int64  // of the node that stood before the call
	data    string // of a persistent node
}

// text is the data of an object.
func text(i, gen int) string { return fmt.Sprintf("%d.%d", i, gen) }

// call makes a call, and waits until all is at rest.
func (s *stage) call(call string) error {
	var what string
	var i int
	_, _ = fmt.Sscan(call, &what, &i) // "delete" has no number
	o := s.objects[i]
	before := s.paper
	s.paper.play(call)
	switch what {
	case "start":
		if err := o.Start(s.ctx); err != nil {
			return err
		}
	case "set":
		done := make(chan error, 1)
		o.sets = append(o.sets, done)
		data := []byte(text(i, s.paper.gen[i]))
		go func() { done <- o.Set(s.ctx, data) }() // ends with the program
	case "close":
		if err := o.Close(); err != nil {
			return err
		}
	case "delete":
		if err := s.srv.Delete(s.path); err != nil {
			return err
		}
	case "expire":
		s.srv.ExpireSession(s.session(s.clients[i]))
	}
	time.Sleep(5 * time.Second)
	synctest.Wait()
	return s.compare(call, before)
}

// compare compares what stands, and what is told, with the rule.
func (s *stage) compare(call string, before paper) error {
	node, there := s.srv.Node(s.path)
	p := &s.paper
	if there != (p.owner >= 0) {
		return fmt.Errorf("a node stands: %v, by the rule %v", there, p.owner >= 0)
	}
	if there && p.kind.mode == nodes.Ephemeral {
		var by, gen int
		_, _ = fmt.Sscanf(string(node.Data), "%d.%d", &by, &gen) // compared below
		if p.free && p.at[by] == live {
			p.owner = by
		}
		if string(node.Data) != text(p.owner, p.gen[p.owner]) {
			return fmt.Errorf("the node has %q, by the rule %q", node.Data, text(p.owner, p.gen[p.owner]))
		}
		if c := s.clients[p.kind.clientOf(p.owner)]; node.Stat.EphemeralOwner != s.session(c) {
			return fmt.Errorf("the node is of session %#x, by the rule of object %d", node.Stat.EphemeralOwner, p.owner)
		}
	} else if there {
		if err := s.comparePersistent(call, before, node); err != nil {
			return err
		}
	}
	kept := before.owner >= 0 && before.owner == p.owner && !p.free && call != "delete" &&
		(!strings.HasPrefix(call, "expire") || p.kind.mode == nodes.Persistent || call != fmt.Sprint("expire ", p.kind.clientOf(p.owner)))
	if kept && node.Stat.Czxid != s.czxid {
		return errors.New("the node was made again without a need")
	}
	s.czxid = node.Stat.Czxid
	return s.compareTold(node)
}

// comparePersistent checks a persistent node, which all objects write. The last call that
// gives data decides, unless the node was made again.
func (s *stage) comparePersistent(call string, before paper, node zktest.Node) error {
	p := &s.paper
	want := []string{s.data}
	if call == "delete" {
		want = nil
	}
	for _, i := range p.live() {
		switch {
		case call == fmt.Sprint("set ", i), call == fmt.Sprint("start ", i):
			want = []string{text(i, p.gen[i])}
		case p.free, call == "delete", before.owner != p.owner:
			want = append(want, text(i, p.gen[i]))
		}
	}
	if s.data = string(node.Data); !slices.Contains(want, s.data) {
		return fmt.Errorf("the node has %q, by the rule one of %q", node.Data, want)
	}
	return nil
}

// compareTold compares what each object tells.
func (s *stage) compareTold(node zktest.Node) error {
	p := &s.paper
	for i, o := range s.objects {
		now := o.Status()
		want := nodes.Absent
		switch {
		case p.at[i] == live && (p.owner == i || p.kind.mode == nodes.Persistent):
			want = nodes.Ours
		case p.at[i] == live:
			want = nodes.Foreign
		case p.at[i] == removed, p.at[i] == closed && errors.Is(now.Err, nodes.ErrRemoved):
			want = nodes.Removed
		}
		if now.State != want || want == nodes.Ours && now.Czxid != node.Stat.Czxid {
			return fmt.Errorf("object %d tells %+v, by the rule %v of czxid %d", i, now, want, node.Stat.Czxid)
		}
		if err := o.compareSets(want, p.at[i]); err != nil {
			return fmt.Errorf("object %d: %w", i, err)
		}
	}
	return nil
}

// compareSets checks which calls of Set have returned.
func (o *object) compareSets(told nodes.State, at phase) error {
	for len(o.sets) > 0 {
		select {
		case err := <-o.sets[0]:
			o.sets = o.sets[1:]
			switch {
			case err == nil && told == nodes.Foreign, err == nil && at == removed:
				return errors.New("a Set returns, and its data does not stand")
			case err != nil && (at == live || at == fresh):
				return fmt.Errorf("a Set fails: %w", err)
			}
			continue
		default:
		}
		if told != nodes.Foreign {
			return errors.New("a Set does not return, and must")
		}
		return nil
	}
	return nil
}

// end closes what is live, and says what is left.
func (s *stage) end() error {
	for i, o := range s.objects {
		if err := o.Close(); err != nil {
			return fmt.Errorf("object %d: %w", i, err)
		}
	}
	time.Sleep(time.Second) // a client gives its watches back in the background
	synctest.Wait()
	if node, there := s.srv.Node(s.path); there {
		return fmt.Errorf("a node is left with %q", node.Data)
	}
	for _, w := range s.srv.Watches() {
		if w.Path == s.path {
			return errors.New("a watch is left")
		}
	}
	for i, o := range s.objects {
		for _, done := range o.sets {
			select {
			case <-done:
			default:
				return fmt.Errorf("a Set of object %d does not return after Close", i)
			}
		}
	}
	return nil
}

// playAll plays programs one after the other on one server, each at a path of its own. It
// returns how many, and what is wrong with the last.
func playAll(t *testing.T, k kind, all [][]string) (played int, err error) {
	t.Helper()
	bubble(t, func(r *rig) {
		r.ctx = context.WithoutCancel(r.ctx) // hours pass
		var clients []*client.Client
		for i := range k.clients {
			clients = append(clients, r.connect(fmt.Sprint("c", i)))
		}
		for i, calls := range all {
			played++
			s := &stage{rig: r, clients: clients, path: fmt.Sprint("/short/", i), paper: paper{kind: k, owner: -1}}
			for j := range s.objects {
				n, bad := nodes.NewPersistentNode(clients[k.clientOf(j)], k.mode, s.path, []byte(text(j, 0)), lazily(k.opts...)...)
				r.check(bad)
				s.objects[j] = &object{PersistentNode: n}
			}
			for j, call := range calls {
				if bad := s.call(call); bad != nil && err == nil {
					err = fmt.Errorf("after call %d, %s: %w", j, call, bad)
				}
				if err != nil {
					break
				}
			}
			if bad := s.end(); bad != nil && err == nil {
				err = fmt.Errorf("at the end: %w", bad)
			}
			if err != nil {
				return
			}
		}
		if left := busyGoroutines(); len(left) > 0 {
			err = fmt.Errorf("in this program or one before: %d goroutines are left, one of them:\n%s", len(left), left[0])
		}
	}, zktest.WithSeed(1), zktest.WithLatency(0, 0))
	return played, err
}

// TestExploreShortPrograms plays every program of a few calls by two objects at one path.
// After each call all comes to rest. Then that node stands, and that is told, which the rule
// says; and at the end nothing is left.
func TestExploreShortPrograms(t *testing.T) {
	t.Parallel()
	name, program, replay := strings.Cut(os.Getenv(exploreProgramEnv), ": ")
	for _, k := range kinds {
		if replay && k.name != name {
			continue
		}
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			if replay {
				if _, err := playAll(t, k, [][]string{strings.Split(program, ", ")}); err != nil {
					t.Error(err)
				}
				return
			}
			k.explore(t)
		})
	}
}

// explore plays the programs of a kind on as many threads as there are.
func (k kind) explore(t *testing.T) {
	t.Helper()
	begun, length := time.Now(), nodes.ShortProgram
	if os.Getenv(exploreLongEnv) != "" {
		length += 2
	}
	batches := make(chan [][]string)
	var mu sync.Mutex // guards total
	total := 0
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() { // ends when batches is closed
			for batch := range batches {
				if t.Failed() {
					continue
				}
				n, err := playAll(t, k, batch)
				if err != nil {
					t.Errorf("%v\nrepeat: %s='%s: %s' go test -run TestExploreShortPrograms ./recipes/nodes",
						err, exploreProgramEnv, k.name, strings.Join(batch[n-1], ", "))
				}
				mu.Lock()
				total += n
				mu.Unlock()
			}
		})
	}
	var batch [][]string
	k.programs(length, func(calls []string) bool {
		if batch = append(batch, calls); len(batch) == programsPerServer {
			batches <- batch
			batch = nil
		}
		return !t.Failed()
	})
	batches <- batch
	close(batches)
	workers.Wait()
	t.Logf("%d programs of %d calls in %v", total, length, time.Since(begun).Round(time.Millisecond))
	if total < 100 {
		t.Error("hardly a program was played")
	}
}
