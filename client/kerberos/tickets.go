package kerberos

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// tickets keeps a ticket for each server, and fetches the next one in time.
type tickets struct {
	fetch func(spn string) (*ticket, error)

	mu     sync.Mutex // guards the rest; never held across I/O
	held   map[string]*slot
	closed bool
}

// slot is what there is for one server.
type slot struct {
	ticket *ticket
	under  *fetching   // nil unless a fetch is under way
	timer  *time.Timer // fetches the next one
}

// fetching is one fetch. It is done when the channel is closed.
type fetching struct {
	done chan struct{}
	err  error
}

var errClosed = errors.New("the mechanism was closed")

func newTickets(fetch func(string) (*ticket, error)) *tickets {
	return &tickets{fetch: fetch, held: map[string]*slot{}}
}

// get returns a ticket that is good, or waits for one.
func (t *tickets) get(ctx context.Context, spn string) (*ticket, error) {
	for first := true; ; first = false {
		t.mu.Lock()
		if t.closed {
			t.mu.Unlock()
			return nil, errClosed
		}
		s := t.slot(spn)
		if got := s.ticket; got != nil && time.Now().Before(got.to) {
			t.mu.Unlock()
			return got, nil
		}
		f := s.under
		if f == nil && !first {
			t.mu.Unlock()
			return nil, errors.New("the ticket had ended when it came")
		}
		if f == nil {
			f = t.begin(spn, s)
		}
		t.mu.Unlock()
		select {
		case <-f.done:
			if f.err != nil {
				return nil, f.err
			}
		case <-ctx.Done():
			return nil, fmt.Errorf("no KDC has answered yet: %w", context.Cause(ctx))
		}
	}
}

func (t *tickets) slot(spn string) *slot {
	s := t.held[spn]
	if s == nil {
		s = &slot{}
		t.held[spn] = s
	}
	return s
}

// begin starts a fetch, on a goroutine that ends with it. The caller holds t.mu.
func (t *tickets) begin(spn string, s *slot) *fetching {
	f := &fetching{done: make(chan struct{})}
	s.under = f
	go func() {
		got, err := t.fetched(spn)
		t.mu.Lock()
		defer t.mu.Unlock()
		f.err, s.under = err, nil
		close(f.done)
		if t.closed {
			return
		}
		if err == nil {
			s.ticket = got
		}
		t.plan(spn, s)
	}()
	return f
}

// fetched is fetch. gokrb5 panics where Go's cryptography forbids what Kerberos needs.
func (t *tickets) fetched(spn string) (got *ticket, err error) {
	defer func() {
		if r := recover(); r != nil {
			got, err = nil, fmt.Errorf("no ticket: %v", r)
		}
	}()
	return t.fetch(spn)
}

// leastPause is between two fetches for one server that nobody waits for.
const leastPause = time.Minute

// plan sets the timer for the next ticket: at five sixths of the life of this one, and then
// again and again until it has ended. The caller holds t.mu.
func (t *tickets) plan(spn string, s *slot) {
	if s.ticket == nil {
		return
	}
	life, left := s.ticket.to.Sub(s.ticket.from), time.Until(s.ticket.to)
	if left <= 0 {
		return // the next login fetches one
	}
	pause := max(left-life/6, min(leastPause, life/24))
	if s.timer != nil {
		s.timer.Stop()
	}
	s.timer = time.AfterFunc(pause, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if !t.closed && s.under == nil {
			t.begin(spn, s)
		}
	})
}

// close forgets all tickets.
func (t *tickets) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for _, s := range t.held {
		if s.timer != nil {
			s.timer.Stop()
		}
	}
	t.held = map[string]*slot{}
}
