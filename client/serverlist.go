package client

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/docent-go/docent/client/internal/where"
)

// Servers returns the servers of the connect string, each as "host:port", ordered by
// name. They name the ensemble. [Client.SetServers] and [WithEnsembleTracker] say
// where the ensemble is now, and do not change them.
func (c *Client) Servers() []string { return slices.Sorted(slices.Values(c.core.cfg.servers)) }

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
		addr, err := where.HostPort(server)
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
	k.servers.Give(list)
	k.leaveLocked(k.unlisted)
	return nil
}

// unlisted reports whether a server is in no list.
func (c *core) unlisted(server string) bool { return !c.servers.Knows(server) }

// leaveLocked closes the connection after a pause, if gone says before and after the
// pause that its server is gone. The caller holds c.mu.
func (c *core) leaveLocked(gone func(server string) bool) {
	if up, _ := c.live(); !up || !gone(c.server) {
		return // the next dial follows the new list
	}
	pause := c.servers.Stagger()
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
			s.link.DropLive(before, where.ErrLeaving)
		}
	})
}
