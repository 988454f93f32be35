package recipes_test

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
)

// shortKind is a kind of lock, with the calls of its programs.
type shortKind struct {
	name    string
	dirs    []string               // of its lines, below its path
	modes   map[string][]paperNode // what an acquire by that name stands for, in turn
	begins  []string               // modes of an acquire, and "try MODE"
	nested  []string               // modes of an acquire inside a hold
	calls   []string               // about an acquire
	permits int
	used    bool // the permits are in constant use
	most    int  // nodes of a client
	bounds  [3]shortBound
	lock    func(w *shortWorld, c *client.Client, id int, mode string) (acquire, try shortAcquirer, err error)
	ask     func(w *shortWorld, path string) error

	shortBound
}

// shortBound is how many programs there are.
type shortBound struct{ clients, acquires, length int }

// The forms of programs: each kind has bounds for each.
const (
	underRace = iota
	usual
	long
)

// sized returns the kind with the bounds of this run.
func (k *shortKind) sized() *shortKind {
	sized := *k
	sized.shortBound = k.bounds[shortForm]
	if os.Getenv(exploreLongEnv) != "" {
		sized.shortBound = k.bounds[long]
	}
	return &sized
}

// text is a node as findings name it. The nodes of permits do not say whose they are.
func (k *shortKind) text(n *paperNode) string {
	switch {
	case k.permits == 0:
		return n.String()
	case n.mode == "P":
		return "lease"
	default:
		return "waiter"
	}
}

type shortAcquirer func(context.Context) (recipes.AnyHold, error)

// shortAs forgets the type of what is granted.
func shortAs[H recipes.AnyHold](f func(context.Context) (H, error)) shortAcquirer {
	return func(ctx context.Context) (recipes.AnyHold, error) {
		h, err := f(ctx)
		if err != nil {
			return nil, err
		}
		return h, nil
	}
}

var (
	mutexModes   = map[string][]paperNode{"M": {{mode: "L"}}}
	rwModes      = map[string][]paperNode{"R": {{mode: "R"}}, "W": {{mode: "W"}}}
	permitModes  = map[string][]paperNode{"P1": {{mode: "L", units: 1}}, "P2": {{mode: "L", units: 2}}}
	aloneModes   = map[string][]paperNode{"P1": {{mode: "L", units: 1}}, "S": {{mode: "L", units: 1}}}
	multiModes   = map[string][]paperNode{"XY": {{mode: "L"}, {mode: "W", line: 1}}, "X": {{mode: "L"}}, "YR": {{mode: "R", line: 1}}, "YW": {{mode: "W", line: 1}}}
	mixedModes   = map[string][]paperNode{"XP": {{mode: "L"}, {mode: "L", units: 1, line: 1}}, "X": {{mode: "L"}}, "P1": {{mode: "L", units: 1, line: 1}}}
	permitDirs   = []string{"/p/locks", "/p/leases"}
	everyCall    = []string{"cancel", "release", "delete", "ask"}
	everyRWCall  = []string{"cancel", "release", "downgrade", "delete", "ask"}
	ordinaryCall = []string{"cancel", "release"}
)

// shortKinds are the kinds, with as many programs as the time allows.
var shortKinds = []*shortKind{
	{
		name: "mutex", dirs: []string{"/m"}, modes: mutexModes, lock: shortMutex, ask: askMutex,
		begins: []string{"M", "try M"}, nested: []string{"M"}, calls: everyCall,
		bounds: [3]shortBound{{1, 3, 4}, {1, 4, 5}, {2, 4, 7}},
	},
	{
		name: "mutex of two clients", dirs: []string{"/m"}, modes: mutexModes, lock: shortMutex, ask: askMutex,
		begins: []string{"M", "try M"}, calls: []string{"cancel", "release", "delete"},
		bounds: [3]shortBound{{2, 3, 4}, {2, 4, 5}, {2, 4, 8}},
	},
	{
		name: "mutex with a window", dirs: []string{"/m"}, modes: mutexModes, most: 2, lock: shortMutex, ask: askMutex,
		begins: []string{"M", "try M"}, nested: []string{"M"}, calls: everyCall,
		bounds: [3]shortBound{{1, 3, 4}, {1, 4, 6}, {2, 5, 7}},
	},
	{
		name: "read/write lock", dirs: []string{"/l"}, modes: rwModes, lock: shortReadWrite, ask: askReadWrite,
		begins: []string{"R", "W"}, calls: []string{"cancel", "release", "downgrade"},
		bounds: [3]shortBound{{1, 3, 5}, {1, 4, 6}, {1, 5, 8}},
	},
	{
		name: "read/write lock of two clients", dirs: []string{"/l"}, modes: rwModes, lock: shortReadWrite, ask: askReadWrite,
		begins: []string{"R", "W"}, calls: []string{"cancel", "release", "downgrade"},
		bounds: [3]shortBound{{2, 3, 4}, {2, 4, 5}, {2, 4, 8}},
	},
	{
		name: "read/write lock with all calls", dirs: []string{"/l"}, modes: rwModes, lock: shortReadWrite, ask: askReadWrite,
		begins: []string{"R", "W", "try R", "try W"}, nested: []string{"R", "W"}, calls: everyRWCall,
		bounds: [3]shortBound{{1, 2, 3}, {1, 3, 5}, {1, 4, 7}},
	},
	{
		name: "permits", dirs: permitDirs, modes: permitModes, permits: 2, lock: shortPermits, ask: askPermits,
		begins: []string{"P1", "P2", "try P1", "try P2"}, nested: []string{"P1"}, calls: everyCall,
		bounds: [3]shortBound{{1, 2, 4}, {1, 3, 5}, {2, 4, 7}},
	},
	{
		name: "permits in constant use", dirs: permitDirs, modes: permitModes, permits: 2, used: true, lock: shortPermits, ask: askPermits,
		begins: []string{"P1", "P2"}, calls: ordinaryCall,
		bounds: [3]shortBound{{1, 3, 4}, {2, 4, 5}, {2, 4, 8}},
	},
	{
		name: "semaphore mutex beside one permit", dirs: permitDirs, modes: aloneModes, permits: 1, lock: shortPermits, ask: askPermits,
		begins: []string{"S", "P1", "try S"}, nested: []string{"S"}, calls: everyCall,
		bounds: [3]shortBound{{1, 2, 4}, {1, 3, 5}, {2, 4, 7}},
	},
	{
		name: "multi-lock beside single locks", dirs: []string{"/x", "/y"}, modes: multiModes, lock: shortMulti,
		begins: []string{"XY", "try XY", "X", "YR", "YW"}, calls: []string{"cancel", "release", "delete"},
		bounds: [3]shortBound{{1, 2, 4}, {1, 3, 5}, {2, 4, 7}},
	},
	{
		name: "permits in a multi-lock", dirs: []string{"/x", "/p/locks", "/p/leases"}, modes: mixedModes, permits: 1, lock: shortMixed,
		begins: []string{"XP", "try XP", "X", "P1"}, calls: []string{"cancel", "release", "delete"},
		bounds: [3]shortBound{{1, 2, 4}, {1, 3, 5}, {2, 4, 6}},
	},
}

func shortData(id int) recipes.NodeOption {
	return recipes.WithNodeData(fmt.Appendf(nil, "acquire %d", id))
}

func shortMutex(w *shortWorld, c *client.Client, id int, _ string) (acquire, try shortAcquirer, err error) {
	opts := []recipes.LockOption{shortData(id)}
	if w.kind.most > 0 {
		opts = append(opts, recipes.WithMaxContenders(w.kind.most))
	}
	m, err := recipes.NewInterProcessMutex(c, w.path+"/m", opts...)
	if err != nil {
		return nil, nil, err
	}
	return shortAs(m.Acquire), shortAs(m.TryAcquire), nil
}

func shortReadWrite(w *shortWorld, c *client.Client, id int, mode string) (acquire, try shortAcquirer, err error) {
	l, err := recipes.NewInterProcessReadWriteLock(c, w.path+"/l", shortData(id))
	switch {
	case err != nil:
		return nil, nil, err
	case mode == "R":
		return shortAs(l.ReadLock().Acquire), shortAs(l.ReadLock().TryAcquire), nil
	default:
		return shortAs(l.WriteLock().Acquire), shortAs(l.WriteLock().TryAcquire), nil
	}
}

// shortPermits are permits of one value for each client, as hand-overs are among its waiters.
func shortPermits(w *shortWorld, c *client.Client, _ int, mode string) (acquire, try shortAcquirer, err error) {
	if mode == "S" {
		m, err := recipes.NewInterProcessSemaphoreMutex(c, w.path+"/p")
		if err != nil {
			return nil, nil, err
		}
		return shortAs(m.Acquire), shortAs(m.TryAcquire), nil
	}
	s, err := w.semaphore(c)
	if err != nil {
		return nil, nil, err
	}
	n := w.kind.modes[mode][0].units
	return shortAs(func(ctx context.Context) (*recipes.Lease, error) { return s.Acquire(ctx, n) }),
		shortAs(func(ctx context.Context) (*recipes.Lease, error) { return s.TryAcquire(ctx, n) }), nil
}

// semaphore is the one of a client. In constant use it has given permits at once before, if
// nobody held any.
func (w *shortWorld) semaphore(c *client.Client) (*recipes.InterProcessSemaphoreV2, error) {
	s, known := w.permits[c]
	if known {
		return s, nil
	}
	s, err := recipes.NewInterProcessSemaphoreV2(c, w.path+"/p", w.kind.permits)
	w.permits[c] = s
	for i := 0; w.kind.used && i < 3 && err == nil && len(w.Srv.Children(w.path+"/p/leases")) == 0; i++ {
		err = s.Do(w.Ctx, 1, func(context.Context, *recipes.Lease) error { return nil })
	}
	return s, err
}

func shortMulti(w *shortWorld, c *client.Client, id int, mode string) (acquire, try shortAcquirer, err error) {
	x, err := recipes.NewInterProcessMutex(c, w.path+"/x", shortData(id))
	if err != nil {
		return nil, nil, err
	}
	y, err := recipes.NewInterProcessReadWriteLock(c, w.path+"/y", shortData(id))
	if err != nil {
		return nil, nil, err
	}
	xy, err := recipes.NewInterProcessMultiLock(x, y.WriteLock())
	switch mode {
	case "X":
		return shortAs(x.Acquire), shortAs(x.TryAcquire), err
	case "YR":
		return shortAs(y.ReadLock().Acquire), shortAs(y.ReadLock().TryAcquire), err
	case "YW":
		return shortAs(y.WriteLock().Acquire), shortAs(y.WriteLock().TryAcquire), err
	default:
		return shortAs(xy.Acquire), shortAs(xy.TryAcquire), err
	}
}

// shortMixed is a mutex and a permit, alone and as a multi-lock.
func shortMixed(w *shortWorld, c *client.Client, id int, mode string) (acquire, try shortAcquirer, err error) {
	x, err := recipes.NewInterProcessMutex(c, w.path+"/x", shortData(id))
	if err != nil {
		return nil, nil, err
	}
	p, err := w.semaphore(c)
	if err != nil {
		return nil, nil, err
	}
	both, err := recipes.NewInterProcessMultiLock(x, p.Permits(1))
	switch mode {
	case "X":
		return shortAs(x.Acquire), shortAs(x.TryAcquire), err
	case "P1":
		return shortAs(func(ctx context.Context) (*recipes.Lease, error) { return p.Acquire(ctx, 1) }), nil, err
	default:
		return shortAs(both.Acquire), shortAs(both.TryAcquire), err
	}
}

// shortQueue is what an operator may do with a lock.
type shortQueue interface {
	Queue(ctx context.Context) ([]recipes.Contender, error)
	RequestRelease(ctx context.Context, contender recipes.Contender) error
}

// askOf asks the contender with the node at path to release.
func (w *shortWorld) askOf(l shortQueue, path string) error {
	line, err := l.Queue(w.Ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(line, func(c recipes.Contender) bool { return c.Path == path })
	if i < 0 {
		return fmt.Errorf("the queue does not list %q: %v", path, line)
	}
	return l.RequestRelease(w.Ctx, line[i])
}

func askMutex(w *shortWorld, path string) error {
	l, err := recipes.NewInterProcessMutex(w.clients["a"], w.path+"/m")
	if err != nil {
		return err
	}
	return w.askOf(l, path)
}

func askReadWrite(w *shortWorld, path string) error {
	l, err := recipes.NewInterProcessReadWriteLock(w.clients["a"], w.path+"/l")
	if err != nil {
		return err
	}
	return w.askOf(l, path)
}

func askPermits(w *shortWorld, path string) error {
	s, err := recipes.NewInterProcessSemaphoreV2(w.clients["a"], w.path+"/p", w.kind.permits)
	if err != nil {
		return err
	}
	return w.askOf(s, path)
}
