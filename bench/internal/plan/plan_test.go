package plan_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/bench/internal/load"
	"github.com/docent-go/docent/bench/internal/plan"
)

func made(t *testing.T, c plan.Choice, short bool) *plan.Plan {
	t.Helper()
	p, err := plan.New(c, short)
	if err != nil {
		t.Fatal(err)
	}
	p.Rounds, p.Window = 5, time.Second
	return p
}

func TestChoice(t *testing.T) {
	t.Parallel()
	p := made(t, plan.Choice{Settings: "one", Workloads: "lock(2|8)", Peers: "docent|rawho"}, true)
	if len(p.Settings) != 1 || p.Settings[0].Name != "one" {
		t.Errorf("settings %v: a name that begins alike is another", p.Settings)
	}
	if w := p.In(&p.Settings[0]); len(w) != 2 || w[0].Name != "lock2" || w[1].Name != "lock8" {
		t.Errorf("workloads %v", w)
	}
	if len(p.Peers) != 2 {
		t.Errorf("peers %v", p.Peers)
	}
	for _, c := range []plan.Choice{{Settings: "none"}, {Workloads: "lock"}, {Peers: "("}} {
		if _, err := plan.New(c, false); err == nil {
			t.Errorf("%+v chose something", c)
		}
	}
}

// TestShort: a short plan has something for every peer in every setting that a peer's
// servers need, and takes much less time.
func TestShort(t *testing.T) {
	t.Parallel()
	short, whole := made(t, plan.Choice{}, true), made(t, plan.Choice{}, false)
	for _, s := range short.Settings {
		there := map[string]bool{}
		for _, w := range short.In(&s) {
			for _, p := range short.Of(&w) {
				there[p.Name] = true
			}
		}
		for _, name := range []string{"docent", "rawho", "zklock", "curator", "kazoo", "etcd", "redsync"} {
			if !there[name] {
				t.Errorf("%s has nothing to do in %s", name, s.Name)
			}
		}
	}
	if short.Length() > whole.Length()/3 {
		t.Errorf("short %v, whole %v", short.Length(), whole.Length())
	}
}

// TestShapes: a short plan has a small case of each shape.
func TestShapes(t *testing.T) {
	t.Parallel()
	p := made(t, plan.Choice{}, true)
	there := map[string]bool{}
	for _, s := range p.Settings {
		for _, w := range p.In(&s) {
			there[w.Name] = true
		}
	}
	for _, name := range []string{"free", "lock8", "sessions8", "rw", "semaphore1x8", "full1x8", "full4x8s", "multi8", "multi8s", "crowd8"} {
		if !there[name] {
			t.Errorf("a short plan is without %s", name)
		}
	}
}

// TestFull: a semaphore that is said to be full has fewer permits than contenders, and no
// contender takes several, for which those of Curator would wait for ever.
func TestFull(t *testing.T) {
	t.Parallel()
	full := 0
	for _, w := range plan.Workloads() {
		if w.Kind != load.Semaphore {
			continue
		}
		short := w.Contenders*w.Permits > w.Limit
		if short && w.Permits != 1 {
			t.Errorf("%s: %d contenders take %d permits of %d", w.Name, w.Contenders, w.Permits, w.Limit)
		}
		if !strings.HasPrefix(w.Name, "full") {
			continue
		}
		full++
		if !short || !w.Queue() || w.Floor() != "rawho" {
			t.Errorf("%s: %d contenders, %d permits, queue %v, floor %s", w.Name, w.Contenders, w.Limit, w.Queue(), w.Floor())
		}
		for _, p := range plan.Peers() {
			want := slices.Contains([]string{"docent", "rawho", "curator", "kazoo"}, p.Name)
			if p.Does(&w) != want {
				t.Errorf("%s does %s: %v", p.Name, w.Name, !want)
			}
		}
	}
	if full != 6 {
		t.Errorf("%d full semaphores", full)
	}
}

// TestCrowds: a crowd of each kind is beside one contender, for long enough that it has
// several turns, and the plots of one process's line are without it.
func TestCrowds(t *testing.T) {
	t.Parallel()
	kinds := map[load.Kind]int{}
	for _, w := range plan.Workloads() {
		if !w.Lone {
			if w.Least() != 10 {
				t.Errorf("%s: at least %d cycles", w.Name, w.Least())
			}
			continue
		}
		kinds[w.Kind]++
		if !w.Queue() || w.Plain() || w.Sessions != 1 || w.Least() < 4*w.Contenders {
			t.Errorf("%+v: at least %d cycles", w, w.Least())
		}
		var able []string
		for _, p := range plan.Peers() {
			if p.Does(&w) {
				able = append(able, p.Name)
			}
		}
		if want := []string{"docent", "rawho", "curator"}; !slices.Equal(able, want) {
			t.Errorf("%s: %v, want %v", w.Name, able, want)
		}
	}
	for _, kind := range []load.Kind{load.Mutex, load.Semaphore, load.Multi} {
		if kinds[kind] != 2 {
			t.Errorf("%d crowds of the kind %s", kinds[kind], kind)
		}
	}
}

// TestNames: a name stands for one thing.
func TestNames(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	names := func(name string) {
		if seen[name] {
			t.Errorf("%s twice", name)
		}
		seen[name] = true
	}
	for _, s := range plan.Settings() {
		names("setting " + s.Name)
	}
	for _, w := range plan.Workloads() {
		names("workload " + w.Name)
	}
	for _, p := range plan.Peers() {
		names("peer " + p.Name)
	}
}
