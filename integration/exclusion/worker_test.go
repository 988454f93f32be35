package exclusion_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
)

// task is what a worker process is told.
type task struct {
	Worker   int
	Routines int
	Sessions int // clients that the routines share
	Servers  string
	Lock     string
	Socket   string // of the witness
	Timeout  time.Duration
}

// outcome is what a worker process tells at its end.
type outcome struct {
	Acquired   int            // holds
	GaveUp     int            // waits
	Lost       int            // holds that were over before they were released
	Long       int            // holds that may have lasted long enough to watch their own node
	Errors     map[string]int // expected in an outage, by what they match
	Unexpected []string
	Leaked     int // goroutines left after Close
}

// worker is the process's state.
type worker struct {
	task
	mu  sync.Mutex // guards out
	out outcome
}

// run works until standard input ends, which the end of the parent does too.
func run(ctx context.Context, tk task) outcome {
	w := &worker{task: tk, out: outcome{Errors: map[string]int{}}}
	before := runtime.NumGoroutine()
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
		close(ended)
	}()
	w.clients(ctx)
	<-ended
	w.out.Leaked = max(0, settled(before)-before)
	return w.out
}

// settled returns the number of goroutines, once it is at most want or two
// seconds have passed.
func settled(want int) int {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range 100 {
		if runtime.NumGoroutine() <= want {
			break
		}
		<-tick.C
	}
	return runtime.NumGoroutine()
}

// clients connects, lets the routines work until ctx ends, and closes.
func (w *worker) clients(ctx context.Context) {
	locks := make([]*recipes.InterProcessMutex, w.Sessions)
	for i := range locks {
		c, err := client.Connect(ctx, w.Servers,
			client.WithSessionTimeout(w.Timeout),
			client.WithConnectTimeout(30*time.Second),
			client.WithLogger(slog.New(slog.DiscardHandler)))
		if err != nil {
			w.unexpected("connect", err)
			return
		}
		defer func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
			defer cancel()
			if err := c.CloseContext(ctx); err != nil {
				w.unexpected("close", err)
			}
		}()
		if locks[i], err = recipes.NewInterProcessMutex(c, w.Lock); err != nil {
			w.unexpected("lock", err)
			return
		}
	}
	var wg sync.WaitGroup
	for i := range w.Routines {
		wg.Go(func() { w.routine(ctx, i, locks[i%len(locks)]) })
	}
	wg.Wait()
}

// routine takes the lock again and again.
func (w *worker) routine(ctx context.Context, id int, lock *recipes.InterProcessMutex) {
	l, err := dialWitness(w.Socket)
	if err != nil {
		w.unexpected("witness", err)
		return
	}
	defer func() { _ = l.conn.Close() }()
	for ctx.Err() == nil {
		hold, err := w.acquire(ctx, lock)
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return
		case errors.Is(err, errImpatient):
			continue
		default:
			w.failed("acquire", err)
			continue
		}
		began := time.Now()
		err = w.hold(hold, id, l)
		if e := hold.Close(); e != nil {
			w.failed("release", e)
		}
		w.count(hold, time.Since(began))
		if err != nil {
			w.unexpected("witness", err)
			return
		}
	}
}

var errImpatient = errors.New("gave up waiting")

// acquire waits for the lock. One time in eight it may give up, so that the
// waiter behind it is woken without being the first.
func (w *worker) acquire(ctx context.Context, lock *recipes.InterProcessMutex) (*recipes.Hold, error) {
	if rand.N(8) > 0 {
		return lock.Acquire(ctx)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, rand.N(300*time.Millisecond), errImpatient)
	defer cancel()
	hold, err := lock.Acquire(ctx)
	if errors.Is(err, errImpatient) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.out.GaveUp++
	}
	return hold, err
}

// hold is the time under the lock, as the witness sees it. Before every report
// the hold is asked whether it is one.
func (w *worker) hold(hold *recipes.Hold, id int, l *line) error {
	r := report{Worker: w.Worker, Routine: id, Token: hold.FencingToken(), Sequence: sequence(hold.Path()), Node: hold.Path()}
	if w.lost(hold) {
		return nil
	}
	r.Kind, r.Believes = opened, true
	v, err := l.tell(r)
	if err != nil {
		return err
	}
	if !v.Accepted {
		r.Kind, r.Believes = shunned, !w.lost(hold)
		_, err = l.tell(r)
		return err
	}
	if v.Spin == 0 {
		<-time.After(rand.N(2 * time.Millisecond))
	}
	for began := time.Now(); time.Since(began) < v.Spin; {
		// A process that is stopped here goes on before any timer can.
	}
	r.Kind, r.Believes = closed, !w.lost(hold)
	if _, err = l.tell(r); err != nil || r.Believes {
		return err
	}
	r.Kind = late // what a holder that does not look would do now
	_, err = l.tell(r)
	return err
}

// lost asks the hold, which must give the reason that it promises.
func (w *worker) lost(hold *recipes.Hold) bool {
	err := hold.Err()
	reason := errors.Is(err, client.ErrSessionLost) || errors.Is(err, client.ErrLeaseExpired)
	if err != nil && (!errors.Is(err, recipes.ErrLost) || !reason) {
		w.unexpected("hold", err)
	}
	return err != nil
}

// watchAfter is a little less than the age at which a hold watches its own
// node.
const watchAfter = 18 * time.Millisecond

func (w *worker) count(hold *recipes.Hold, took time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.out.Acquired++
	if errors.Is(hold.Err(), recipes.ErrLost) {
		w.out.Lost++
	}
	if took > watchAfter {
		w.out.Long++
	}
}

// failed sorts an error by what an outage may bring.
func (w *worker) failed(op string, err error) {
	for _, known := range []error{client.ErrSessionLost, client.ErrLeaseExpired, context.DeadlineExceeded} {
		if errors.Is(err, known) {
			w.mu.Lock()
			w.out.Errors[op+": "+known.Error()]++
			w.mu.Unlock()
			return
		}
	}
	w.unexpected(op, err)
}

func (w *worker) unexpected(op string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.out.Unexpected = append(w.out.Unexpected, fmt.Sprintf("worker %d: %s: %v", w.Worker, op, err))
}

// sequence is the number at the end of a node's name.
func sequence(node string) int64 {
	_, text, _ := strings.Cut(path.Base(node), "-lock-")
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return -1
	}
	return n
}
