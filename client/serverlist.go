package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"

	"github.com/docent-go/docent/client/internal/fate"
	"github.com/docent-go/docent/client/internal/session"
	"github.com/docent-go/docent/client/internal/where"
	"github.com/docent-go/docent/internal/wire"
)

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

// Ensemble is the configuration of an ensemble, as its servers show it in /zookeeper/config.
type Ensemble struct {
	Members []Member // in the order of the configuration
	Version int64    // grows with every change
}

// Member is one server of an [Ensemble].
type Member struct {
	ID       int64
	Line     string   // "server.1=host:2888:3888:participant;2181", as [Reconfiguration] takes it
	Observer bool     // it has no vote
	Clients  []string // its addresses for clients, each "host:port"; none if the configuration lacks them
}

// Ensemble reads the configuration of the ensemble from the server that the client is
// connected to (ZooKeeper 3.5.0). [Client.Sync] before it makes that the newest. Chroot and
// namespace do not apply. To follow changes, and to dial the members, see
// [WithEnsembleTracker].
//
// A member whose zoo.cfg has its client port in a line of its own has no address for clients
// in the configuration. The configuration of a single server names no members: Ensemble then
// returns an error, and so it does for a text that is no configuration. ClickHouse Keeper has
// no such node, and the error matches [ErrNoNode].
func (o *ops) Ensemble(ctx context.Context) (now Ensemble, err error) {
	err = o.do(ctx, "ensemble", configPath, reads, func(ctx context.Context, t try) error {
		x := session.Ask(wire.OpGetData, configPath)
		if err := t.s.Read(ctx, x); err != nil {
			return err
		}
		now, err = parsedEnsemble(x.Reply.Data)
		if err != nil {
			return fate.Refusal(err)
		}
		return nil
	})
	return now, err
}

func parsedEnsemble(text []byte) (Ensemble, error) {
	members, version, err := where.ParseMembers(string(text))
	if err != nil {
		return Ensemble{}, err
	}
	e := Ensemble{Version: version}
	for _, m := range members {
		id, err := strconv.ParseInt(m.ID, 10, 64)
		if err != nil {
			return Ensemble{}, fmt.Errorf("server %q has an id that is no number", m.ID)
		}
		peer, _, _ := strings.Cut(m.Line, ";")
		e.Members = append(e.Members, Member{ID: id, Line: m.Line, Clients: m.Clients, Observer: strings.HasSuffix(peer, ":observer")})
	}
	return e, nil
}

// Reconfiguration is what [Client.Reconfigure] does: it lets members join and leave, or replaces
// all members.
type Reconfiguration struct {
	// Join are members that join, or whose line changes, each as in
	// "server.4=host:2888:3888:participant;2181".
	Join []string
	// Leave are the ids of members that leave.
	Leave []int64
	// Members are all members, in the form of Join. With it there is neither Join nor Leave.
	Members []string
	// IfVersion is the [Ensemble.Version] that the change is for. If another client has
	// changed the configuration since, the error matches [ErrBadVersion]. 0 means any.
	IfVersion int64
}

// Reconfigure changes the members of the ensemble (ZooKeeper 3.5.0), and returns its
// configuration after that. The servers need reconfigEnabled=true, and the client the right
// to write /zookeeper/config, which at first only the superuser has.
//
// A quorum of the new configuration must be up to date before the servers take it, else they
// say that none is connected. So start a new member before it joins. A member that leaves
// goes on running, and can join again. If the leader leaves, the ensemble elects another and
// all clients lose their connections for a moment.
//
// While another reconfiguration is in progress the client tries again by its retry policy.
// After an unknown outcome it does not: read [Client.Ensemble] and compare. After any other
// error the configuration is as it was.
func (o *ops) Reconfigure(ctx context.Context, c Reconfiguration) (now Ensemble, err error) {
	request, err := c.request()
	if err != nil {
		return now, o.invalid(ctx, reconfigureOp, configPath, err)
	}
	err = o.do(ctx, reconfigureOp, configPath, once, func(ctx context.Context, t try) error {
		x := &wire.Exchange{Request: wire.Request{Op: wire.OpReconfig, Change: request}}
		if err := t.s.Supports(ctx, session.Reconfiguration); err != nil {
			return err
		}
		switch err := t.s.Call(ctx, x); {
		case errors.Is(err, fate.Unimplemented):
			return fate.Refusal(fmt.Errorf("%w: %w", fate.Trimmed(ErrUnsupported), err))
		case err != nil:
			return err
		}
		now, err = parsedEnsemble(x.Reply.Data)
		if err != nil {
			return fate.Unanswered(fmt.Errorf("the answer: %w", err))
		}
		return nil
	})
	return now, err
}

// request is c as the servers want it.
func (c *Reconfiguration) request() (*wire.Reconfig, error) {
	switch some := len(c.Join)+len(c.Leave) > 0; {
	case some && len(c.Members) > 0:
		return nil, misused("Members says all members, so it goes without Join and Leave")
	case !some && len(c.Members) == 0:
		return nil, misused("the change is empty: set Join, Leave or Members")
	}
	for _, line := range slices.Concat(c.Join, c.Members) {
		id, member := strings.CutPrefix(line, "server.")
		id, address, _ := strings.Cut(id, "=")
		if _, err := strconv.ParseInt(id, 10, 64); err != nil || !member || address == "" || strings.ContainsAny(line, ",\r\n") {
			return nil, misused("member %q: write one as in \"server.4=host:2888:3888:participant;2181\"", line)
		}
	}
	r := &wire.Reconfig{Joining: strings.Join(c.Join, ","), Members: strings.Join(c.Members, ","), Version: -1}
	for i, id := range c.Leave {
		if i > 0 {
			r.Leaving += ","
		}
		r.Leaving += strconv.FormatInt(id, 10)
	}
	if c.IfVersion != 0 {
		r.Version = c.IfVersion
	}
	return r, nil
}
