package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/internal/wire"
)

// What the servers may be. A server without Keeper's node counts as Apache ZooKeeper.
const (
	apacheZooKeeper  = "Apache ZooKeeper"
	clickHouseKeeper = "ClickHouse Keeper"
)

// keeperNode is on every ClickHouse Keeper, of every release, and every client may
// read it. The path is the server's: neither chroot nor namespace applies.
const keeperNode = "/keeper/api_version"

// errNotRestored is why a session ends with its connection.
var errNotRestored = errors.New("the connection was lost, and ClickHouse Keeper does not restore sessions")

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
	return c.core.current.knownProduct()
}

// knownProduct is the product, "" until it is known.
func (s *sessionState) knownProduct() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.product
}

// awaitProduct waits, within ctx, until the product is known. If the server wants
// clients to authenticate, the error says so.
func (s *sessionState) awaitProduct(ctx context.Context) (string, error) {
	for {
		s.mu.Lock()
		product, settled, barred, told := s.product, s.settled, s.barred, s.recognised
		s.mu.Unlock()
		switch {
		case settled: // the usual case
			return product, nil
		case barred != nil:
			return "", barred
		}
		select {
		case <-told:
		case <-s.link.Over():
			return "", &fault{s.over(), OutcomeNeverSent}
		case <-ctx.Done():
			return "", &fault{ctxerr.Ended(ctx), OutcomeNeverSent}
		}
	}
}

// recognise asks the server what it is. It runs on every connection until a server
// has answered, and ends with the connection.
func (s *sessionState) recognise() {
	s.bar(nil)
	for tried := 1; ; tried++ {
		x := asked(wire.OpGetData, keeperNode)
		x.Urgent = true // before requests that wait for the answer
		err := s.call(s.ctx, x)
		var ft *fault
		switch {
		case errors.Is(err, zk.ErrNoNode):
			s.learnProduct(apacheZooKeeper)
			return
		case errors.Is(err, codeAuthRequired), errors.Is(err, zk.ErrAuthFailed):
			s.bar(err) // the server closes the connection
			return
		case err == nil, errors.Is(err, ErrReplyTooLarge),
			errors.As(err, &ft) && ft.outcome == OutcomeRefused && !passing(err):
			s.learnProduct(clickHouseKeeper)
			return
		case !x.Answered(), ctxerr.Sleep(s.ctx, s.core.servers.Jitter(tried)) != nil:
			return
		}
	}
}

// bar notes that the server answers nothing before the client has authenticated, or
// with nil that there is a new connection on which to ask.
func (s *sessionState) bar(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.product == "" {
		s.barred = why
		s.tellLocked()
	}
}

// tellLocked wakes those that wait for the product. The caller holds s.mu.
func (s *sessionState) tellLocked() {
	close(s.recognised)
	s.recognised = make(chan struct{})
}

// restores reports whether, as far as is known, the servers let a session go on over
// another connection. Nothing is held before that is known.
func (s *sessionState) restores() bool { return s.knownProduct() != clickHouseKeeper }

// learnProduct makes the product known, once.
func (s *sessionState) learnProduct(product string) {
	s.mu.Lock()
	again := s.product != ""
	if !again {
		s.product = product
	}
	s.mu.Unlock()
	if again {
		return
	}
	s.core.learnProduct(product)
	if product == clickHouseKeeper {
		s.link.EndOnLoss(errNotRestored)
	}
	s.mu.Lock()
	s.settled = true
	s.tellLocked()
	s.mu.Unlock()
	if product == clickHouseKeeper {
		s.core.journal.Say(slog.LevelInfo, "zookeeper: the servers are ClickHouse Keeper: a lost connection ends the session and its locks",
			"session", sessionID(s.link.SessionID()))
	}
}

// learnProduct forgets which features other servers lacked.
func (c *core) learnProduct(product string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.product != product {
		c.product, c.lacking = product, map[feature]bool{}
	}
}

// ErrUnsupported says that the servers do not have what an operation needs. The text
// of the error names the feature and the servers that have it. Nothing was changed.
var ErrUnsupported = errors.New("client: not supported by these servers")

// feature is something that not every server has. A client asks
// [sessionState.supports] before it sends a request that needs one.
type feature int

const (
	// containerNodes are made by createContainer (19).
	containerNodes feature = iota
	// ttlNodes are made by createTTL (21).
	ttlNodes
	// watchRemoval is removeWatches (18) and checkWatches (17).
	watchRemoval
	// persistentWatches are made by addWatch (106), recursive or not.
	persistentWatches
	// multiReads are multiRead (22).
	multiReads
)

// String names the feature and the servers that have it.
func (f feature) String() string {
	switch f {
	case containerNodes:
		return "container nodes (Apache ZooKeeper 3.5.1 or later)"
	case ttlNodes:
		return "TTL nodes (Apache ZooKeeper 3.5.3 or later with extendedTypesEnabled=true)"
	case watchRemoval:
		return "removal of watches (Apache ZooKeeper 3.5.0 or later)"
	case persistentWatches:
		return "persistent watches (Apache ZooKeeper 3.6.0 or later)"
	case multiReads:
		return "many reads by one request (Apache ZooKeeper 3.6.0 or later)"
	default:
		return fmt.Sprintf("feature %d", int(f))
	}
}

// supports returns nil if a request that needs f may be sent in s. Otherwise the
// error is a fault that matches [ErrUnsupported], and nothing was sent. It waits,
// within ctx, until the product is known. That takes one round trip after the first
// connection of the session.
//
// ClickHouse Keeper answers a request that it does not know by closing the
// connection, and the session with it. Nothing tells which requests one of its
// releases knows, so it counts as having no feature at all. Apache ZooKeeper answers
// -6, which [sessionState.refused] remembers, and closes the connection. The session
// goes on.
func (s *sessionState) supports(ctx context.Context, f feature) error {
	product, err := s.awaitProduct(ctx)
	if err != nil {
		return err
	}
	s.core.mu.Lock()
	lacking := s.core.lacking[f]
	s.core.mu.Unlock()
	if product == apacheZooKeeper && !lacking {
		return nil
	}
	return &fault{fmt.Errorf("%w: %v; these are %s", ErrUnsupported, f, product), OutcomeNeverSent}
}

// refused is called with err, the server's answer to a request that needs f. If err
// says that the server does not know the request, the result matches
// [ErrUnsupported], and the client sends no such request again. TTL nodes are the
// exception: a setting of the servers decides about them.
func (s *sessionState) refused(f feature, err error) error {
	if !errors.Is(err, codeUnimplemented) || errors.Is(err, ErrUnsupported) {
		return err
	}
	if f != ttlNodes {
		s.core.mu.Lock()
		s.core.lacking[f] = true
		s.core.mu.Unlock()
	}
	return &fault{fmt.Errorf("%w: %v: %w", ErrUnsupported, f, err), OutcomeRefused}
}
