package client

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client/internal/where"
	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/retry"
)

// Conn returns the zk.Conn of the present session, for requests that this package
// does not offer, or nil while there is none. There is a new one for every session;
// the session of a zk.Conn never changes. The client does not use the watches of the
// zk.Conn, but the servers keep them together with the client's. On a path that both
// watch, the removal of the client's watch ([OneShotWatch.Stop], [Changes.Close])
// removes the other too. Before ZooKeeper 3.9 the other replaces a persistent watch
// of the client. AddAuth of the zk.Conn can block it for good (use [Client.AddAuth]), and
// its Close ends the session. Paths are the server's: neither chroot nor namespace
// applies.
//
// For code that was written for go-zookeeper, package client/zkconn has a connection that
// outlives sessions.
//
// A call on the zk.Conn goes through go-zookeeper's own queue and codec. It knows no
// context, and may read its arguments after it has returned. An answer above
// [WithMaxReply] costs the connection, and a malformed answer can end the process.
func (c *Client) Conn() *zk.Conn {
	c.core.mu.Lock()
	defer c.core.mu.Unlock()
	if _, accepted := c.core.live(); !accepted {
		return nil
	}
	return c.core.current.Conn()
}

// Product returns what the servers of the newest session are: "Apache ZooKeeper" or
// "ClickHouse Keeper". It is "" until a server has answered. On ClickHouse Keeper the
// loss of the connection ends the session at once, and every lock that is held in it.
//
// The client reads the node /keeper/api_version after the first handshake of every
// session. If it does not exist the servers count as Apache ZooKeeper. Any other
// answer, a refusal as well, makes them ClickHouse Keeper, which is the careful
// choice. One refusal says nothing: servers that want their clients to authenticate
// refuse everything. The client asks again over the next connection then. No lock is
// held before the answer.
func (c *Client) Product() string {
	c.core.mu.Lock()
	defer c.core.mu.Unlock()
	if c.core.current == nil {
		return ""
	}
	return c.core.current.Product()
}

// Namespace returns a client for the same session whose paths are all under name,
// below this client's own namespace. Missing nodes of the namespace are made on first
// use, see [WithNamespace]. Closing either client closes both.
func (c *Client) Namespace(name string) (*Client, error) {
	if err := validNamespace(name); err != nil {
		return nil, err
	}
	sub := &Client{c.ops}
	sub.prefix += "/" + name
	return sub, nil
}

// Retrying returns a client for the same session whose calls are tried again by p, in
// place of the policy of [WithRetry]. So one call can fail soon while another waits
// for a server as long as its context allows:
//
//	_, _, err := c.Retrying(retry.None()).Get(ctx, path)
//	_, _, err = c.Retrying(retry.Default()).Get(ctx, path)
//
// p also bounds the wait for a connection, and its pauses have the same cap. Namespaces
// and sessions that come from the copy have its policy. Closing either client closes
// both.
func (c *Client) Retrying(p retry.Policy) *Client {
	if c.core.cfg.hasRand {
		p = p.WithRand(c.core.cfg.rand)
	}
	twin := &Client{c.ops}
	twin.policy = &p
	return twin
}

// State returns the newest state. It looks at the clocks itself. A session whose time
// is over is not Connected, even if no goroutine has noticed yet, as after a
// suspension of the machine.
func (c *Client) State() State { return c.core.state() }

// States yields the present state and then every change in order, until ctx ends
// or after Closed. A slow reader misses nothing and delays no other reader.
func (c *Client) States(ctx context.Context) iter.Seq[StateChange] {
	_ = c.State() // a session whose time is over does not come first
	return c.core.states.from(ctx, c.core.states.newest())
}

// Observer returns the hooks of [WithObserver]. A program with recipes of its own can
// have the hooks told of those as well.
func (c *Client) Observer() Observer { return c.core.cfg.observer }

// Close is [Client.CloseContext] with a limit of 5 s. It makes a Client an
// [io.Closer].
func (c *Client) Close() error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.core.ctx), closeLimit)
	defer cancel()
	return c.CloseContext(ctx)
}

// CloseContext ends the contexts of the session and of the locks held in it, then
// the session on the server. The server removes the ephemeral nodes and watches of
// the session at once. CloseContext then waits for every goroutine of the client.
//
// Operations in flight are answered first; later ones fail with [ErrClosed]. While
// no server is reachable, CloseContext waits for one. It gives up when ctx ends, or
// when the session timeout has passed, since the servers then end the session by
// themselves. A hook of [Observer] or a log handler may close the client: for hooks
// and handlers that have not returned CloseContext waits 0.2 s.
//
// It returns within ctx. The error says that the session could not be ended on the
// server: its ephemeral nodes then stay until the session expires, at most the
// session timeout later. Either way the client is closed, and what still runs ends
// by itself shortly. A second call waits for the first and returns the result of
// the first. CloseContext closes all namespaces of the client.
func (c *Client) CloseContext(ctx context.Context) error {
	ctxerr.Require(ctx)
	k := c.core
	err, done := k.closeOnce.Do(ctx, func() error { return k.shutDown(ctx) })
	if !done {
		return fmt.Errorf("client: close: %w", ctxerr.Ended(ctx))
	}
	return err
}

const closeLimit = 5 * time.Second

// Servers returns the servers of the connect string, each as "host:port", ordered by
// name. They name the ensemble. [Client.SetServers] and [WithEnsembleTracker] say
// where the ensemble is now, and do not change them.
func (c *Client) Servers() []string { return slices.Sorted(slices.Values(c.core.cfg.servers)) }

// SetServers replaces the servers of the connect string. It is for programs that
// learn of changes from a registry, a DNS record or a file. Each server is
// "host:port", and the port defaults to 2181. The chroot stays. A dial that begins
// after the call goes to one of the new servers.
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
