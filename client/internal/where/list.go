package where

import (
	"errors"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"time"
)

// ErrLeaving is why the client gives up a connection to a server that is in no list
// any more.
var ErrLeaving = errors.New("it is not among the servers any more")

// Stagger draws the pause before the client gives up a connection. Many clients may
// have to do that at the same time.
func (s *Servers) Stagger() time.Duration {
	return time.Duration(s.cfg.Rand() * float64(s.Timeout()/3))
}

// Give replaces the servers of the connect string.
func (s *Servers) Give(list []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.given = list
	s.arrange()
	s.journal.Say(slog.LevelInfo, "zookeeper: servers set", "servers", slices.Clone(s.addrs))
}

// Track replaces the servers of the ensemble's configuration, and returns the former
// ones.
func (s *Servers) Track(list []string) (before []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, s.tracked = s.tracked, list
	s.arrange()
	s.journal.Say(slog.LevelInfo, "zookeeper: the ensemble's configuration has changed the servers", "servers", slices.Clone(s.addrs))
	return before
}

// arrange puts the servers into the order in which they are tried. The servers of the
// ensemble's configuration come first; among themselves they are shuffled, to spread
// clients over them. The caller holds s.mu, or no other goroutine knows s yet.
func (s *Servers) arrange() {
	s.next = 0
	s.addrs = s.named()
	shuffle(s.cfg.Rand, s.addrs[:len(s.tracked)])
	shuffle(s.cfg.Rand, s.addrs[len(s.tracked):])
	gone := func(addr string) bool { return !slices.Contains(s.addrs, addr) }
	maps.DeleteFunc(s.failures, func(addr, _ string) bool { return gone(addr) })
	maps.DeleteFunc(s.dialed, func(addr string, _ bool) bool { return gone(addr) })
	maps.DeleteFunc(s.lines, func(addr string, _ []netip.Addr) bool { return gone(addr) })
}

func shuffle[T any](rand func() float64, all []T) {
	for i := len(all) - 1; i > 0; i-- {
		j := int(rand() * float64(i+1))
		all[i], all[j] = all[j], all[i]
	}
}

// named are the servers in the order in which they were named, the servers of the
// configuration first. The caller holds s.mu.
func (s *Servers) named() []string {
	all := slices.Clone(s.tracked)
	for _, addr := range s.given {
		if !slices.Contains(all, addr) {
			all = append(all, addr)
		}
	}
	return all
}

// preferTracked makes the next round begin with the servers of the configuration, if
// it is known, and not with addr, which is up. The other servers come after them,
// because the configuration may have addresses that this client cannot reach. The
// caller holds s.mu.
func (s *Servers) preferTracked(addr string) {
	n := len(s.tracked)
	if n == 0 {
		return
	}
	s.next = 0
	if i := slices.Index(s.addrs[:n], addr); i >= 0 {
		s.next = (i + 1) % n
		if n == 1 {
			s.next = 1 % len(s.addrs)
		}
	}
}

// Knows reports whether a server is in the list.
func (s *Servers) Knows(addr string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.addrs, addr)
}

// Count is the number of servers, as far as it is known: those that a name stands for
// are known once it was resolved.
func (s *Servers) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.countLocked()
}

func (s *Servers) countLocked() (n int) {
	for _, addr := range s.addrs {
		n += max(1, len(s.lines[addr]))
	}
	return n
}
