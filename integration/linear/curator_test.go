package linear_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/integration/harness"
	"github.com/docent-go/docent/integration/peers"
	"github.com/docent-go/docent/integration/proxy"
	"github.com/docent-go/docent/internal/zoodefs"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/shared"
	"github.com/docent-go/docent/retry"
)

func connect(ctx context.Context, t *testing.T, addr string) *client.Client {
	t.Helper()
	c, err := client.Connect(ctx, addr, client.WithSessionTimeout(5*time.Second), client.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		_ = c.CloseContext(ctx) // the test looks at what matters to it
	})
	return c
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// javaNumbers starts a Curator process with a client at addr and a long named n.
func javaNumbers(ctx context.Context, t *testing.T, addr string, args ...string) *peers.Peer {
	t.Helper()
	java := peers.StartJava(ctx, t)
	_, err := java.Connect(ctx, "c", addr, 5*time.Second)
	check(t, err)
	check(t, java.Make(ctx, "n", "c", "long", args...))
	return java
}

// One answer is lost. Curator adds again and says that it has added once; Docent adds
// once, and without a mark says that it does not know.
func TestLostAnswer(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	node := harness.StartServer(ctx, t)
	px := proxy.Start(t, node.Addr())
	th := javaNumbers(ctx, t, px.Addr(), path, "10").Thread("t")
	first, err := th.Add(ctx, "n", 1)
	check(t, err)
	if !first.Succeeded || first.Post != 1 {
		t.Fatalf("Curator's first: %+v", first)
	}
	rule := px.On(proxy.Match{Op: zoodefs.OpSetData, Path: path}, proxy.SwallowReplyAndCut)
	second, err := th.Add(ctx, "n", 1)
	check(t, err)
	if len(rule.Fired()) != 1 || !second.Succeeded || second.Pre != 2 || second.Post != 3 {
		t.Errorf("Curator's second, after %d lost answers: %+v; it was to count twice", len(rule.Fired()), second)
	}
	c := connect(ctx, t, px.Addr())
	n, err := shared.NewDistributedAtomicLong(c, path)
	check(t, err)
	rule = px.On(proxy.Match{Op: zoodefs.OpMulti, Path: path}, proxy.SwallowReplyAndCut)
	if v, err := n.Increment(ctx); err != nil || v.PreValue != 3 || v.PostValue != 4 || len(rule.Fired()) != 1 {
		t.Errorf("Docent's: %+v, %v, after %d lost answers", v, err, len(rule.Fired()))
	}
	plain, err := shared.NewDistributedAtomicLong(c, path, shared.WithoutMark())
	check(t, err)
	rule = px.On(proxy.Match{Op: zoodefs.OpSetData, Path: path}, proxy.SwallowReplyAndCut)
	if v, err := plain.Increment(ctx); !client.UnknownOutcome(err) || v.Succeeded || len(rule.Fired()) != 1 {
		t.Errorf("Docent's without a mark: %+v, %v, after %d lost answers", v, err, len(rule.Fired()))
	}
	if last, err := th.Number(ctx, "n"); err != nil || last.Post != 5 {
		t.Errorf("Curator reads %+v, %v", last, err)
	}
}

// adders add to one number of an ensemble, each with a lock to be promoted to.
type adders struct {
	h       *history
	sum     atomic.Int64 // of what was acknowledged
	unknown atomic.Int64
	under   [2]atomic.Int64 // tries under the lock: Docent's, Curator's
	done    [2]atomic.Int64
}

const lockPath = "/locks/number"

// docent adds until ctx ends.
func (a *adders) docent(ctx context.Context, t *testing.T, n *shared.DistributedAtomicLong, id int) {
	t.Helper()
	for ctx.Err() == nil {
		within, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		a.h.do(id, input{op: "add", arg: 1}, func() (output, bool) {
			v, err := n.Increment(within)
			a.under[0].Add(int64(v.Stats.PromotedTries))
			switch {
			case err == nil:
				a.sum.Add(1)
				a.done[0].Add(1)
				out, _ := told(v, nil)
				return out, true
			case client.UnknownOutcome(err):
				a.unknown.Add(1)
				return output{unknown: true}, true
			default:
				return output{}, false
			}
		})
		cancel()
	}
}

// curator adds until ctx ends. What Curator reports as an exception may be applied.
func (a *adders) curator(ctx context.Context, t *testing.T, th *peers.Thread, id int) {
	t.Helper()
	for ctx.Err() == nil {
		a.h.do(id, input{op: "add", arg: 1}, func() (output, bool) {
			v, err := th.Add(context.WithoutCancel(ctx), "n", 1)
			a.under[1].Add(int64(v.PromotedTries))
			switch {
			case err != nil:
				a.unknown.Add(1)
				return output{unknown: true}, true
			case !v.Succeeded:
				return output{}, false
			}
			a.sum.Add(1)
			a.done[1].Add(1)
			return output{set: true, pre: v.Pre, post: v.Post, prePost: true}, true
		})
	}
}

// enough reports whether both have added often, and both under the lock.
func (a *adders) enough() bool {
	return a.done[0].Load() >= 50 && a.done[1].Load() >= 50 && a.under[0].Load() > 0 && a.under[1].Load() > 0
}

// end ends a round after 12 seconds, or later as soon as it is enough: on a busy machine the side
// in trouble may hardly come to its turn.
func (a *adders) end(ctx context.Context, stop func()) {
	defer stop()
	begun := time.Now()
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	for time.Since(begun) < 12*time.Second || !a.enough() {
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
	}
}

// Curator and Docent add to one number on three servers, optimistically and under
// one lock. Meanwhile answers to Docent are lost and its connections are cut.
// What all callers are told is linearizable. Then answers to Curator are lost as
// well. For each of them the sum may count one addition twice.
func TestCuratorBeside(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	e := harness.StartEnsemble(ctx, t, 3)
	toJava := proxy.Start(t, e.Node(3).Addr())
	java := javaNumbers(ctx, t, toJava.Addr(), path, "1", lockPath)
	var numbers []*shared.DistributedAtomicLong
	var proxies []*proxy.Proxy
	for i := range 2 {
		px := proxy.Start(t, e.Node(i+1).Addr())
		c := connect(ctx, t, px.Addr())
		lock, err := recipes.NewInterProcessMutex(c, lockPath)
		check(t, err)
		n, err := shared.NewDistributedAtomicLong(c, path, shared.WithTries(retry.NTimes(1, 2*time.Millisecond)),
			shared.PromotedToLock(lock, time.Minute, retry.Default()))
		check(t, err)
		numbers, proxies = append(numbers, n), append(proxies, px)
	}
	var total int64
	for _, round := range []struct {
		name string
		java bool // its answers are lost, too
	}{{"Docent in trouble", false}, {"both in trouble", true}} {
		a := &adders{h: new(history)}
		within, stop := context.WithTimeout(ctx, time.Minute)
		var wg sync.WaitGroup
		wg.Go(func() { a.end(within, stop) })
		for i, n := range numbers {
			for j := range 3 {
				wg.Go(func() { a.docent(within, t, n, i*3+j) })
			}
		}
		for j := range 3 {
			th := java.Thread(fmt.Sprint("t", j))
			wg.Go(func() { a.curator(within, t, th, 6+j) })
		}
		rules := trouble(within, proxies, toJava, round.java)
		wg.Wait()
		stop()
		lost := 0 // a rule may act until its last request is answered
		for _, r := range rules {
			lost += len(r.Fired())
		}
		th := java.Thread("end")
		last, err := th.Number(ctx, "n")
		check(t, err)
		added := last.Post - total
		t.Logf("%s: %d added; told of %d (Docent %d, Curator %d) and %d unknown, %d answers to Curator lost; %d and %d tries under the lock",
			round.name, added, a.sum.Load(), a.done[0].Load(), a.done[1].Load(), a.unknown.Load(), lost, a.under[0].Load(), a.under[1].Load())
		if added < a.sum.Load() || added > a.sum.Load()+a.unknown.Load()+int64(lost) {
			t.Errorf("%s: %d added", round.name, added)
		}
		if !a.enough() {
			t.Errorf("%s: that tests too little", round.name)
		}
		if !round.java {
			a.h.check(t, round.name)
		}
		total = last.Post
	}
}

// trouble loses answers and cuts connections until ctx ends. It returns the rules that
// have lost answers to Curator's sets.
func trouble(ctx context.Context, proxies []*proxy.Proxy, toJava *proxy.Proxy, javaToo bool) (rules []*proxy.Rule) {
	for i := 0; ; i++ {
		px := proxies[i%len(proxies)]
		var rule *proxy.Rule
		switch i % 5 {
		case 0, 3:
			px.On(proxy.Match{Op: zoodefs.OpMulti, Path: path}, proxy.SwallowReplyAndCut)
		case 1:
			px.On(proxy.Match{Op: zoodefs.OpMulti, Path: path}, proxy.CutAfterSend)
		case 2:
			px.CutAll()
		case 4:
			if javaToo {
				rule = toJava.On(proxy.Match{Op: zoodefs.OpSetData, Path: path}, proxy.SwallowReplyAndCut)
				rules = append(rules, rule)
			}
		}
		select {
		case <-time.After(400 * time.Millisecond):
		case <-ctx.Done():
		}
		if rule != nil {
			rule.Remove()
		}
		if ctx.Err() != nil {
			return rules
		}
	}
}

// Ids of a Sequence and of a CachedAtomicLong of Curator's on one node differ.
func TestCuratorIDs(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	node := harness.StartServer(ctx, t)
	java := javaNumbers(ctx, t, node.Addr(), path, "100")
	c := connect(ctx, t, node.Addr())
	var mu sync.Mutex
	given := map[int64]string{}
	give := func(id int64, who string) {
		mu.Lock()
		defer mu.Unlock()
		if other := given[id]; other != "" {
			t.Errorf("%d of %s was given out by %s", id, who, other)
		}
		given[id] = who
	}
	var wg sync.WaitGroup
	for i := range 2 {
		th := java.Thread(fmt.Sprint("t", i))
		wg.Go(func() {
			for range 200 {
				v, err := th.Next(ctx, "n")
				if err != nil || !v.Succeeded {
					t.Errorf("%+v, %v", v, err)
					return
				}
				give(v.Post, "Curator")
			}
		})
		s, err := shared.NewSequence(c, path, 7)
		check(t, err)
		for range 2 {
			wg.Go(func() {
				for range 200 {
					id, err := s.Next(ctx)
					if err != nil {
						t.Error(err)
						return
					}
					give(id, "Docent")
				}
			})
		}
	}
	wg.Wait()
	if len(given) != 1200 {
		t.Errorf("%d ids", len(given))
	}
}
