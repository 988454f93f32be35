package client

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/docent-go/docent/client/internal/where"
	"github.com/docent-go/docent/internal/ctxerr"
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
		if ctxerr.Sleep(c.ctx, pause) != nil {
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

// WithEnsembleTracker makes the client follow the ensemble's own list of its members,
// which reconfig changes. The client reads and watches /zookeeper/config, as
// Curator's EnsembleTracker does. It dials the servers of the list first, and those
// of the connect string when none of the list can be reached. It is off by default,
// because the addresses in the list may work only within the ensemble's own network.
//
// If the member that the client is connected to leaves the list, the client moves as
// after [Client.SetServers]. If the client is connected to an address that the list
// never had, as behind a load balancer, it stays.
//
// A list with an older version than the newest one seen is ignored. After the
// ensemble was set up from scratch, programs must connect again.
//
// If the node is missing (as in ClickHouse Keeper), may not be read, or lacks a client
// address of a member, the list stays as it is. One warning says so. It lacks them if the
// servers' zoo.cfg has a line clientPort apart from the servers' lines. With [WithTLS]
// Connect refuses the option: the list has no addresses of TLS ports.
func WithEnsembleTracker() Option {
	return optionFunc(func(c *config) error { c.tracking = true; return nil })
}

// configPath is where servers show their dynamic configuration.
const configPath = "/zookeeper/config"

// tracker follows the configuration.
type tracker struct {
	core    *core
	version int64  // of the newest that was seen
	said    string // the newest complaint
}

// trackEnsemble ends with the client.
func (c *core) trackEnsemble() {
	t := tracker{core: c, version: -1}
	for c.ctx.Err() == nil {
		_, _ = c.await(c.ctx, nil, nil) // fails when the client ends, or for credentials, as follow does then
		asked, later := c.states.newest(), false
		t.complain(t.follow())
		// Another server, or this one after a restart, may have an answer.
		for change := range c.states.from(c.ctx, asked) {
			if later && change.State == Connected {
				break
			}
			later = true
		}
	}
}

// follow applies the configuration and its changes, until it cannot be read.
func (t *tracker) follow() error {
	o := &ops{core: t.core} // without chroot and namespace
	for {
		data, _, w, err := o.GetW(t.core.ctx, configPath)
		if err != nil {
			return err
		}
		if servers, version, err := where.ParseEnsemble(string(data)); err != nil {
			t.complain(fmt.Errorf("%s: %w", configPath, err))
		} else {
			t.apply(servers, version)
		}
		select {
		case <-w.Done():
		case <-t.core.ctx.Done():
			return nil
		}
	}
}

// apply uses a configuration, unless a server that lags showed an old one.
func (t *tracker) apply(servers []string, version int64) {
	if version <= t.version {
		return
	}
	t.version, t.said = version, ""
	c := t.core
	before := c.servers.Track(servers)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closing {
		c.leaveLocked(func(server string) bool {
			return slices.Contains(before, server) && !slices.Contains(servers, server)
		})
	}
}

// complain logs why the list stays as it is, each reason once.
func (t *tracker) complain(err error) {
	if err == nil || t.core.ctx.Err() != nil || err.Error() == t.said {
		return
	}
	t.said = err.Error()
	t.core.journal.Say(slog.LevelWarn, "zookeeper: the ensemble's configuration is of no use; the list of servers stays as it is", "reason", err)
}
