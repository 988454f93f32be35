package simulation_test

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/recipes"
)

// each returns the holds of all locks.
func each(h recipes.AnyHold) []*recipes.Hold {
	switch h := h.(type) {
	case *recipes.WriteHold:
		return []*recipes.Hold{h.Hold}
	case *recipes.Lease:
		return []*recipes.Hold{h.Hold}
	case *recipes.MultiHold:
		return h.Holds()
	case *nest:
		return append(each(h.outer), each(h.AnyHold)...)
	case *recipes.Term:
		return []*recipes.Hold{h.Hold}
	case *recipes.Hold:
		return []*recipes.Hold{h}
	default:
		return nil
	}
}

type call func(ctx context.Context) (recipes.AnyHold, error)

// as forgets the type of what is granted.
func as[H recipes.AnyHold](a *actor, f func(context.Context) (H, error)) call {
	return func(ctx context.Context) (recipes.AnyHold, error) {
		h, err := say(a.w.words, f)(ctx)
		if err != nil {
			return nil, err
		}
		return h, nil
	}
}

// doing is a Do.
type doing func(ctx context.Context, fn func(ctx context.Context, h recipes.AnyHold) error) error

// does forgets the type of what a Do hands its function.
func does[H recipes.AnyHold](a *actor, do func(context.Context, func(context.Context, H) error) error) doing {
	return func(ctx context.Context, fn func(context.Context, recipes.AnyHold) error) error {
		return say(a.w.words, do)(ctx, func(ctx context.Context, h H) error { return fn(ctx, h) })
	}
}

// want is what an actor calls for: a share of a lock, or of several.
type want struct {
	parts        []part
	acquire, try call
	do, tryDo    doing
	within       call  // what the holder asks for; nil for nothing
	more         int   // permits that within asks for
	hopeless     bool  // that within can never be granted
	asks         bool  // the servers, before within is refused
	read         *want // what a writer turns into
	shared       bool  // others may hold beside it
	recipe       string
	election     *recipes.Election
	in           string // the namespace of the actor's client
}

type part struct {
	l     *resource
	units int
}

// lock names all locks as the library's errors do.
func (w *want) lock() string { return strings.Join(w.paths(), "+") }

func (w *want) paths() []string {
	var paths []string
	for _, p := range w.parts {
		paths = append(paths, p.l.path)
	}
	return paths
}

// errorOf is what an error of several locks says of one of them.
func (w *want) errorOf(err error, l *resource) error {
	if len(w.parts) == 1 || err == nil {
		return err
	}
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range all.Unwrap() {
			if of := w.errorOf(one, l); of != nil {
				return of
			}
		}
		return nil
	}
	var of *recipes.LockError
	if errors.Is(err, errWork) || errors.As(err, &of) && w.onWire(of.Path) != l.path && w.onWire(of.Path) != w.lock() {
		return nil
	}
	return err
}

// onWire is what an error names as the servers have it: one path, or several.
func (w *want) onWire(paths string) string {
	return w.in + strings.ReplaceAll(paths, "+", "+"+w.in)
}

// handle is one actor's way to a lock: one of these is set.
type handle struct {
	l         *resource
	mutex     *recipes.InterProcessMutex
	rw        *recipes.InterProcessReadWriteLock
	semaphore *recipes.InterProcessSemaphoreV2
	alone     *recipes.InterProcessSemaphoreMutex
	election  *recipes.Election
	beside    *handle // another recipe's on the same path
}

// values are the semaphores of a client, by path. In half of the schedules all of its
// actors share them.
type values[S any] map[string]S

func (v values[S]) of(a *actor, l *resource, build func(recipes.SemaphoreOption) (S, error)) (s S, err error) {
	if generator(a.w.seed, "shared").IntN(2) == 0 {
		return build(recipes.WithNodeData([]byte(a.name)))
	}
	key := a.in + " " + l.path
	s, ok := v[key]
	if !ok {
		s, err = build(recipes.WithNodeData([]byte(a.n.name)))
		v[key] = s
	}
	return s, err
}

// handle is the actor's way to a lock, with that to the other recipe on its path.
func (a *actor) handle(l *resource) (h handle, err error) {
	if l.kind.beside == nil {
		return a.handleOf(l, l.kind)
	}
	h, err = a.handleOf(l, l.kind.base)
	if err != nil {
		return h, err
	}
	beside, err := a.handleOf(l, l.kind.beside)
	h.beside = &beside
	return h, err
}

func (a *actor) handleOf(l *resource, k *kind) (h handle, err error) {
	h.l = l
	c, path := a.c, a.path(l.path)
	switch k {
	case readWrite:
		h.rw, err = say(a.w.words, recipes.NewInterProcessReadWriteLock)(c, path, a.lockOptions()...)
	case semaphores, onePermit:
		h.semaphore, err = a.n.semaphores.of(a, l, func(data recipes.SemaphoreOption) (*recipes.InterProcessSemaphoreV2, error) {
			return l.semaphore(a, data)
		})
	case semaphoreMutexes:
		h.alone, err = a.n.alone.of(a, l, func(data recipes.SemaphoreOption) (*recipes.InterProcessSemaphoreMutex, error) {
			return say(a.w.words, recipes.NewInterProcessSemaphoreMutex)(c, path, data)
		})
	case latches, selectors:
		h.election, err = a.election(l, k)
	default:
		h.mutex, err = say(a.w.words, recipes.NewInterProcessMutex)(c, path, a.lockOptions()...)
	}
	return h, err
}

// lockOptions are those of the actor's mutexes and read/write locks.
func (a *actor) lockOptions() []recipes.LockOption {
	opts := []recipes.LockOption{
		say(a.w.words, recipes.WithNodeData)([]byte(a.name)), say(a.w.words, recipes.WithMaxContenders)(a.w.most),
	}
	if a.w.noReentry {
		opts = append(opts, say(a.w.words, recipes.WithoutReentry)())
	}
	if !a.w.k.whole {
		return opts
	}
	switch generator(a.w.seed, "options").IntN(8) {
	case 0, 1: // no node of kazoo's comes
		opts = append(opts, say(a.w.words, recipes.WithKazoo)(), say(a.w.words, recipes.WithNodeACL)(zk.WorldACL(zk.PermAll)...))
	case 2:
		opts = append(opts, say(a.w.words, recipes.WithPersistentParents)())
	}
	return opts
}

// choose draws what to call for. Of a mutex there is but one thing.
func (a *actor) choose(lock int) *want {
	if a.w.game.together {
		if some := a.r.Perm(len(a.locks))[:1+a.r.IntN(len(a.locks))]; len(some) > 1 {
			slices.Sort(some) // one order everywhere
			return a.several(some)
		}
	}
	h := a.locks[lock]
	if h.beside != nil && a.r.IntN(2) == 0 {
		h = *h.beside
	}
	w, _ := a.single(h)
	return w
}

// single wants one lock, and returns it for a multi-lock.
func (a *actor) single(h handle) (*want, recipes.Lock) {
	w := &want{parts: []part{{h.l, h.l.of}}, recipe: "mutex", in: a.in}
	switch {
	case h.rw != nil:
		return a.half(h)
	case h.semaphore != nil:
		s, n := h.semaphore, 1+a.r.IntN(h.l.of)
		permits := func(f func(context.Context, int) (*recipes.Lease, error), n int) call {
			return func(ctx context.Context) (recipes.AnyHold, error) {
				lease, err := say(a.w.words, f)(ctx, n)
				if err != nil {
					return nil, err
				}
				return lease, nil
			}
		}
		does := func(do func(context.Context, int, func(context.Context, *recipes.Lease) error) error) doing {
			return func(ctx context.Context, fn func(context.Context, recipes.AnyHold) error) error {
				return say(a.w.words, do)(ctx, n, func(ctx context.Context, lease *recipes.Lease) error { return fn(ctx, lease) })
			}
		}
		w.parts[0].units, w.shared = n, true
		w.acquire, w.try = permits(s.Acquire, n), permits(s.TryAcquire, n)
		w.do, w.tryDo = does(s.Do), does(s.TryDo)
		w.more = h.l.of - n + 1
		w.within, w.hopeless, w.asks = permits(s.Acquire, w.more), true, true
		return w, say(a.w.words, s.Permits)(n)
	case h.alone != nil:
		w.acquire, w.try = as(a, h.alone.Acquire), as(a, h.alone.TryAcquire)
		w.do, w.tryDo = does(a, h.alone.Do), does(a, h.alone.TryDo)
		w.within, w.hopeless, w.asks = w.acquire, true, true
		return w, h.alone
	case h.election != nil:
		e := h.election
		w.acquire, w.try = as(a, e.Campaign), as(a, e.TryCampaign)
		w.do, w.tryDo = does(a, e.Do), does(a, e.TryDo)
		w.within, w.hopeless, w.election = w.acquire, true, e
		return w, nil
	default:
		w.acquire, w.try = as(a, h.mutex.Acquire), as(a, h.mutex.TryAcquire)
		w.do, w.tryDo = does(a, h.mutex.Do), does(a, h.mutex.TryDo)
		w.within, w.hopeless = w.acquire, a.w.noReentry
		return w, h.mutex
	}
}

// half wants to write, or twice as often to read.
func (a *actor) half(h handle) (*want, recipes.Lock) {
	r, w := say(a.w.words, h.rw.ReadLock)(), say(a.w.words, h.rw.WriteLock)()
	read := &want{
		parts: []part{{h.l, 1}}, recipe: "read/write", shared: true,
		acquire: as(a, r.Acquire), try: as(a, r.TryAcquire), do: does(a, r.Do), tryDo: does(a, r.TryDo), within: as(a, r.Acquire),
	}
	if a.w.noReentry {
		read.within = nil // it has a node of its own, or finds a writer
	}
	switch a.r.IntN(6) {
	case 0, 1:
		return &want{
			parts: []part{{h.l, h.l.of}}, recipe: "read/write",
			acquire: as(a, w.Acquire), try: as(a, w.TryAcquire), do: does(a, w.Do), tryDo: does(a, w.TryDo),
			within: as(a, w.Acquire), hopeless: a.w.noReentry, read: read,
		}, w
	case 2:
		read.within, read.hopeless = as(a, w.Acquire), true
	}
	return read, r
}

// several wants some locks at once. With permits it cannot be re-entered.
func (a *actor) several(some []int) *want {
	w := &want{in: a.in}
	var locks []recipes.Lock
	var acquires, tries []call
	again := true
	for _, i := range some {
		one, lock := a.single(a.locks[i])
		w.parts, locks = append(w.parts, one.parts...), append(locks, lock)
		acquires, tries = append(acquires, one.acquire), append(tries, one.try)
		again = again && a.locks[i].semaphore == nil && a.locks[i].alone == nil
	}
	if a.r.IntN(3) == 0 { // ordinary nested calls, in the multi-lock's order
		w.acquire, w.try = nested(acquires), nested(tries)
		w.do = func(ctx context.Context, fn func(context.Context, recipes.AnyHold) error) error {
			h, err := w.acquire(ctx)
			if err != nil {
				return err
			}
			return errors.Join(fn(h.Context(), h), h.Close())
		}
		return w
	}
	m, err := say(a.w.words, recipes.NewInterProcessMultiLock)(locks...)
	if err != nil {
		a.w.t.Fatal(err)
	}
	w.acquire, w.try = as(a, m.Acquire), as(a, m.TryAcquire)
	w.do, w.tryDo = does(a, m.Do), does(a, m.TryDo)
	if again && !a.w.noReentry {
		w.within = w.acquire
	}
	return w
}
