package client

import (
	"fmt"
	"log/slog"
	"slices"

	"github.com/docent-go/docent/client/internal/where"
)

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
