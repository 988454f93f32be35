package ui

import (
	"context"
	"sync"
	"time"
)

// At most mostRequests leave in any second: burst at once, and then rate a second.
const (
	mostRequests = 50
	burst        = 10
	rate         = mostRequests - burst
)

// limiter bounds the requests to the servers. It is safe for concurrent use.
type limiter struct {
	mu   sync.Mutex
	left float64
	at   time.Time // when left was true
}

func newLimiter(now time.Time) *limiter { return &limiter{left: burst, at: now} }

// take takes n requests, at most burst, at the time now. If they are too many it takes none
// and returns how long to wait.
func (l *limiter) take(n int, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left = min(burst, l.left+rate*max(0, now.Sub(l.at).Seconds()))
	l.at = now
	if l.left >= float64(n) {
		l.left -= float64(n)
		return 0
	}
	return time.Duration((float64(n) - l.left) / rate * float64(time.Second))
}

// wait takes n requests as soon as it may.
func (l *limiter) wait(ctx context.Context, n int) error {
	for {
		d := l.take(n, time.Now())
		if d == 0 {
			return ctx.Err()
		}
		t := time.NewTimer(d)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		}
	}
}
