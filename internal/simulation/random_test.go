package simulation_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"runtime"
	"sync"
)

// shared is the randomness of one client. Several of its goroutines draw at
// one instant, in any order, so each draws from a generator of its own: that
// of an actor depends on its name, that of a goroutine in the background on
// who started it.
type shared struct {
	seed uint64
	name string

	mu    sync.Mutex // guards the rest
	users map[string]*user
}

// user is a goroutine that draws, or a place in the code that starts some.
type user struct {
	name     string
	r        *rand.Rand
	children int
}

func newShared(seed uint64, name string) *shared {
	return &shared{seed: seed, name: name, users: map[string]*user{}}
}

var (
	ownID   = regexp.MustCompile(`^goroutine (\d+) `)
	starter = regexp.MustCompile(`(?m)^created by (\S+) in goroutine (\d+)`)
)

// who returns the caller's goroutine, and where and by whom it was started.
func who() (id, place, parent string) {
	buf := make([]byte, 16<<10)
	buf = buf[:runtime.Stack(buf, false)]
	if m := ownID.FindSubmatch(buf); m != nil {
		id = string(m[1])
	}
	if m := starter.FindSubmatch(buf); m != nil {
		place, parent = string(m[1]), string(m[2])
	}
	return id, place, parent
}

// user makes one. The mutex is held.
func (s *shared) user(key, name string) *user {
	u := &user{name: name, r: generator(s.seed, s.name+"/"+name)}
	s.users[key] = u
	return u
}

// register gives the caller's goroutine the generator of an actor.
func (s *shared) register(actor string) {
	id, _, _ := who()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.user(id, actor)
}

// float64 is what the client draws.
func (s *shared) float64() float64 {
	id, place, parent := who()
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.users[id]
	if u == nil {
		by := s.users[parent]
		if by == nil {
			if by = s.users[place]; by == nil {
				by = s.user(place, place)
			}
		}
		by.children++
		u = s.user(id, fmt.Sprintf("%s/%s#%d", by.name, place, by.children))
	}
	return u.r.Float64()
}
