// Package runonce runs a function once for callers that each have a context.
package runonce

import (
	"context"
	"sync"
)

// Once is a [sync.Once] with a result. A later call waits for the result no longer
// than its context. The zero value has not run.
type Once struct {
	mu    sync.Mutex // guards the rest; never held while the function runs
	begun bool
	over  bool // err is set
	err   error
	done  chan struct{} // closed when err is set; nil until a call waits for that
}

// New returns a Once that has not run.
func New() *Once { return &Once{} }

// Do runs f if it is the first call, whether ctx has ended or not. A later call waits
// for the result of the first. It reports false if ctx ends before that. A nil ctx
// panics before f has begun: a later call can still run it.
func (o *Once) Do(ctx context.Context, f func() error) (err error, done bool) {
	ended := ctx.Done()
	if o.Begin() {
		err := f()
		o.End(err)
		return err, true
	}
	over := o.wait()
	select {
	case <-over:
	case <-ended:
	}
	select {
	case <-over: // also when ctx has ended as well
		return o.err, true
	default:
		return nil, false
	}
}

// Begin reports whether it is the first call of Begin or Do. The caller then does itself
// what is to be done once, and calls End.
func (o *Once) Begin() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	first := !o.begun
	o.begun = true
	return first
}

// End is called once, with the result, by the first caller of Begin.
func (o *Once) End(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.over, o.err = true, err
	if o.done != nil {
		close(o.done)
	}
}

// wait returns a channel that is closed when there is a result.
func (o *Once) wait() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.done == nil {
		o.done = make(chan struct{})
		if o.over {
			close(o.done)
		}
	}
	return o.done
}

// Begun reports whether Do or Begin was called.
func (o *Once) Begun() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.begun
}
