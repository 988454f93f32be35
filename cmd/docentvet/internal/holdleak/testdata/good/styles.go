package good

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"sync"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
)

// A deferred function that stands above the acquire.
func above(ctx context.Context, lock *recipes.InterProcessMutex) (err error) {
	var hold *recipes.Hold
	defer func() {
		if hold != nil {
			err = errors.Join(err, hold.Release(ctx))
		}
	}()
	hold, err = lock.Acquire(ctx)
	if err != nil {
		return err
	}
	return sell(hold.FencingToken())
}

func cleanup(ctx context.Context, lock *recipes.InterProcessMutex) error {
	var hold *recipes.Hold
	release := func() { hold.Close() }
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	return sell(hold.FencingToken())
}

func address(ctx context.Context, lock *recipes.InterProcessMutex, keep func(**recipes.Hold)) (err error) {
	var hold *recipes.Hold
	keep(&hold)
	hold, err = lock.Acquire(ctx)
	return err
}

func dropsError(ctx context.Context, lock *recipes.InterProcessMutex) error {
	hold, _ := lock.TryAcquire(ctx)
	if hold == nil {
		return recipes.ErrBusy
	}
	return hold.Close()
}

func onlyIf(ctx context.Context, lock *recipes.InterProcessMutex) error {
	hold, err := lock.TryAcquire(ctx)
	if err == nil {
		err = sell(hold.FencingToken())
	}
	if hold != nil {
		err = errors.Join(err, hold.Release(ctx))
	}
	return err
}

type job struct {
	err  error
	busy bool
	hold *recipes.Hold
}

func (j *job) field(ctx context.Context, lock *recipes.InterProcessMutex) {
	var hold *recipes.Hold
	hold, j.err = lock.Acquire(ctx)
	if j.err != nil {
		return
	}
	defer hold.Close()
	j.err = sell(hold.FencingToken())
}

func translate(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("job: %w", err)
}

func translated(ctx context.Context, lock *recipes.InterProcessMutex) error {
	hold, err := lock.Acquire(ctx)
	if e := translate(err); e != nil {
		return e
	}
	return hold.Close()
}

func asserted(ctx context.Context, lock *recipes.InterProcessMutex) error {
	hold, err := lock.TryAcquire(ctx)
	if busy, ok := err.(*recipes.BusyError); ok {
		log.Print(busy.Holder)
		return nil
	}
	switch e := err.(type) {
	case nil:
		return hold.Close()
	case *recipes.LockError:
		return e.Unwrap()
	default:
		return err
	}
}

func asType(ctx context.Context, lock *recipes.InterProcessMutex) error {
	hold, err := lock.TryAcquire(ctx)
	switch err.(type) {
	case *recipes.BusyError:
		return nil
	}
	if err != nil {
		return err
	}
	defer hold.Close()
	return nil
}

type code int

const (
	fine code = iota
	busyCode
)

func codeOf(err error) code {
	if err != nil {
		return busyCode
	}
	return fine
}

func coded(ctx context.Context, lock *recipes.InterProcessMutex) error {
	hold, err := lock.TryAcquire(ctx)
	switch codeOf(err) {
	case busyCode:
		return err
	case fine:
	}
	return hold.Close()
}

func classified(ctx context.Context, lock *recipes.InterProcessMutex) error {
	hold, err := lock.TryAcquire(ctx)
	if codeOf(err) != fine {
		return err
	}
	return hold.Close()
}

func handle(w io.Writer, err error) bool {
	if err != nil {
		fmt.Fprintln(w, err)
	}
	return err == nil
}

func handled(ctx context.Context, w io.Writer, lock *recipes.InterProcessMutex) {
	hold, err := lock.TryAcquire(ctx)
	if !handle(w, err) {
		return
	}
	defer hold.Close()
}

func yes(ctx context.Context, lock *recipes.InterProcessMutex) {
	hold, err := lock.TryAcquire(ctx)
	got := err == nil
	if !got {
		return
	}
	hold.Close()
}

func compareBool(ctx context.Context, lock *recipes.InterProcessMutex) error {
	hold, err := lock.TryAcquire(ctx)
	if errors.Is(err, recipes.ErrBusy) == true {
		return nil
	}
	if err != nil {
		return err
	}
	return hold.Close()
}

func text(ctx context.Context, lock *recipes.InterProcessMutex) error {
	hold, err := lock.Acquire(ctx)
	if err != nil && err.Error() == "busy" {
		return nil
	} else if err != nil {
		return err
	}
	return hold.Close()
}

func sent(ctx context.Context, lock *recipes.InterProcessMutex, holds chan<- *recipes.Hold) error {
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	select {
	case holds <- hold:
		return nil
	case <-ctx.Done():
		return hold.Close()
	}
}

func appended(ctx context.Context, locks []*recipes.InterProcessMutex) (holds []*recipes.Hold, err error) {
	defer func() {
		if err != nil {
			for _, h := range holds {
				h.Close()
			}
		}
	}()
	for _, lock := range locks {
		hold, err := lock.Acquire(ctx)
		if err != nil {
			return nil, err
		}
		holds = append(holds, hold)
	}
	return holds, nil
}

func mapped(ctx context.Context, lock *recipes.InterProcessMutex, held map[string]*recipes.Hold) error {
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	held[hold.LockPath()] = hold
	return nil
}

func literal(ctx context.Context, lock *recipes.InterProcessMutex) (*job, error) {
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	return &job{hold: hold}, nil
}

func stopper(ctx context.Context, lock *recipes.InterProcessMutex) (func() error, error) {
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	return hold.Close, nil
}

func stops(ctx context.Context, lock *recipes.InterProcessMutex) (context.Context, context.CancelFunc, error) {
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return nil, nil, err
	}
	return hold.Context(), func() { _ = hold.Release(context.WithoutCancel(ctx)) }, nil
}

func after(ctx context.Context, lock *recipes.InterProcessMutex) error {
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { hold.Close() })
	return nil
}

func once(ctx context.Context, lock *recipes.InterProcessMutex) error {
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	release := sync.OnceValue(hold.Close)
	defer release()
	return sell(hold.FencingToken())
}

func grouped(ctx context.Context, lock *recipes.InterProcessMutex, group interface{ Go(func() error) }) error {
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	group.Go(func() error {
		defer hold.Close()
		return sell(hold.FencingToken())
	})
	return nil
}

func retries(ctx context.Context, lock *recipes.InterProcessMutex) error {
	hold, err := lock.TryAcquire(ctx)
	for tries := 0; errors.Is(err, recipes.ErrBusy) && tries < 3; tries++ {
		time.Sleep(time.Second)
		hold, err = lock.TryAcquire(ctx)
	}
	if err != nil {
		return err
	}
	defer hold.Close()
	return sell(hold.FencingToken())
}

func labelled(ctx context.Context, lock *recipes.InterProcessMutex, ticks <-chan time.Time) error {
	var hold *recipes.Hold
wait:
	for {
		select {
		case <-ticks:
			var err error
			switch hold, err = lock.TryAcquire(ctx); {
			case errors.Is(err, recipes.ErrBusy):
				continue wait
			case err != nil:
				return err
			}
			break wait
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	defer hold.Close()
	return nil
}

func jump(ctx context.Context, lock *recipes.InterProcessMutex) error {
again:
	hold, err := lock.TryAcquire(ctx)
	if errors.Is(err, recipes.ErrBusy) {
		goto again
	}
	if err != nil {
		goto failed
	}
	return hold.Close()
failed:
	return err
}

func fallen(ctx context.Context, lock *recipes.InterProcessMutex, kind int) error {
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	switch kind {
	case 1:
		_ = sell(1)
		fallthrough
	case 2:
		return hold.Close()
	default:
		return hold.Release(ctx)
	}
}

func panics(ctx context.Context, lock *recipes.InterProcessMutex) {
	hold, err := lock.Acquire(ctx)
	if err != nil {
		panic(err)
	}
	if sell(hold.FencingToken()) != nil {
		panic("the hold ends with the process")
	}
	hold.Close()
}

func explicit(ctx context.Context, lock *recipes.InterProcessMutex) (hold *recipes.Hold, err error) {
	hold, err = lock.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	if err = sell(hold.FencingToken()); err != nil {
		hold.Close()
		return nil, err
	}
	return hold, nil
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func musts(ctx context.Context, lock *recipes.InterProcessMutex) {
	hold := must(lock.Acquire(ctx))
	defer hold.Close()
}

// under works with every kind of lock.
func under[H recipes.AnyHold](ctx context.Context, lock interface {
	Acquire(ctx context.Context) (H, error)
}, work func(context.Context) error) error {
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	defer hold.Close()
	return work(hold.Context())
}

// locker keeps what it has acquired, for its own Release.
type locker struct {
	lock *recipes.InterProcessMutex
	hold *recipes.Hold
}

func (l *locker) Acquire(ctx context.Context) (*recipes.Hold, error) {
	hold, err := l.lock.Acquire(ctx)
	l.hold = hold
	return hold, err
}

func (l *locker) Release(ctx context.Context) error { return l.hold.Release(ctx) }

func wraps(ctx context.Context, l *locker) error {
	hold, err := l.Acquire(ctx)
	if err != nil {
		return err
	}
	log.Print(hold.FencingToken())
	return l.Release(ctx)
}

func multi(ctx context.Context, m *recipes.InterProcessMultiLock) error {
	all, err := m.Acquire(ctx)
	if err != nil {
		return err
	}
	for _, hold := range all.Holds() {
		defer hold.Close()
	}
	return nil
}

func alias(ctx context.Context, latch *recipes.LeaderLatch) error {
	term, err := latch.Campaign(ctx)
	if err != nil {
		return err
	}
	hold := term.Hold
	defer hold.Close()
	return nil
}

func parens(ctx context.Context, lock *recipes.InterProcessMutex) error {
	hold, err := (lock.Acquire(ctx))
	if (err) != nil {
		return err
	}
	return (hold).Close()
}

func loops(ctx context.Context, c *client.Client, lock *recipes.InterProcessMutex, jobs <-chan int64) error {
	for job := range jobs {
		hold, err := lock.Acquire(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			continue
		}
		err = sell(job)
		if cerr := hold.Close(); cerr != nil && err == nil {
			err = cerr
		}
		if err != nil {
			break
		}
	}
	return nil
}

func received(ctx context.Context, lock *recipes.InterProcessMutex, next <-chan *recipes.Hold) error {
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
	case another := <-next:
		hold, another = another, hold
		another.Close()
	}
	select {
	case later := <-next:
		_ = later.Close()
	default:
	}
	return hold.Close()
}

func swapped(ctx context.Context, lock *recipes.InterProcessMutex, next <-chan *recipes.Hold) error {
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	first := hold
	defer first.Close()
	select {
	case hold = <-next:
	case <-ctx.Done():
	}
	return hold.Close()
}

func flagged(ctx context.Context, lock *recipes.InterProcessMutex) error {
	held := false
	hold, err := lock.TryAcquire(ctx)
	if err == nil {
		held = true
	} else if !errors.Is(err, recipes.ErrBusy) {
		return err
	}
	if !held {
		return nil
	}
	defer hold.Close()
	return sell(hold.FencingToken())
}

func broken(err error) bool { return err != nil }

func isFine(err error) bool { return err == nil }

func named2(ctx context.Context, lock *recipes.InterProcessMutex) error {
	hold, err := lock.TryAcquire(ctx)
	if broken(err) || !isFine(err) {
		return err
	}
	return hold.Close()
}

// The loop ends when the lock is had.
func polls(ctx context.Context, lock *recipes.InterProcessMutex) error {
	var hold *recipes.Hold
	for done := false; !done; {
		var err error
		switch hold, err = lock.TryAcquire(ctx); {
		case err == nil:
			done = true
		case !errors.Is(err, recipes.ErrBusy):
			return err
		}
	}
	return hold.Close()
}

// Hold is no lock's.
type Hold struct{}

func (*Hold) Err() error { return nil }

type pool struct{ hold *recipes.Hold }

func (*pool) Acquire(context.Context) (*Hold, error) { return nil, nil }

// Current gives the hold that the pool has.
func (p *pool) Current() (*recipes.Hold, error) { return p.hold, nil }

func pooled(ctx context.Context, p *pool) error {
	conn, err := p.Acquire(ctx)
	if err != nil {
		return err
	}
	hold, err := p.Current()
	if err != nil {
		return err
	}
	return errors.Join(conn.Err(), hold.Err())
}

func outer(ctx context.Context, lock *recipes.InterProcessMutex, retry func(func() error) error) error {
	var hold *recipes.Hold
	if err := retry(func() (err error) {
		hold, err = lock.TryAcquire(ctx)
		return err
	}); err != nil {
		return err
	}
	return hold.Close()
}
