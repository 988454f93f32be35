package simulation_test

import (
	"context"
	"time"
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
