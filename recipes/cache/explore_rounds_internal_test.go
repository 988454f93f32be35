package cache

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/explore"
	"github.com/docent-go/docent/internal/inside"
)

// What a cache can live through, with a server of few nodes: writes, requests that are run and
// answered later, events late, requests that fail, connections that are lost, a restore from a
// backup. The reference is the history of the server: each state that the cache publishes is
// the one that the server had after that transaction.

// theirs is a server, and what is on the way between it and a cache.
type theirs struct {
	bounds  playBounds
	oneShot bool

	history []map[string]zk.Stat // by zxid; the last is now
	watched map[task]bool        // one-shot watches
	line    []message            // from the server, in order

	writes, losses, failures, restores, refusals int8

	// The client.
	r       *rounds[int]
	seen    int64              // the largest head of an answer that has come
	events  []inside.FeedEvent // that have come, and were not taken
	tasks   []task             // of the round under way
	run     int                // how many of these the server has run
	answers []inside.Answer    // that have come
	unsure  map[task]bool      // watches of the round whose event came before their answer
	head    int64              // of the round, once it is answered
	lost    bool               // the cache has to begin
	told    int64              // the zxid that was published last
}

type playBounds struct {
	first []string // there from the start, beside /r
	sets  bool     // no node is made or deleted
	nodes []string

	writes, losses, failures, restores, refusals, atOnce int8
}

// message is an event, or an answer to some tasks.
type message struct {
	event   inside.FeedEvent
	answers []inside.Answer
	head    int64
}

type play struct{ key string }

type playMove struct {
	what, path string
}

// everywhere is the scope of all nodes below /r.
type everywhere struct{}

func (everywhere) top() string             { return "/r" }
func (everywhere) covers(path string) bool { return path == "/r" || isBelow(path, "/r") }
func (everywhere) lists(string) bool       { return true }

func parentOf(path string) string { return path[:strings.LastIndexByte(path, '/')] }

func (w *theirs) now() map[string]zk.Stat { return w.history[len(w.history)-1] }

func (w *theirs) zxid() int64 { return int64(len(w.history) - 1) }

func (w *theirs) childrenOf(path string) (names []string) {
	for p := range w.now() {
		if p != "/r" && parentOf(p) == path {
			names = append(names, p[len(path)+1:])
		}
	}
	slices.Sort(names)
	return names
}

// fire sends an event if somebody hears of it.
func (w *theirs) fire(kind inside.FeedKind, path string, sides ...what) {
	heard := !w.oneShot && !w.lost
	if w.oneShot {
		for _, side := range sides {
			heard = heard || w.watched[task{path, side}]
			delete(w.watched, task{path, side})
		}
	}
	if heard {
		w.line = append(w.line, message{event: inside.FeedEvent{Kind: kind, Path: path, Zxid: -1}})
	}
}

// write is a transaction: a node is made, set or deleted.
func (w *theirs) write(what, path string) {
	next := maps.Clone(w.now())
	z := int64(len(w.history))
	stat, there := next[path]
	switch {
	case what == "delete":
		delete(next, path)
	case there:
		stat.Mzxid = z
		stat.Version++
		next[path] = stat
	default:
		next[path] = zk.Stat{Czxid: z, Mzxid: z}
	}
	w.history = append(w.history, next)
	switch {
	case what == "delete":
		w.fire(inside.FeedDeleted, path, ofData, ofChildren)
	case there:
		w.fire(inside.FeedData, path, ofData)
		return
	default:
		w.fire(inside.FeedCreated, path, ofBirth)
	}
	if w.oneShot && path != "/r" {
		w.fire(inside.FeedChildren, parentOf(path), ofChildren)
	}
}

// answer runs a task. A refusal, if there is one, is the answer for a node that is there.
func (w *theirs) answer(t task, refusal error) (a inside.Answer) {
	stat, there := w.now()[t.path]
	stat.NumChildren = int32(len(w.childrenOf(t.path)))
	switch {
	case !there:
		a.Err = zk.ErrNoNode
	case refusal != nil:
		a.Err = refusal
		if errors.Is(refusal, zk.ErrNoAuth) {
			return a // without a watch
		}
	case t.what == ofChildren:
		a.Names = w.childrenOf(t.path)
	default:
		a.Stat = stat
	}
	if there != (t.what == ofBirth) {
		w.watched[t] = true
	} else if there {
		w.watched[task{t.path, ofData}] = true // exists of a node that is there watches its data
	}
	return a
}

func (w *theirs) moves() (all []playMove) {
	add := func(what, path string) { all = append(all, playMove{what, path}) }
	switch {
	case w.lost:
		add("begins", "")
	case w.head > 0:
		add("takes the answers", "")
	case w.tasks == nil && len(w.events) > 0:
		add("hears", "")
	case w.tasks == nil && len(w.r.doubts) > 0:
		add("asks", "")
	case w.tasks == nil && len(w.r.unreadable) > 0:
		add("tries what was refused", "")
	}
	if w.tasks != nil && w.run < len(w.tasks) {
		add("is served", "")
		if w.refusals < w.bounds.refusals {
			w.refuse(add)
		}
	}
	if len(w.line) > 0 {
		add("gets", "")
	}
	if w.tasks != nil && w.head == 0 && w.failures < w.bounds.failures {
		add("fails", "")
	}
	if !w.lost && w.losses < w.bounds.losses {
		add("loses its connection", "")
	}
	if w.restores < w.bounds.restores && w.zxid() > 1 {
		add("the servers are restored", "")
	}
	if w.writes < w.bounds.writes {
		for _, path := range w.bounds.nodes {
			_, there := w.now()[path]
			_, parent := w.now()[parentOf(path)]
			if there || parent || path == "/r" {
				add("set", path)
			}
			if there && len(w.childrenOf(path)) == 0 && !w.bounds.sets {
				add("delete", path)
			}
		}
	}
	return all
}

// refuse adds the refusals of the tasks that are served next.
func (w *theirs) refuse(add func(what, path string)) {
	for i, t := range w.tasks[w.run:w.served()] {
		if _, there := w.now()[t.path]; there && t.what != ofBirth && !slices.ContainsFunc(w.tasks[w.run:w.run+i], func(o task) bool { return o.path == t.path }) {
			add("may not read", t.path)
			if w.oneShot && t.what == ofData {
				add("cannot take", t.path)
			}
		}
	}
}

func (w *theirs) apply(m playMove) error {
	switch m.what {
	case "set", "delete":
		w.writes++
		w.write(m.what, m.path)
	case "asks":
		w.tasks = w.r.round(int(w.bounds.atOnce))
		if len(w.tasks) == 0 {
			return fmt.Errorf("a round of nothing, although %v is in doubt", w.r.queue)
		}
	case "is served":
		w.serve("", nil)
	case "may not read":
		w.refusals++
		w.serve(m.path, zk.ErrNoAuth)
	case "cannot take":
		w.refusals++
		w.serve(m.path, client.ErrReplyTooLarge)
	case "tries what was refused":
		for path := range w.r.unreadable {
			w.r.doubt(task{path, ofData}, false)
		}
	case "gets":
		w.get()
	case "hears":
		w.r.hear(w.events)
		w.events = nil
	case "takes the answers":
		w.r.answered(w.head, w.tasks, w.answers, w.events)
		w.ends()
		return w.published()
	case "fails":
		w.failures++
		w.r.failed()
		w.line = slices.DeleteFunc(w.line, func(m message) bool { return m.answers != nil })
		w.ends0()
	case "loses its connection":
		w.losses++
		w.lose()
	case "the servers are restored":
		w.restores++
		w.history = w.history[:len(w.history)/2+1]
		w.lose()
		w.told = 0
	case "begins":
		w.lost = false
		w.r.begin(w.r.level.root, w.zxid())
		w.seen = w.zxid()
	}
	return nil
}

// served is behind the last task that is served next: all at once, or one after the other.
func (w *theirs) served() int {
	if w.oneShot {
		return w.run + 1
	}
	return len(w.tasks)
}

// serve runs the next tasks. Those of a path may be refused.
func (w *theirs) serve(path string, refusal error) {
	n := w.served()
	one := message{head: w.zxid()}
	for _, t := range w.tasks[w.run:n] {
		if t.path == path {
			one.answers = append(one.answers, w.answer(t, refusal))
		} else {
			one.answers = append(one.answers, w.answer(t, nil))
		}
	}
	w.run = n
	w.line = append(w.line, one)
}

// get takes the next message from the line.
func (w *theirs) get() {
	one := w.line[0]
	w.line = w.line[1:]
	if one.answers == nil {
		one.event.After = w.seen
		w.events = append(w.events, one.event)
		for _, t := range w.tasks[min(len(w.tasks), len(w.answers)):] {
			if t.path == one.event.Path && (t.what == ofChildren) == (one.event.Kind == inside.FeedChildren) || t.path == one.event.Path && one.event.Kind == inside.FeedDeleted {
				w.unsure[t] = true
			}
		}
		return
	}
	for _, a := range one.answers {
		a.Unwatched = w.oneShot && w.unsure[w.tasks[len(w.answers)]]
		w.answers = append(w.answers, a)
	}
	w.seen = max(w.seen, one.head)
	if len(w.answers) == len(w.tasks) {
		w.head = max(one.head, 1)
	}
}

// ends ends a round whose events were taken.
func (w *theirs) ends() {
	w.events = nil
	w.ends0()
}

func (w *theirs) ends0() {
	w.tasks, w.run, w.answers, w.head = nil, 0, nil, 0
	clear(w.unsure)
}

func (w *theirs) lose() {
	w.r.failed()
	w.ends()
	w.line, w.lost = nil, true
	clear(w.watched)
}

// published compares what the cache publishes with the history.
func (w *theirs) published() error {
	if !w.r.found {
		return nil
	}
	w.r.found = false
	z := w.r.level.zxid
	if z < w.told {
		return fmt.Errorf("the state at %d is published after that at %d", z, w.told)
	}
	w.told = z
	if w.r.loose {
		return w.mixed()
	}
	return w.differs(w.history[z])
}

// mixed compares what a loose cache publishes with the history: each node is one that the server
// had at the zxid of the state or later.
func (w *theirs) mixed() error {
	z := w.r.level.zxid
	for path := range w.everKnown() {
		n := w.r.level.root.get(path)
		if w.refused(path) {
			continue // nothing is promised of it
		}
		if !slices.ContainsFunc(w.history[z:], func(had map[string]zk.Stat) bool {
			stat, there := had[path]
			return there == (n != nil) && (n == nil || n.Czxid == stat.Czxid && n.Mzxid == stat.Mzxid)
		}) {
			return fmt.Errorf("the state at %d has %+v at %s, and the server had none such from then on", z, n, path)
		}
	}
	return nil
}

// refused reports whether the cache shows that it cannot read a node, or one above.
func (w *theirs) refused(path string) bool {
	for ; path != ""; path = parentOf(path) {
		if n := w.r.level.root.get(path); n != nil && n.unread() {
			return true
		}
	}
	return false
}

// everKnown are the nodes of all times.
func (w *theirs) everKnown() map[string]zk.Stat {
	all := map[string]zk.Stat{}
	for _, had := range w.history {
		maps.Copy(all, had)
	}
	w.r.level.root.walk("", "\xff", func(n *kept[int]) bool {
		all[n.Path] = zk.Stat{}
		return true
	})
	return all
}

func (w *theirs) differs(want map[string]zk.Stat) error {
	got := map[string]zk.Stat{}
	w.r.level.root.walk("", "\xff", func(n *kept[int]) bool {
		got[n.Path] = zk.Stat{Czxid: n.Czxid, Mzxid: n.Mzxid, Version: n.Version}
		return true
	})
	of := func(path string, _ zk.Stat) bool { return w.refused(path) } // nothing is promised of these
	maps.DeleteFunc(got, of)
	want = maps.Clone(want)
	maps.DeleteFunc(want, of)
	if !maps.Equal(got, want) {
		return fmt.Errorf("the state at %d is %v, and the server had %v", w.r.level.zxid, got, want)
	}
	return nil
}

// waits says what is wrong where nothing more will happen.
func (w *theirs) waits() string {
	if err := w.differs(w.now()); err != nil || w.r.level.zxid == 0 {
		return fmt.Sprintf("the cache, in vain: %v", err)
	}
	return ""
}

func (w *theirs) clone() *theirs {
	c := *w
	c.history, c.watched, c.line = slices.Clone(w.history), maps.Clone(w.watched), slices.Clone(w.line)
	c.events, c.tasks, c.answers, c.unsure = slices.Clone(w.events), slices.Clone(w.tasks), slices.Clone(w.answers), maps.Clone(w.unsure)
	r := *w.r
	r.queue, r.doubts, r.sent, r.draft.holes = slices.Clone(r.queue), maps.Clone(r.doubts), maps.Clone(r.sent), maps.Clone(r.draft.holes)
	r.unreadable, r.stirred = maps.Clone(r.unreadable), maps.Clone(r.stirred)
	c.r = &r
	return &c
}

// key tells states with different futures apart.
func (w *theirs) key() string {
	var b strings.Builder
	tree := func(t *treap[int]) {
		t.walk("", "\xff", func(n *kept[int]) bool {
			fmt.Fprint(&b, n.Path, n.Czxid, ".", n.Mzxid, n.err(), " ")
			return true
		})
		b.WriteByte('|')
	}
	set := func(s map[task]bool) {
		for _, t := range slices.SortedFunc(maps.Keys(s), compareTasks) {
			fmt.Fprint(&b, t, s[t], " ")
		}
	}
	r := w.r
	tree(r.root)
	tree(r.old)
	tree(r.draft.root)
	tree(r.level.root)
	set(r.sent)
	set(r.doubts)
	set(r.draft.holes)
	fmt.Fprint(&b, r.queue, r.draft.zxid, r.level.zxid, r.span, "|")
	for _, path := range slices.Sorted(maps.Keys(r.stirred)) {
		fmt.Fprint(&b, path, min(r.count-r.stirred[path], 4), " ")
	}
	for _, state := range w.history {
		for _, path := range w.bounds.nodes {
			fmt.Fprint(&b, state[path].Czxid, ".", state[path].Mzxid, " ")
		}
	}
	fmt.Fprint(&b, w.writes, w.losses, w.failures, w.restores, w.refusals, w.seen, w.events, w.tasks, w.run, w.head, w.lost, w.told, r.since, r.last, "|")
	for _, m := range w.line {
		fmt.Fprint(&b, m.event.Kind, m.event.Path, m.head, brief(m.answers), " ")
	}
	fmt.Fprint(&b, brief(w.answers), slices.Sorted(maps.Keys(r.unreadable)))
	watched := slices.SortedFunc(maps.Keys(w.watched), compareTasks)
	unsure := slices.SortedFunc(maps.Keys(w.unsure), compareTasks)
	fmt.Fprint(&b, watched, unsure)
	return b.String()
}

func compareTasks(a, b task) int {
	return strings.Compare(fmt.Sprint(a), fmt.Sprint(b))
}

func brief(all []inside.Answer) string {
	var b strings.Builder
	for _, a := range all {
		fmt.Fprint(&b, a.Err, a.Stat.Czxid, a.Stat.Mzxid, a.Stat.NumChildren, a.Names, a.Unwatched)
	}
	return b.String()
}

// plays is the machine of all plays within the bounds.
func plays(bounds playBounds, oneShot, loose bool) *explore.Machine[play, playMove] {
	r := newRounds(everywhere{}, false, func(path string, _ *kept[int], a inside.Answer) *kept[int] {
		return &kept[int]{Path: path, Czxid: a.Stat.Czxid, Mzxid: a.Stat.Mzxid, Version: a.Stat.Version}
	})
	r.oneShot, r.loose = oneShot, loose
	start := &theirs{
		bounds: bounds, oneShot: oneShot, r: r, watched: map[task]bool{}, unsure: map[task]bool{}, lost: true,
		history: []map[string]zk.Stat{{}, {"/r": {Czxid: 1, Mzxid: 1}}},
	}
	for _, path := range bounds.first {
		start.write("make", path)
	}
	worlds := map[string]*theirs{}
	keep := func(w *theirs) play {
		p := play{w.key()}
		worlds[p.key] = w
		return p
	}
	return &explore.Machine[play, playMove]{
		Start: keep(start),
		Moves: func(s *play, all []playMove) []playMove { return append(all, worlds[s.key].moves()...) },
		Apply: func(s *play, m playMove) error {
			w := worlds[s.key].clone()
			err := w.apply(m)
			*s = keep(w)
			return err
		},
		Must: func(m playMove) bool {
			return slices.Contains([]string{"begins", "takes the answers", "hears", "asks", "tries what was refused", "is served", "gets"}, m.what)
		},
		Waits: func(s *play) string { return worlds[s.key].waits() },
		Tell: func(s *play, m playMove) string {
			w := worlds[s.key]
			return fmt.Sprintf("%s %s; at %d, in doubt %v, asked %v, draft %d without %v", m.what, m.path, w.zxid(), w.r.queue, w.tasks, w.r.draft.zxid, w.r.draft.holes)
		},
	}
}

// TestExploreRounds plays all schedules of a cache. With DOCENT_EXPLORE_LONG there are more, and
// fewer under the race detector: it is one goroutine.
func TestExploreRounds(t *testing.T) {
	t.Parallel()
	flat, deep := []string{"/r", "/r/a"}, []string{"/r/a", "/r/a/c"}
	below := []string{"/r/a", "/r/a/c"}
	all := map[string]playBounds{
		"three writes":           {nodes: flat, writes: 3, atOnce: 9},
		"three writes, one each": {nodes: flat, writes: 3, atOnce: 1},
		"four writes to two":     {first: []string{"/r/a"}, nodes: flat, sets: true, writes: 4, atOnce: 9},
		"two levels":             {nodes: deep, writes: 3, atOnce: 9},
		"two levels are there":   {first: below, nodes: append(below, "/r"), writes: 2, atOnce: 9},
		"faults":                 {nodes: flat, writes: 2, losses: 1, failures: 1, atOnce: 9},
		"refusals":               {first: below, nodes: append(below, "/r"), writes: 1, refusals: 2, atOnce: 9},
		"a restore":              {nodes: flat, writes: 3, restores: 1, atOnce: 9},
	}
	if underRace {
		all = map[string]playBounds{"faults": {nodes: flat, writes: 2, losses: 1, failures: 1, atOnce: 9}}
	}
	if os.Getenv("DOCENT_EXPLORE_LONG") != "" {
		all = map[string]playBounds{
			"four writes":          {nodes: []string{"/r", "/r/a", "/r/b"}, writes: 4, atOnce: 9},
			"five writes":          {nodes: flat, writes: 5, atOnce: 9},
			"two levels":           {nodes: append(below, "/r"), writes: 4, atOnce: 2},
			"two levels are there": {first: below, nodes: append(below, "/r"), writes: 4, atOnce: 9},
			"faults":               {first: below, nodes: deep, writes: 3, losses: 2, failures: 2, atOnce: 9},
			"refusals":             {first: below, nodes: append(below, "/r"), writes: 2, losses: 1, refusals: 3, atOnce: 9},
			"two restores":         {nodes: flat, writes: 4, restores: 2, losses: 1, atOnce: 9},
		}
	}
	for name, bounds := range all {
		for kind, oneShot := range map[string]bool{"persistent": false, "one-shot": true} {
			for tree, loose := range map[string]bool{"": false, ", loose": true} {
				t.Run(name+", "+kind+tree, func(t *testing.T) {
					t.Parallel()
					explore.Whole(t, plays(bounds, oneShot, loose), 20_000_000)
				})
			}
		}
	}
}
