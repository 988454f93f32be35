package simulation_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/docent-go/docent/client"
)

// lags are the delays of a client's actors, see lagging.
var lags = [...]time.Duration{211, 307, 401, 503, 601, 701, 809, 907, 1009, 1103, 1201, 1301}

// lagging is the context of one actor. The library asks it for its end before
// most requests. There each actor falls behind by its own few nanoseconds. So
// actors that the same event wakes go on one after the other.
type lagging struct {
	context.Context
	lag time.Duration
}

// Err is the end of the context, looked up with a delay.
func (c lagging) Err() error {
	if c.Context.Err() == nil {
		time.Sleep(c.lag)
	}
	return c.Context.Err()
}

// lateness lets an actor come late to one answer in eight, as on a busy machine. The answers that
// came behind it have been acted upon by then.
type lateness struct {
	mu sync.Mutex // guards r; some calls make requests in several goroutines
	r  *rand.Rand
}

// ofLateness is the key of the *lateness in the contexts of an actor that comes late.
type ofLateness struct{}

// draw returns how late the next answer finds the actor. It is no round number, since ticks are.
func (l *lateness) draw() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.r.IntN(8) > 0 {
		return 0
	}
	return time.Duration(1+l.r.IntN(12))*time.Millisecond + 19
}

// comesLate is the hook that holds actors up. An actor does not outlive its context by that.
func comesLate(ctx context.Context, _ client.OperationInfo) (context.Context, func(client.OperationResult)) {
	l, late := ctx.Value(ofLateness{}).(*lateness)
	if !late {
		return ctx, nil
	}
	after := l.draw()
	if after == 0 {
		return ctx, nil
	}
	return ctx, func(client.OperationResult) {
		select {
		case <-time.After(after):
		case <-ctx.Done():
		}
	}
}
