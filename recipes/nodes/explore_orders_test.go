package nodes_test

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
	"github.com/docent-go/docent/recipes/nodes"
	"github.com/docent-go/docent/zktest"
)

// orderDir is where the nodes of an order stand.
const orderDir = "/orders"

// A program of orders is actors, with blanks between. An object is the name of the client, and
// its mode; it starts, sets new data when it stands, and closes.
//
//	aE  ephemeral, at the path that all share   aP  persistent, at that path
//	aQ  ephemeral sequential                    aG  a member, with an id of its own
//
// x is an operator that deletes all nodes, and e ends the session of client a, each once at
// any moment.
type orderProgram struct {
	actors   string
	switches int
}

// orderPrograms are played in every order of their requests, answers and events, within so many
// switches. With DOCENT_EXPLORE_LONG there are more of both, for minutes.
func orderPrograms() []orderProgram {
	few := nodes.OrderSwitches
	if os.Getenv(exploreLongEnv) == "" {
		return []orderProgram{{"aE bE", few - 1}, {"aE x", few}, {"aE e", few}, {"aE aE", few}, {"aP x", few}, {"aQ x", few}, {"aQ e", few}, {"aG e", few}}
	}
	return []orderProgram{
		{"aE bE", 1},
		{"aE bE x", 0},
		{"aE x e", few},
		{"aE aE", 1},
		{"aP bP", 1},
		{"aP x", few + 1},
		{"aQ x", few + 1},
		{"aQ e", few + 1},
		{"aQ bQ x", 0},
		{"aG bG e", 0},
		{"aG x e", 1},
	}
}

// TestExploreOrders plays programs of objects in every order. DOCENT_EXPLORE_ORDER plays one
// order again, as a failure names it; then -run names the program.
func TestExploreOrders(t *testing.T) {
	t.Parallel()
	for _, p := range orderPrograms() {
		t.Run(strings.ReplaceAll(p.actors, " ", "_"), func(t *testing.T) {
			t.Parallel()
			replay := os.Getenv("DOCENT_EXPLORE_ORDER")
			all := explore.Orders{Switches: p.switches, Replay: replay, Findings: math.MaxInt}
			got, err := all.Play(func(o *explore.Order) (err error) {
				synctest.Test(t, func(t *testing.T) { err = playOrder(t, p.actors, o) })
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			drawn := 0
			for _, f := range got.Findings {
				if errors.Is(f.Err, errWrongOutcome) || !errors.Is(f.Err, explore.ErrOtherOptions) {
					t.Fatalf("%v", f)
				}
				drawn++
			}
			// The pause after a deletion is drawn. An order that depends on it is judged all the same.
			if replay == "" && (!got.Complete || drawn*10 > got.Runs) {
				t.Errorf("%d orders, of which %d were drawn; complete %v", got.Runs, drawn, got.Complete)
			}
			t.Logf("%d orders of at most %d choices, %d switches, %d drawn", got.Runs, got.Longest, p.switches, drawn)
		})
	}
}

var errWrongOutcome = errors.New("wrong outcome")

// orderActor is an actor of a program.
type orderActor struct {
	name string
	act  func() // of an operator, nil when it has acted
	node *nodes.PersistentNode

	goOn chan struct{} // lets it go on from where it waits
	at   bool          // it waits there
	err  error
	done bool
}

// orderWorld is one order while it is played.
type orderWorld struct {
	order *explore.Order
	srv   *zktest.Server
	gate  *zktest.Gate

	mu     sync.Mutex // guards the rest
	actors []*orderActor
	made   map[int64]string // the client that has made the node of a czxid
	by     map[int64]string // the client of a session
}

// playOrder plays a program once.
func playOrder(t *testing.T, program string, order *explore.Order) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	srv := zktest.NewServer(t, zktest.WithTick(time.Minute), zktest.WithSeed(1))
	if err := srv.Create(orderDir, nil); err != nil {
		return err
	}
	w := &orderWorld{order: order, srv: srv, made: map[int64]string{}, by: map[int64]string{}}
	srv.OnCommit(w.commit)
	clients := map[string]*client.Client{}
	for i, text := range strings.Fields(program) {
		a := &orderActor{name: fmt.Sprint(text, i), goOn: make(chan struct{})}
		w.actors = append(w.actors, a)
		if len(text) == 1 {
			continue
		}
		name := text[:1]
		if clients[name] == nil {
			c := testrig.Connect(ctx, t, "zk", srv.Client(name).DialContext, client.WithSessionTimeout(10*time.Minute))
			defer func() { _ = c.Close() }()
			clients[name] = c
			if err := w.meets(ctx, name, c); err != nil {
				return err
			}
		}
		var err error
		if a.node, err = newOrderNode(clients[name], text[1], i); err != nil {
			return err
		}
	}
	for _, a := range w.actors {
		switch a.name[0] {
		case 'x':
			a.act = w.deleteAll
		case 'e':
			a.act = func() { srv.Client("a").ExpireSession() }
		}
	}
	w.gate = srv.NewGate(zktest.Match{PathPrefix: orderDir}, true)
	for _, a := range w.actors {
		if a.node != nil {
			go w.live(ctx, a) // ends with the order
			instant()
		}
	}
	err := w.play()
	w.gate.Open()
	for range 100 {
		w.letGo()
		time.Sleep(time.Second)
	}
	if left := srv.Children(orderDir); err == nil && len(left) > 0 {
		err = fmt.Errorf("left behind: %v", left)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errWrongOutcome, err)
	}
	return nil
}

// newOrderNode makes the object of an actor.
func newOrderNode(c *client.Client, mode byte, i int) (*nodes.PersistentNode, error) {
	data := []byte(text(i, 0))
	switch mode {
	case 'P':
		return nodes.NewPersistentNode(c, nodes.Persistent, orderDir+"/n", data)
	case 'Q':
		return nodes.NewPersistentNode(c, nodes.EphemeralSequential, orderDir+"/n", data)
	case 'G':
		m, err := nodes.NewGroupMember(c, orderDir, fmt.Sprint("m", i), data)
		if err != nil {
			return nil, err
		}
		return m.PersistentNode, nil
	}
	return nodes.NewPersistentNode(c, nodes.Ephemeral, orderDir+"/n", data)
}

// meets notes the session of a client.
func (w *orderWorld) meets(ctx context.Context, name string, c *client.Client) error {
	s, err := c.Session(ctx)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.by[s.ID()] = name
	return nil
}

// commit notes which client has made a node. A session that is not known is the second of a.
func (w *orderWorld) commit(c zktest.Commit) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(c.Created) > 0 {
		w.made[c.Zxid] = w.by[c.Session]
	}
}

func (w *orderWorld) deleteAll() {
	for _, name := range w.srv.Children(orderDir) {
		_ = w.srv.Delete(orderDir + "/" + name) // it stands: nothing else happens now
	}
}

// live is what the object of an actor does.
func (w *orderWorld) live(ctx context.Context, a *orderActor) {
	err := a.node.Start(ctx)
	if err == nil {
		w.stop(a)
		err = a.node.Set(ctx, []byte(text(0, 1)))
	}
	if err == nil {
		w.stop(a)
		err = a.node.CloseContext(ctx)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	a.err, a.done = err, true
}

// stop waits until the actor is to go on.
func (w *orderWorld) stop(a *orderActor) {
	w.mu.Lock()
	a.at = true
	w.mu.Unlock()
	<-a.goOn
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
		switch {
		case a.at:
			add(a.name, "goes on", func() { a.at = false; a.goOn <- struct{}{} })
		case a.act != nil:
			act := a.act
			add(a.name, "acts", func() { a.act = nil; act() })
		}
	}
	return options, acts
}

// letGo lets all that wait go on, so that the bubble can end.
func (w *orderWorld) letGo() {
	_, acts := w.options()
	for _, act := range acts {
		act()
	}
}

// play makes the steps in the order that is asked for.
func (w *orderWorld) play() error {
	for idle := 0; idle < 1000; {
		instant()
		if over, err := w.judge(); over || err != nil {
			return err
		}
		options, acts := w.options()
		if len(options) == 0 { // a timer is next
			idle++
			time.Sleep(10 * time.Millisecond)
			continue
		}
		acts[w.order.Choose(options)]()
	}
	return errors.New("an object waits, and nothing more happens")
}

// judge compares what each object tells with what the servers have done.
func (w *orderWorld) judge() (over bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	over = true
	ours := map[int64]string{}
	for _, a := range w.actors {
		if a.node == nil {
			over = over && a.act == nil
			continue
		}
		over = over && a.done
		if a.err != nil {
			return true, fmt.Errorf("%s: %w", a.name, a.err)
		}
		now := a.node.Status()
		if now.State != nodes.Ours {
			continue
		}
		by, made := w.made[now.Czxid]
		switch {
		case !made:
			return true, fmt.Errorf("%s tells %+v, and no such node was made", a.name, now)
		case a.name[1] != 'P' && by != "" && by != a.name[:1]:
			return true, fmt.Errorf("%s tells %+v, which %s has made", a.name, now, by)
		case a.name[1] != 'P' && ours[now.Czxid] != "":
			return true, fmt.Errorf("%s and %s tell %+v", a.name, ours[now.Czxid], now)
		}
		ours[now.Czxid] = a.name
	}
	return over, nil
}
