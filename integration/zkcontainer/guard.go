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
	var heard []os.Signal
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		if !signal.Ignored(s) { // as in the background of a shell's script; it does not end the process
			heard = append(heard, s)
		}
	}
	if len(heard) == 0 { // Notify would take none for all
		return
	}
	got := make(chan os.Signal, 1)
	signal.Notify(got, heard...)
	go w.wait(context.WithoutCancel(ctx), got, heard)
}

// endLimit is how long a process may take to end by a signal that it does not handle.
const endLimit = time.Second

// wait clears away at a signal and then lets the signal do what it does. A second one does it at
// once. New starts have to wait. If the process still is there afterwards, it handles the signal
// itself, and goes on.
func (w *watch) wait(ctx context.Context, got chan os.Signal, heard []os.Signal) {
	for s := range got {
		signal.Stop(got)
		w.mu.Lock()
		w.clear(ctx)
		self, err := os.FindProcess(os.Getpid())
		if err != nil || self.Signal(s) != nil {
			os.Exit(2) // Windows has no signals to send
		}
		<-time.After(endLimit)
		signal.Notify(got, heard...)
		w.mu.Unlock()
	}
}

// clear ends all starts and removes what they made.
func (w *watch) clear(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, cleanupLimit)
	defer cancel()
	var group sync.WaitGroup
	for g := range w.runs {
		group.Go(func() {
			g.cancel()
			select {
			case <-g.ready:
			case <-ctx.Done():
				return
			}
			if g.e != nil {
				_ = g.e.run.sweep(ctx)
			}
		})
	}
	group.Wait()
}
