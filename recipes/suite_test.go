package recipes_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/locktest"
	"github.com/docent-go/docent/zktest"
)

// Every kind of lock, on an in-process server in virtual time.
func TestSuite(t *testing.T) {
	t.Parallel()
	for _, kind := range locktest.Kinds() {
		for _, test := range locktest.Tests() {
			t.Run(kind.Name+"/"+test.Name, func(t *testing.T) {
				t.Parallel()
				bubble(t, func(r *rig) { test.Run(r.T, &suiteWorld{rig: r}, kind) })
			})
		}
	}
}

// suiteWorld is a rig as the suite sees it.
type suiteWorld struct {
	*rig

	paths int
}

func (w *suiteWorld) Path() string {
	w.paths++
	return fmt.Sprintf("/suite/%d/lock", w.paths)
}

func (w *suiteWorld) Connect(name string) *client.Client { return w.rig.Connect(name) }

func (w *suiteWorld) ways() map[string]func(zktest.Match) *zktest.Rule {
	return map[string]func(zktest.Match) *zktest.Rule{
		"answer": w.Srv.LoseReply, "request": w.Srv.DropBefore, "after": w.Srv.DropAfter, "stalled": w.Srv.StallReply,
	}
}

func (w *suiteWorld) Ways() []string { return []string{"answer", "request", "after", "stalled"} }

// nth is the nth request that is no ping.
func nth(name string, n int) zktest.Match {
	return zktest.Match{Client: name, Nth: n, Where: func(q zktest.Request) bool {
		return q.Op != zktest.OpPing && q.Op != zktest.OpConnect
	}}
}

type suiteFault struct{ rule *zktest.Rule }

func (f suiteFault) Fired() bool { return f.rule.Fired() > 0 }
func (f suiteFault) Remove()     { f.rule.Remove() }

func (w *suiteWorld) Lose(name string, n int, way string) locktest.Fault {
	return suiteFault{w.ways()[way](nth(name, n))}
}

func (w *suiteWorld) AtAnswer(name string, n int, f func()) locktest.Fault {
	return suiteFault{w.Srv.BeforeReply(nth(name, n), func(context.Context, zktest.Request) { f() })}
}

func (w *suiteWorld) Kill(session int64) { w.Srv.ExpireSession(session) }

func (w *suiteWorld) Silence(name string) { w.Srv.Client(name).Freeze() }

func (w *suiteWorld) Heal(name string) { w.Srv.Client(name).Thaw() }

func (w *suiteWorld) Delete(path string) { w.Check(w.Srv.Delete(path)) }

func (w *suiteWorld) Ephemerals(path string) (all []string) {
	for _, n := range w.Srv.Tree() {
		if n.Stat.EphemeralOwner != 0 && strings.HasPrefix(n.Path, path+"/") {
			all = append(all, n.Path)
		}
	}
	return all
}

func (w *suiteWorld) Watched(path string) (all []string) {
	for _, watch := range w.Srv.Watches() {
		if strings.HasPrefix(watch.Path, path+"/") {
			all = append(all, watch.Path)
		}
	}
	return all
}

func (w *suiteWorld) Goroutines() []string { return testrig.Goroutines(w.T, ourFrames) }

func (w *suiteWorld) RoundTrip() time.Duration { return time.Millisecond }
