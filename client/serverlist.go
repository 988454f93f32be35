package client

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// errLeaving is why the client gives up a connection to a server that is in no list
// any more.
var errLeaving = errors.New("it is not among the servers any more")

// SetServers replaces the servers of the connect string. It is for programs that
// learn of changes from a registry, a DNS record or a file. Each server is
// "host:port", and the port defaults to 2181. The chroot stays. The next dial goes to
// one of the new servers.
//
// The session goes on. If the server that the client is connected to is in the list
// the client stays there: connections are not spread over new servers. If it is not,
// the client closes the connection after a random pause of up to a third of the
// session timeout. So not all clients move at once. It attaches its session to a
// server of the list; until then its state is [Suspended]. On ClickHouse Keeper that
// would end the session: there a client that holds something stays until its
// connection ends.
//
// An error says which server is wrong, or matches [ErrClosed]; the list is then
// unchanged. SetServers does not wait for a connection. It applies to all namespaces
// of the client. It is the counterpart of ZooKeeper.updateServerList in Java.
func (c *Client) SetServers(servers ...string) error {
	if len(servers) == 0 {
		return errors.New("client: set servers: the list is empty; the servers stay as they are")
	}
	list := make([]string, 0, len(servers))
	for i, server := range servers {
		addr, err := hostPort(server)
		if strings.Contains(server, ",") {
			err = errors.New("servers are separate arguments, not one text with commas")
		}
		if err != nil {
			return fmt.Errorf("client: set servers: server %d: %w", i+1, err)
		}
		if !slices.Contains(list, addr) {
			list = append(list, addr)
		}
	}
	k := c.core
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closing {
		return ErrClosed
	}
	k.servers.give(list)
	k.leaveLocked(k.unlisted)
	return nil
}

// unlisted reports whether a server is in no list.
func (c *core) unlisted(server string) bool { return !c.servers.knows(server) }

// leaveLocked closes the connection after a pause, if gone says before and after the
// pause that its server is gone. The caller holds c.mu.
func (c *core) leaveLocked(gone func(server string) bool) {
	if up, _ := c.live(); !up || !gone(c.server) {
		return // the next dial follows the new list
	}
	pause := c.servers.stagger()
	c.wg.Go(func() {
		t := time.NewTimer(pause)
		defer t.Stop()
		select {
		case <-t.C:
		case <-c.ctx.Done():
			return
		}
		before := time.Now() // a connection made later is to another server
		c.mu.Lock()
		s, server := c.current, c.server
		c.mu.Unlock()
		if gone(server) && (s.restores() || s.lease.promised().IsZero()) {
			s.link.DropLive(before, errLeaving)
		}
	})
}

// stagger draws the pause before the client gives up a connection. Many clients may
// have to do that at the same time.
func (s *servers) stagger() time.Duration {
	return time.Duration(s.cfg.rand() * float64(s.timeout()/3))
}

// give replaces the servers of the connect string.
func (s *servers) give(list []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.given = list
	s.arrange()
	s.journal.say(slog.LevelInfo, "zookeeper: servers set", "servers", slices.Clone(s.addrs))
}

// track replaces the servers of the ensemble's configuration, and returns the former
// ones.
func (s *servers) track(list []string) (before []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, s.tracked = s.tracked, list
	s.arrange()
	s.journal.say(slog.LevelInfo, "zookeeper: the ensemble's configuration has changed the servers", "servers", slices.Clone(s.addrs))
	return before
}

// arrange puts the servers into the order in which they are tried. The servers of the
// ensemble's configuration come first; among themselves they are shuffled, to spread
// clients over them. The caller holds s.mu, or no other goroutine knows s yet.
func (s *servers) arrange() {
	s.next = 0
	s.addrs = s.named()
	shuffle(s.cfg.rand, s.addrs[:len(s.tracked)])
	shuffle(s.cfg.rand, s.addrs[len(s.tracked):])
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
func (s *servers) named() []string {
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
func (s *servers) preferTracked(addr string) {
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

// knows reports whether a server is in the list.
func (s *servers) knows(addr string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.addrs, addr)
}

// count is the number of servers, as far as it is known: those that a name stands for
// are known once it was resolved.
func (s *servers) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.countLocked()
}

func (s *servers) countLocked() (n int) {
	for _, addr := range s.addrs {
		n += max(1, len(s.lines[addr]))
	}
	return n
}
