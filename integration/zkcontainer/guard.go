package zkcontainer

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// watch removes what tests have made when a signal ends the process before they can. The
// reaper of testcontainers notices every end of the process, but it can be switched off, and it
// starts with the first container.
type watch struct {
	mu    sync.Mutex
	runs  map[*guard]bool
	began bool
}

// guard stands for one start.
type guard struct {
	cancel context.CancelFunc
	ready  chan struct{} // closed when the start has returned
	e      *Ensemble     // read after ready
}

var signals = &watch{runs: map[*guard]bool{}} //nolint:gochecknoglobals // signals are the process's

// guarded returns the context for a start. Its guard is told of the result and of the end.
func guarded(ctx context.Context) (context.Context, *guard) {
	ctx, cancel := context.WithCancel(ctx)
	g := &guard{cancel: cancel, ready: make(chan struct{})}
	signals.add(ctx, g)
	return ctx, g
}

const cleanupLimit = time.Minute

func (g *guard) made(e *Ensemble) {
	g.e = e
	close(g.ready)
}

func (g *guard) done() {
	g.cancel()
	signals.mu.Lock()
	defer signals.mu.Unlock()
	delete(signals.runs, g)
}

// add begins to listen for signals with the first guard of the process.
func (w *watch) add(ctx context.Context, g *guard) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.runs[g] = true
	if w.began {
		return
	}
	w.began = true
	got := make(chan os.Signal, 1)
	signal.Notify(got, os.Interrupt, syscall.SIGTERM)
	go w.wait(context.WithoutCancel(ctx), got)
}

// wait clears away at the first signal and then lets the signal do what it does. A second
// one does it at once.
func (w *watch) wait(ctx context.Context, got chan os.Signal) {
	s := <-got
	signal.Stop(got)
	w.clear(ctx)
	if self, err := os.FindProcess(os.Getpid()); err == nil && self.Signal(s) == nil {
		return
	}
	os.Exit(2) // Windows has no signals to send
}

// clear ends all starts and removes what they made. It keeps new ones from beginning.
func (w *watch) clear(ctx context.Context) {
	w.mu.Lock() // until the process has ended
	ctx, cancel := context.WithTimeout(ctx, cleanupLimit)
	defer cancel()
	var group sync.WaitGroup
	for g := range w.runs {
		group.Go(func() {
			g.cancel()
			<-g.ready
			if g.e != nil {
				_ = g.e.run.sweep(ctx)
			}
		})
	}
	group.Wait()
}
