package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"math"
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
	"github.com/docent-go/docent/zktest"
)

// A program of orders is contenders, with blanks between: the name of the client, and what
// the contender does.
//
//	aM  client a takes and releases a mutex      aW, aR  a write lock, a read lock
//	aD  a write lock, a downgrade to a read lock aS      one of one permit
//	aL  leads a selector                         aH      leads it, and hands over to the last
//
// A contender with a "-" behind it may give up at any moment.
type orderProgram struct {
	contenders string
	switches   int
}

// orderPrograms are played in every order of their requests, answers and events, with as
// few switches between connections and actors as there must be. With DOCENT_EXPLORE_LONG
// there is one switch more.
func orderPrograms() []orderProgram {
	more := 0
	if os.Getenv("DOCENT_EXPLORE_LONG") != "" {
		more = 1
	}
	programs := []orderProgram{
		{"aR aW- aR aW", more},
		{"aD aR aW", more},
		{"aL aM bL", more},
	}
	if shortForm != underRace {
		programs = append(programs, []orderProgram{
			{"aM aM bM", more},
			{"aM aM- bM", more},
			{"aW aR bW", more},
			{"aD bR bW", more},
			{"aS aS bS-", more},
			{"aL aL- bL", more},
			{"aH aL bL", more},
			{"aH bL bL-", more},
		}...)
	}
	return programs
}

// TestExploreOrders plays programs of locks in every order. DOCENT_EXPLORE_ORDER plays one
// order again, as a failure names it; then -run names the program.
func TestExploreOrders(t *testing.T) {
	t.Parallel()
	for _, p := range orderPrograms() {
		t.Run(strings.ReplaceAll(p.contenders, " ", "_"), func(t *testing.T) {
			t.Parallel()
			replay := os.Getenv("DOCENT_EXPLORE_ORDER")
			all := explore.Orders{Switches: p.switches, Replay: replay, Findings: math.MaxInt}
			got, err := all.Play(func(o *explore.Order) (err error) {
				synctest.Test(t, func(t *testing.T) { err = playOrder(t, p.contenders, o) })
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

// Where nothing is parked, time may pass before the next step, a few times in an order. It is
// longer than any wait that is not for a contender.
const (
	orderRest = 30 * time.Millisecond
	mostRests = 1
)

// orderWorld is one order while it is played.
type orderWorld struct {
	order *explore.Order
	gate  *zktest.Gate

	mu     sync.Mutex // guards the rest
	actors []*orderActor
	wrong  error
}

// orderActor is a contender.
type orderActor struct {
	name   string
	do     byte
	ctx    context.Context // ends when it gives up
	giveUp func()          // nil if it may not, or has
	goOn   chan struct{}   // closed when it is to go on from its hold
	waits  bool            // for goOn
	err    error           // of its hold, nil while it believes to hold
	holds  bool
	term   *recipes.Hold // if the library may end it before the contender knows
	shared bool
	done   bool
}

var errTwoHolders = errors.New("held together")

// granted notes a belief, and compares it with all others.
func (w *orderWorld) granted(a *orderActor, h *recipes.Hold, shared bool) {
	w.mu.Lock()
	a.holds, a.shared = true, shared
	for _, o := range w.actors {
		if o != a && o.believes() && (!o.shared || !shared) && w.wrong == nil && h.Err() == nil {
			w.wrong = fmt.Errorf("%s and %s: %w", o.name, a.name, errTwoHolders)
		}
	}
	goOn := make(chan struct{})
	a.goOn, a.waits = goOn, true
	w.mu.Unlock()
	<-goOn
}

// believes reports whether the contender believes to hold.
func (a *orderActor) believes() bool { return a.holds && (a.term == nil || a.term.Err() == nil) }

// over notes that a belief ends, before it does.
func (w *orderWorld) over(a *orderActor) {
	w.mu.Lock()
	defer w.mu.Unlock()
	a.holds = false
}

// options are the steps that may be next.
func (w *orderWorld) options() (options []explore.Option, acts []func()) {
	add := func(actor, step string, act func()) {
		options, acts = append(options, explore.Option{Actor: actor, Step: step}), append(acts, act)
	}
	for _, p := range w.gate.Parked() {
		actor, step, _ := strings.Cut(p.String(), " ")
		add(actor, step, func() { w.gate.Let(p) })
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range w.actors {
		if a.waits {
			add(a.name, "goes on", func() { a.waits = false; close(a.goOn) })
		}
		if a.giveUp != nil && !a.done && !a.holds {
			add(a.name+" ctx", "ends", func() { a.giveUp(); a.giveUp = nil })
		}
	}
	return options, acts
}

func (w *orderWorld) isOver() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range w.actors {
		if !a.done {
			return false
		}
	}
	return true
}

// playOrder plays the contenders once.
func playOrder(t *testing.T, contenders string, order *explore.Order) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	srv := zktest.NewServer(t, zktest.WithTick(time.Minute), zktest.WithSeed(1))
	clients := map[byte]*client.Client{}
	w := &orderWorld{order: order}
	for i, text := range strings.Fields(contenders) {
		if clients[text[0]] == nil {
			c := testrig.Connect(ctx, t, "zk", srv.Client(text[:1]).DialContext, client.WithSessionTimeout(10*time.Minute))
			defer func() { _ = c.Close() }()
			clients[text[0]] = c
			for range 2 { // then the client sets a guard, so that numbers tell places
				if err := useOnce(ctx, c, text[1]); err != nil {
					return err
				}
			}
		}
		own, giveUp := context.WithCancel(ctx)
		defer giveUp()
		a := &orderActor{name: fmt.Sprint(text[:2], i), do: text[1], ctx: own}
		if strings.HasSuffix(text, "-") {
			a.giveUp = giveUp
		}
		w.actors = append(w.actors, a)
	}
	w.gate = srv.NewGate(zktest.Match{PathPrefix: dir}, true)
	for _, a := range w.actors {
		go func() {
			err := w.contend(ctx, a, clients[a.name[0]])
			w.mu.Lock()
			defer w.mu.Unlock()
			a.err, a.done = err, true
		}()
		instant()
	}
	err := w.play()
	w.gate.Open()
	time.Sleep(time.Minute)
	if left := srv.Children(dir); err == nil && contenders[1] != 'S' && len(left) > 0 {
		err = fmt.Errorf("left behind: %v", left)
	}
	return err
}

// instant waits until all that follows from the last step has happened, and begins another
// instant. So no two timers are due at one.
func instant() {
	synctest.Wait()
	time.Sleep(time.Microsecond)
	synctest.Wait()
}

// play makes the steps in the order that is asked for.
func (w *orderWorld) play() error {
	for idle, rests := 0, 0; idle < 200; {
		instant()
		switch {
		case w.wrong != nil:
			w.release()
			return w.wrong
		case w.isOver():
			return w.outcome()
		}
		options, acts := w.options()
		if len(options) == 0 { // a timer is next
			idle++
			time.Sleep(orderRest)
			continue
		}
		if rests < mostRests && len(w.gate.Parked()) == 0 {
			options, acts = append(options, explore.Option{Actor: "time", Step: "passes"}), append(acts, func() { rests++; time.Sleep(orderRest) })
		}
		acts[w.order.Choose(options)]()
	}
	w.release()
	return errors.New("a contender waits, and nothing more happens")
}

// release lets all holders go on, so that the bubble can end.
func (w *orderWorld) release() {
	w.gate.Open()
	for range 100 {
		_, acts := w.options()
		for _, act := range acts {
			act()
		}
		time.Sleep(time.Second)
		if w.isOver() {
			return
		}
	}
}

// outcome is wrong if a contender that did not give up has no lock.
func (w *orderWorld) outcome() error {
	for _, a := range w.actors {
		if a.err != nil && a.ctx.Err() == nil {
			return fmt.Errorf("%s: %w", a.name, a.err)
		}
	}
	return nil
}
