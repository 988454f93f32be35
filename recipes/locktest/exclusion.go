package locktest

import (
	"fmt"
	"sync"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
)

// exclusion lets clients of both sides contend, with several goroutines each:
// what is out never exceeds the capacity, and every contender gets a turn.
func exclusion(s *suite) {
	const clients, workers, rounds = 3, 2, 3
	path := s.Path()
	var (
		mu    sync.Mutex
		out   int
		token int64
		all   sync.WaitGroup
	)
	work := func(l Lock, weight int) {
		for range rounds {
			h, err := l.Acquire(s.ctx)
			if err != nil {
				s.Error(err)
				return
			}
			mu.Lock()
			if out += weight; out > s.kind.Capacity {
				s.Errorf("%d of %d are out", out, s.kind.Capacity)
			}
			if weight == s.kind.Capacity {
				if h.FencingToken() <= token {
					s.Errorf("token %d after %d", h.FencingToken(), token)
				}
				token = h.FencingToken()
			}
			mu.Unlock()
			<-time.After(s.RoundTrip()) // the work
			mu.Lock()
			out -= weight
			mu.Unlock()
			if err := h.Release(s.ctx); err != nil {
				s.Error(err)
			}
		}
	}
	var last *client.Client
	for i := range clients {
		c := s.Connect(fmt.Sprintf("c%d", i))
		for range workers {
			all.Go(func() { work(s.lock(c, path), s.kind.Weight) })
		}
		all.Go(func() { work(s.rival(c, path), s.kind.RivalWeight) })
		last = c
	}
	all.Wait()
	s.nothingLeft(path, s.lock(last, path))
}

// shares takes as many holds as there is room for, side by side, and not one
// more.
func shares(s *suite) {
	path := s.Path()
	room := min(s.kind.Capacity/s.kind.Weight, 4)
	var holds []recipes.AnyHold
	for i := range room {
		holds = append(holds, s.held(s.lock(s.Connect(fmt.Sprintf("c%d", i)), path)))
	}
	c := s.Connect("last")
	last := s.lock(c, path)
	if s.kind.Capacity/s.kind.Weight == room {
		waits := acquire(s.ctx, last)
		s.waiting(last, 1)
		for _, h := range holds {
			s.check(h.Err())
		}
		s.check(holds[0].Release(s.ctx))
		holds[0] = s.granted(waits)
	}
	for _, h := range holds {
		s.check(h.Err())
		s.check(h.Release(s.ctx))
	}
	s.nothingLeft(path, last)
}

// inOrder puts waiters in line one after the other. They get the lock in that
// order; where several fit, all of them do.
func inOrder(s *suite) {
	const n = 6
	path := s.Path()
	blocker := s.Connect("blocker")
	h := s.held(s.rival(blocker, path))
	var clients [3]*client.Client
	for i := range clients {
		clients[i] = s.Connect(fmt.Sprintf("c%d", i))
	}
	var (
		mu    sync.Mutex
		order []int
		all   sync.WaitGroup
	)
	for i := range n {
		l := s.lock(clients[i%len(clients)], path)
		all.Go(func() {
			h, err := l.Acquire(s.ctx)
			if err != nil {
				s.Error(err)
				return
			}
			mu.Lock()
			order = append(order, i)
			mu.Unlock()
			if err := h.Release(s.ctx); err != nil {
				s.Error(err)
			}
		})
		s.waiting(l, i+1)
	}
	s.check(h.Release(s.ctx))
	all.Wait()
	if len(order) != n {
		s.Fatalf("order %v", order)
	}
	for i, who := range order {
		if s.kind.exclusive() && who != i {
			s.Fatalf("order %v", order)
		}
	}
	s.nothingLeft(path, s.rival(blocker, path))
}
