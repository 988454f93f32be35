package shared_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/explore"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/shared"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/zktest"
)

// A program of orders is callers, with blanks between: the name of the client, and what the
// caller does with one number. The callers of a client share one value.
//
//	aI  increments it                            aC  compares it with what it has read, and sets it
//	aP  increments it, under a lock if others    aN  takes an id of a block of two
//	    write in between                         aT  does so with a SharedCount, and tries again
//
// A caller with a "-" behind it may give up at any moment. With "cut" the connection of
// client a may be cut once.
var orderedNumbers = []struct {
	callers  string
	race     bool // also under the race detector, with one switch
	switches int
}{
	{"aI aI bI", true, 2},
	{"aI aI- bI", false, 2},
	{"aI aI aI bI", false, 1},
	{"aI bI cut", false, 2},
	{"aC aC bC", false, 2},
	{"aP aP bP", false, 2},
	{"aP bP-", true, 2},
	{"aP bI bI", true, 2},
	{"aN aN bN", false, 3},
	{"aT bT bT", false, 2},
}

// TestNumbersOrders plays callers of a number in every order of their requests, answers and
// events, within a few switches between connections. Each call that says it has
// changed the number has, once. With DOCENT_EXPLORE_LONG there is one
// switch more. DOCENT_EXPLORE_ORDER plays one order again, as a failure names it; then -run
// names the program.
func TestNumbersOrders(t *testing.T) {
	t.Parallel()
	for _, p := range orderedNumbers {
		if exploresLess && !p.race {
			continue
		}
		t.Run(strings.ReplaceAll(p.callers, " ", "_"), func(t *testing.T) {
			t.Parallel()
			switch {
			case exploresLess:
				p.switches = 1
			case os.Getenv("DOCENT_EXPLORE_LONG") != "":
				p.switches++
			}
			replay := os.Getenv("DOCENT_EXPLORE_ORDER")
			all := explore.Orders{Switches: p.switches, Replay: replay}
			got, err := all.Play(func(o *explore.Order) (err error) {
				synctest.Test(t, func(t *testing.T) { err = playNumber(t, p.callers, o) })
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range got.Findings {
				t.Errorf("%v", f)
			}
			if replay == "" && (!got.Complete || got.Runs < 10) {
				t.Errorf("%d orders; complete %v", got.Runs, got.Complete)
			}
			t.Logf("%d orders of at most %d choices, %d switches", got.Runs, got.Longest, p.switches)
		})
	}
}

// ordered is one order while it is played.
type ordered struct {
	mu      sync.Mutex // guards the rest
	left    int        // callers that have not returned
	sure    int64      // changes that were acknowledged
	maybe   int64      // changes of which nothing is known
	pre     map[int64]bool
	wrong   error
	mayFail bool // somebody gives up, or a connection is cut
}

// changed records what a change of the number was told.
func (w *ordered) changed(done bool, pre int64, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.left--
	switch {
	case err != nil && !w.mayFail:
		w.wrong = errors.Join(w.wrong, err)
	case client.UnknownOutcome(err):
		w.maybe++
	case err == nil && done:
		if w.sure++; w.pre[pre] {
			w.wrong = errors.Join(w.wrong, fmt.Errorf("two changes of the same number, %d", pre))
		}
		w.pre[pre] = true
	}
}

// numbers are what the callers of a client share.
type numbers struct {
	long, promoted *shared.DistributedAtomicLong
	ids            *shared.Sequence
	count          *shared.SharedCount
}

func newNumbers(c *client.Client) (*numbers, error) {
	mutex, err := recipes.NewInterProcessMutex(c, "/n/lock")
	if err != nil {
		return nil, err
	}
	n := &numbers{}
	var errs [4]error
	n.long, errs[0] = shared.NewDistributedAtomicLong(c, "/n/number")
	n.promoted, errs[1] = shared.NewDistributedAtomicLong(c, "/n/number",
		shared.WithTries(retry.None()), shared.PromotedToLock(mutex, 0, retry.Forever(time.Millisecond)))
	n.ids, errs[2] = shared.NewSequence(c, "/n/number", 2)
	n.count, errs[3] = shared.NewSharedCount(c, "/n/count", 0)
	return n, errors.Join(errs[:]...)
}

// call is what one caller does.
func (w *ordered) call(ctx context.Context, n *numbers, do byte) {
	switch do {
	case 'I':
		got, err := n.long.Increment(ctx)
		w.changed(got.Succeeded, got.PreValue, err)
	case 'P':
		got, err := n.promoted.Increment(ctx)
		w.changed(got.Succeeded, got.PreValue, err)
	case 'C':
		got, err := n.long.Get(ctx)
		if err == nil {
			got, err = n.long.CompareAndSet(ctx, got.PostValue, got.PostValue+1)
		}
		w.changed(got.Succeeded, got.PreValue, err)
	case 'N':
		id, err := n.ids.Next(ctx)
		w.changed(true, id, err)
	case 'T':
		for {
			now, err := n.count.Get(ctx)
			set := false
			if err == nil {
				set, err = n.count.TrySet(ctx, now, now.Value+1)
			}
			if err != nil || set {
				w.changed(set, int64(now.Value), err)
				return
			}
		}
	}
}

// playNumber plays the callers once.
func playNumber(t *testing.T, callers string, order *explore.Order) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	srv := zktest.NewServer(t, zktest.WithTick(time.Minute), zktest.WithSeed(1))
	if err := errors.Join(srv.Create("/n/number", make([]byte, 8)), srv.Create("/n/count", make([]byte, 4))); err != nil {
		return err
	}
	w := &ordered{pre: map[int64]bool{}, mayFail: strings.ContainsAny(callers, "-u")}
	of := map[string]*numbers{}
	type caller struct {
		ctx context.Context
		n   *numbers
		do  byte
	}
	var all []caller
	var deeds []explore.Deed
	for text := range strings.FieldsSeq(callers) {
		if text == "cut" {
			deeds = append(deeds, explore.Deed{Name: "cut", Do: func() { srv.Client("a").Cut() }})
			continue
		}
		name := text[:1]
		if of[name] == nil {
			c := testrig.Connect(ctx, t, "zk", srv.Client(name).DialContext, client.WithSessionTimeout(10*time.Minute),
				client.WithRand(func() float64 { return 0.5 }))
			defer func() { _ = c.Close() }()
			n, err := newNumbers(c)
			if err != nil {
				return err
			}
			of[name] = n
		}
		own, giveUp := context.WithCancel(ctx)
		defer giveUp()
		if strings.HasSuffix(text, "-") {
			deeds = append(deeds, explore.Deed{Name: name + "-ctx", Do: giveUp})
		}
		all = append(all, caller{own, of[name], text[1]})
	}
	w.left = len(all)
	gate := srv.NewGate(zktest.Match{PathPrefix: "/n"}, true)
	instant := func() {
		synctest.Wait()
		time.Sleep(time.Microsecond)
		synctest.Wait()
	}
	for _, c := range all {
		go w.call(c.ctx, c.n, c.do)
		instant()
	}
	explore.Programs[zktest.Parked]{
		Gate: gate, Rest: instant, Deeds: deeds,
		Over:  func() bool { w.mu.Lock(); defer w.mu.Unlock(); return w.left == 0 },
		Idle:  func() { time.Sleep(30 * time.Millisecond) },
		Idles: 100,
	}.Play(order)
	gate.Open()
	time.Sleep(time.Minute)
	return w.judge(srv, all[0].do)
}

// judge compares the number on the server with what callers were told.
func (w *ordered) judge(srv *zktest.Server, do byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	node, _ := srv.Node("/n/number")
	sum := int64(binary.BigEndian.Uint64(node.Data))
	if do == 'T' {
		node, _ = srv.Node("/n/count")
		sum = int64(binary.BigEndian.Uint32(node.Data))
	}
	switch {
	case w.left > 0:
		return fmt.Errorf("%d callers wait, and nothing more happens", w.left)
	case w.wrong != nil:
		return w.wrong
	case do == 'N' && sum < w.sure:
		return fmt.Errorf("%d ids of %d reserved", w.sure, sum)
	case do != 'N' && (sum < w.sure || sum > w.sure+w.maybe):
		return fmt.Errorf("the number is %d, after %d changes and %d of which nothing is known", sum, w.sure, w.maybe)
	}
	return nil
}
