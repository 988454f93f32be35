package simulation_test

import (
	"math/rand/v2"
	"regexp"
	"strings"

	sim "github.com/docent-go/docent/recipes/internal/simulation"
	"github.com/docent-go/docent/zktest"
)

// kind is what a lock is, with what can be seen of it on the server.
type kind struct {
	dirs    []string // of nodes, below its path
	of      func(r *rand.Rand) int
	role    func(below string) (sim.Role, bool) // of a node, by its path below the lock's
	place   *regexp.Regexp                      // names of nodes that wait or hold in turn; nil if leases hold
	shares  bool                                // places are of readers and writers
	foreign []string                            // children that are not ours: some look like contenders

	base, beside *kind // two recipes on one path; nil if it is one
}

// elects reports whether the lock can be observed as an election.
func (k *kind) elects() bool {
	return k == latches || k == selectors || k.beside != nil && k.beside.elects()
}

func one(*rand.Rand) int { return 1 }

// readers is how many may read at once; a writer takes the share of all.
const readers = 1000

var mutexes = &kind{
	dirs: []string{""}, of: one,
	role:    func(below string) (sim.Role, bool) { return sim.RolePlace, strings.Contains(below, "lock-") },
	place:   regexp.MustCompile(`lock-\d{10}$`),
	foreign: foreign,
}

var latches = &kind{
	dirs: []string{""}, of: one,
	role:    func(below string) (sim.Role, bool) { return sim.RolePlace, strings.Contains(below, "latch-") },
	place:   latched,
	foreign: []string{"latch-", "latch-0000000000", "latch--1", "notes", "ready"},
}

var latched = regexp.MustCompile(`latch-\d{10}$`)

var selectors = &kind{dirs: mutexes.dirs, of: one, role: mutexes.role, place: mutexes.place, foreign: foreign}

var readWrite = &kind{
	dirs:  []string{""},
	of:    func(*rand.Rand) int { return readers },
	role:  func(below string) (sim.Role, bool) { return sim.RolePlace, readOrWrite.MatchString(below) },
	place: readOrWrite, shares: true,
	foreign: []string{"__WRIT__", "__READ__-1", "lock-0000000000", "notes", "__READ__0000000000", "__WRIT__0000000000"},
}

var readOrWrite = regexp.MustCompile(`__(READ|WRIT)__(\d{10})$`)

var semaphores = permits(func(r *rand.Rand) int { return 2 + r.IntN(3) })

var semaphoreMutexes = permits(one)

// Two recipes on one path. Mutexes exclude selectors. Permits of one and semaphore mutexes
// share the permit. Mutexes and read/write locks refuse each other.
var (
	onePermit     = permits(one)
	mutexSelector = besides(mutexes, selectors)
	permitAlone   = besides(onePermit, semaphoreMutexes)
	strangers     = mutexReadWrite()
)

func besides(base, beside *kind) *kind {
	k := *base
	k.base, k.beside = base, beside
	return &k
}

func mutexReadWrite() *kind {
	k := besides(mutexes, readWrite)
	k.of, k.place, k.shares = readWrite.of, anyPlace, true
	k.role = func(below string) (sim.Role, bool) { return sim.RolePlace, anyPlace.MatchString(below) }
	k.foreign = []string{"notes", "lock-12"}
	return k
}

// anyPlace are the places of mutexes, readers and writers.
var anyPlace = regexp.MustCompile(`(?:_(READ|WRIT)__|-(lock)-)(\d{10})$`)

// recipeOf is the recipe that a place is of.
func recipeOf(path string) string {
	if readOrWrite.MatchString(path) {
		return "read/write"
	}
	return "mutex"
}

func permits(of func(r *rand.Rand) int) *kind {
	return &kind{
		dirs: []string{"/locks", "/leases"}, of: of,
		role: func(below string) (sim.Role, bool) {
			switch {
			case queued.MatchString(below):
				return sim.RoleQueue, true
			case leased.MatchString(below):
				return sim.RolePermit, true
			default:
				return 0, false
			}
		},
		foreign: []string{
			"locks/lock-", "locks/read-0000000001", "locks/" + foreignContender, "notes", "leases/lease-0000000000",
			"leases/_c_00000000-0000-4000-8000-" + wireSuffix + "-lease-0000000000", // of no session
		},
	}
}

var (
	queued = regexp.MustCompile(`^locks/.*lock-\d{10}$`)
	leased = regexp.MustCompile(`^leases/_c_.*-lease-\d{10}$`)
)

// game is what the actors of a schedule contend for.
type game struct {
	kinds    []*kind // one of them if there is one, else one for each path
	together bool    // several locks are wanted at once
	requests []zktest.Op
}

// mutexGame has one or two mutexes.
var mutexGame = game{kinds: []*kind{mutexes}, requests: requests}

// games have the other kinds of locks.
var games = []game{
	{kinds: []*kind{readWrite}, requests: requestsOfMany},
	{kinds: []*kind{semaphores}, requests: requestsOfMany},
	{kinds: []*kind{semaphoreMutexes}, requests: requestsOfMany},
	{kinds: []*kind{mutexes, readWrite, semaphores}, together: true, requests: requestsOfMany},
}

// elections have latches, and selectors beside mutexes.
var elections = []game{
	{kinds: []*kind{latches}, requests: requestsOfMany},
	{kinds: []*kind{selectors}, requests: requestsOfMany},
}

// everyKind are the locks of some multi-locks: each kind, and two mutexes.
var everyKind = []*kind{readWrite, mutexes, semaphoreMutexes, semaphores, mutexes}

// draw chooses the game of a schedule. Where there is one only, nothing is
// drawn.
func draw(seed uint64, of []game) game {
	if len(of) == 1 {
		return of[0]
	}
	g := of[generator(seed, "game").IntN(len(of))]
	if g.together && generator(seed, "kinds").IntN(2) > 0 {
		g.kinds = everyKind
	}
	return g
}

// locksRoot is the directory of all locks.
const locksRoot = "/locks"

// newResources returns the locks of a schedule, of which some is how many
// there are if one is as good as two.
func (w *world) newResources(some int) {
	if w.game.together {
		some = len(w.game.kinds)
	}
	for i := range some {
		path := locksRoot + "/" + string(rune('a'+i))
		k := w.game.kinds[i%len(w.game.kinds)]
		w.locks = append(w.locks, &resource{
			path: path, kind: k, of: k.of(generator(w.seed, path)), witness: sim.NewWitness(path, w.h),
		})
	}
}

// lockOf returns the lock whose directory has a node, or whose number of permits it is.
func (w *world) lockOf(node string) *resource {
	for _, l := range w.locks {
		if node == l.path || node == l.count || strings.HasPrefix(node, l.path+"/") {
			return l
		}
	}
	return nil
}

// locate finds the lock that a node belongs to, and what it says there.
func (w *world) locate(node string) (*resource, sim.Role, bool) {
	for _, l := range w.locks {
		if below, ok := strings.CutPrefix(node, l.path+"/"); ok {
			role, ok := l.kind.role(below)
			return l, role, ok
		}
	}
	return nil, 0, false
}

// ahead returns the contenders that stand now, are older than a hold and exclude
// it. The contenders of permits are found in the log.
func (w *world) ahead(l *resource, g *sim.Hold) (paths []string) {
	if l.kind.place == nil {
		return nil
	}
	s := w.authority()
	dir, _ := s.Node(l.path)
	for _, name := range s.Children(l.path) {
		n, ok := s.Node(l.path + "/" + name)
		if !ok || !l.kind.place.MatchString(name) || l.kind.shares && !before(n, g) {
			continue
		}
		// In a directory that was made after the hold's node the numbers began
		// again.
		if n.Stat.Czxid < g.Token || l.kind.shares && dir.Stat.Czxid < g.Token {
			paths = append(paths, n.Path)
		}
	}
	return paths
}

// before reports whether a reader or writer excludes a hold and is older. A
// reader in a writer's place has the writer's number and a younger node.
func before(n zktest.Node, g *sim.Hold) bool {
	theirs, own := anyPlace.FindStringSubmatch(n.Path), anyPlace.FindStringSubmatch(g.Path)
	if n.Path == g.Path || g.From != nil && n.Path == g.From.Path || own == nil || theirs == nil || own[1] == "READ" && theirs[1] == "READ" {
		return false
	}
	return n.Stat.Czxid < g.Token || n.Stat.EphemeralOwner != 0 && theirs[3] < own[3]
}
