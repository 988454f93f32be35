package client

import (
	"context"
	"errors"
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
