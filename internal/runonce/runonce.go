// Package runonce runs a function once for callers that each have a context.
package runonce

import (
	"context"
	"sync/atomic"
)

// Once is a [sync.Once] with a result that does not hold later callers past
// their contexts.
type Once struct {
	begun atomic.Bool
	done  chan struct{} // closed when err is set
	err   error
}

// New returns a Once that has not run.
func New() *Once { return &Once{done: make(chan struct{})} }

// Do runs f if it is the first call, without regard to ctx, and otherwise
// waits for the first call's result. It reports false if ctx ends before that.
// A nil ctx panics before f has begun: a later call can still run it.
func (o *Once) Do(ctx context.Context, f func() error) (err error, done bool) {
	ended := ctx.Done()
	if o.begun.CompareAndSwap(false, true) {
		o.err = f()
		close(o.done)
	}
	select {
	case <-o.done:
	case <-ended:
	}
	select {
	case <-o.done: // also when ctx has ended as well
		return o.err, true
	default:
		return nil, false
	}
}
