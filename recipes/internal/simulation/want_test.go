package simulation_test

import (
	"context"
	"errors"
	"slices"
	"strings"

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
func as[H recipes.AnyHold](f func(context.Context) (H, error)) call {
	return func(ctx context.Context) (recipes.AnyHold, error) {
		h, err := f(ctx)
		if err != nil {
			return nil, err
		}
		return h, nil
	}
}

// doing is a Do.
type doing func(ctx context.Context, fn func(ctx context.Context, h recipes.AnyHold) error) error

// does forgets the type of what a Do hands its function.
func does[H recipes.AnyHold](do func(context.Context, func(context.Context, H) error) error) doing {
	return func(ctx context.Context, fn func(context.Context, recipes.AnyHold) error) error {
		return do(ctx, func(ctx context.Context, h H) error { return fn(ctx, h) })
	}
}

// want is what an actor calls for: a share of a lock, or of several.
type want struct {
	parts        []part
	acquire, try call
	do           doing
	within       call  // what the holder asks for; nil for nothing
	more         int   // permits that within asks for
	hopeless     bool  // that within can never be granted
	asks         bool  // the servers, before within is refused
	read         *want // what a writer turns into
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
	if errors.Is(err, errWork) || errors.As(err, &of) && of.Path != l.path && of.Path != w.lock() {
		return nil
	}
	return err
}

// handle is one actor's way to a lock: one of these is set.
type handle struct {
	l         *resource
	mutex     *recipes.InterProcessMutex
	rw        *recipes.InterProcessReadWriteLock
	semaphore *recipes.InterProcessSemaphoreV2
	alone     *recipes.InterProcessSemaphoreMutex
	election  *recipes.Election
}

// values are the semaphores of a client, by path. In half of the schedules all of its
// actors share them.
type values[S any] map[string]S

func (v values[S]) of(a *actor, l *resource, build func(recipes.SemaphoreOption) (S, error)) (s S, err error) {
	if generator(a.w.seed, "shared").IntN(2) == 0 {
		return build(recipes.WithNodeData([]byte(a.name)))
	}
	s, ok := v[l.path]
	if !ok {
		s, err = build(recipes.WithNodeData([]byte(a.n.name)))
		v[l.path] = s
	}
	return s, err
}

func (a *actor) handle(l *resource) (h handle, err error) {
	h.l = l
	c, data := a.n.c.Load(), recipes.WithNodeData([]byte(a.name))
	most := recipes.WithMaxContenders(a.w.most)
	switch l.kind {
	case readWrite:
		h.rw, err = recipes.NewInterProcessReadWriteLock(c, l.path, data, most)
	case semaphores:
		h.semaphore, err = a.n.semaphores.of(a, l, func(data recipes.SemaphoreOption) (*recipes.InterProcessSemaphoreV2, error) {
			return l.semaphore(c, data)
		})
	case semaphoreMutexes:
		h.alone, err = a.n.alone.of(a, l, func(data recipes.SemaphoreOption) (*recipes.InterProcessSemaphoreMutex, error) {
			return recipes.NewInterProcessSemaphoreMutex(c, l.path, data)
		})
	case latches, selectors:
		h.election, err = a.election(l)
	default:
		h.mutex, err = recipes.NewInterProcessMutex(c, l.path, data, most)
	}
	return h, err
}

// choose draws what to call for. Of a mutex there is but one thing.
func (a *actor) choose(lock int) *want {
	if a.w.game.together {
		if some := a.r.Perm(len(a.locks))[:1+a.r.IntN(len(a.locks))]; len(some) > 1 {
			slices.Sort(some) // one order everywhere
			return a.several(some)
		}
	}
	w, _ := a.single(lock)
	return w
}

// single wants one lock, and returns it for a multi-lock.
func (a *actor) single(lock int) (*want, recipes.Lock) {
	h := a.locks[lock]
	w := &want{parts: []part{{h.l, h.l.of}}}
	switch {
	case h.rw != nil:
		return a.half(h)
	case h.semaphore != nil:
		s, n := h.semaphore, 1+a.r.IntN(h.l.of)
		permits := func(f func(context.Context, int) (*recipes.Lease, error), n int) call {
			return as(func(ctx context.Context) (*recipes.Lease, error) { return f(ctx, n) })
		}
		w.parts[0].units = n
		w.acquire, w.try = permits(s.Acquire, n), permits(s.TryAcquire, n)
		w.do = does(func(ctx context.Context, fn func(context.Context, *recipes.Lease) error) error {
			return s.Do(ctx, n, fn)
		})
		w.more = h.l.of - n + 1
		w.within, w.hopeless, w.asks = permits(s.Acquire, w.more), true, true
		return w, s.Permits(n)
	case h.alone != nil:
		w.acquire, w.try, w.do = as(h.alone.Acquire), as(h.alone.TryAcquire), does(h.alone.Do)
		w.within, w.hopeless, w.asks = w.acquire, true, true
		return w, h.alone
	case h.election != nil:
		e := h.election
		w.acquire, w.try, w.do = as(e.Campaign), as(e.TryCampaign), does(e.Do)
		w.within, w.hopeless = w.acquire, true
		return w, nil
	default:
		w.acquire, w.try, w.do = as(h.mutex.Acquire), as(h.mutex.TryAcquire), does(h.mutex.Do)
		w.within = w.acquire
		return w, h.mutex
	}
}

// half wants to write, or twice as often to read.
func (a *actor) half(h handle) (*want, recipes.Lock) {
	r, w := h.rw.ReadLock(), h.rw.WriteLock()
	read := &want{
		parts:   []part{{h.l, 1}},
		acquire: as(r.Acquire), try: as(r.TryAcquire), do: does(r.Do), within: as(r.Acquire),
	}
	switch a.r.IntN(6) {
	case 0, 1:
		return &want{
			parts:   []part{{h.l, h.l.of}},
			acquire: as(w.Acquire), try: as(w.TryAcquire), do: does(w.Do), within: as(w.Acquire), read: read,
		}, w
	case 2:
		read.within, read.hopeless = as(w.Acquire), true
	}
	return read, r
}

// several wants some locks at once. With permits it cannot be re-entered.
func (a *actor) several(some []int) *want {
	w := &want{}
	var locks []recipes.Lock
	var acquires, tries []call
	again := true
	for _, i := range some {
		one, lock := a.single(i)
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
	m, err := recipes.NewInterProcessMultiLock(locks...)
	if err != nil {
		a.w.t.Fatal(err)
	}
	w.acquire, w.try, w.do = as(m.Acquire), as(m.TryAcquire), does(m.Do)
	if again {
		w.within = w.acquire
	}
	return w
}
