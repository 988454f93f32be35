package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client/internal/duties"
	"github.com/docent-go/docent/client/internal/fate"
	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/internal/wire"
)

// What the servers may be. A server without Keeper's node counts as Apache ZooKeeper.
const (
	ApacheZooKeeper  = "Apache ZooKeeper"
	ClickHouseKeeper = "ClickHouse Keeper"
)

// keeperNode is on every ClickHouse Keeper, of every release, and every client may
// read it. The path is the server's: neither chroot nor namespace applies.
const keeperNode = "/keeper/api_version"

// errNotRestored is why a session ends with its connection.
var errNotRestored = errors.New("the connection was lost, and ClickHouse Keeper does not restore sessions")

// Product is the product, "" until it is known.
func (s *Session) Product() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.product
}

// AwaitProduct waits, within ctx, until the product is known. If the server wants
// clients to authenticate, the error says so.
func (s *Session) AwaitProduct(ctx context.Context) (string, error) {
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
			return "", fate.Unsent(s.Over())
		case <-ctx.Done():
			return "", fate.Unsent(ctxerr.Ended(ctx))
		}
	}
}

// Barred is why the server of the newest connection says nothing to this client: it wants
// clients to authenticate. It is nil if the server has answered, or has yet to.
func (s *Session) Barred() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.barred
}

// Recognise asks the server what it is. It runs on every connection until a server
// has answered, and ends with the connection.
func (s *Session) Recognise() {
	s.bar(nil)
	for tried := 1; ; tried++ {
		x := Ask(wire.OpGetData, keeperNode)
		x.Urgent = true // before requests that wait for the answer
		err := s.Call(s.ctx, x)
		switch {
		case errors.Is(err, zk.ErrNoNode):
			s.learnProduct(ApacheZooKeeper)
			return
		case errors.Is(err, fate.AuthRequired), errors.Is(err, zk.ErrAuthFailed):
			s.bar(err) // the server closes the connection
			return
		case err == nil, errors.Is(err, fate.ErrReplyTooLarge),
			fate.Is(err, fate.Refused) && !fate.Passing(err):
			s.learnProduct(ClickHouseKeeper)
			return
		case !x.Answered(), ctxerr.Sleep(s.ctx, s.cfg.Servers.Jitter(tried)) != nil:
			return
		}
	}
}

// bar notes that the server answers nothing before the client has authenticated, or
// with nil that there is a new connection on which to ask.
func (s *Session) bar(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.product == "" {
		s.barred = why
		s.tellLocked()
	}
}

// tellLocked wakes those that wait for the product. The caller holds s.mu.
func (s *Session) tellLocked() {
	close(s.recognised)
	s.recognised = make(chan struct{})
}

// Restores reports whether, as far as is known, the servers let a session go on over
// another connection. Nothing is held before that is known.
func (s *Session) Restores() bool { return s.Product() != ClickHouseKeeper }

// learnProduct makes the product known, once.
func (s *Session) learnProduct(product string) {
	s.mu.Lock()
	again := s.product != ""
	if !again {
		s.product = product
	}
	s.mu.Unlock()
	if again {
		return
	}
	s.cfg.Known.learn(product)
	if product == ClickHouseKeeper {
		s.link.EndOnLoss(errNotRestored)
	}
	s.mu.Lock()
	s.settled = true
	s.tellLocked()
	s.mu.Unlock()
	if product == ClickHouseKeeper {
		s.cfg.Journal.Say(slog.LevelInfo, "zookeeper: the servers are ClickHouse Keeper: a lost connection ends the session and its locks",
			"session", ID(s.link.SessionID()))
	}
}

// Supports returns nil if a request that needs f may be sent in s. Otherwise the
// error is a [fate.TryError] that matches [fate.ErrUnsupported], and nothing was sent. It waits,
// within ctx, until the product is known. That takes one round trip after the first
// connection of the session.
//
// ClickHouse Keeper answers a request that it does not know by closing the
// connection, and the session with it. Nothing tells which requests one of its
// releases knows, so it counts as having no feature at all. Apache ZooKeeper answers
// -6, which [Session.Refused] remembers, and closes the connection. The session
// goes on.
func (s *Session) Supports(ctx context.Context, f Feature) error {
	product, err := s.AwaitProduct(ctx)
	if err != nil {
		return err
	}
	if product == ApacheZooKeeper && !s.cfg.Known.lacks(f) {
		return nil
	}
	return fate.Unsent(fmt.Errorf("%w: %v; these are %s", fate.ErrUnsupported, f, product))
}

// Refused is called with err, the server's answer to a request that needs f. If err
// says that the server does not know the request, the result matches
// [fate.ErrUnsupported], and the client sends no such request again. TTL nodes are the
// exception: a setting of the servers decides about them.
func (s *Session) Refused(f Feature, err error) error {
	if !errors.Is(err, fate.Unimplemented) || errors.Is(err, fate.ErrUnsupported) {
		return err
	}
	if f != TTLNodes {
		s.cfg.Known.lack(f)
	}
	return fate.Refusal(fmt.Errorf("%w: %v: %w", fate.ErrUnsupported, f, err))
}

// ClickHouse Keeper keeps a session whose connection was lost until its timeout has
// passed. No client can come back to end it: Keeper gives it another session. So the
// nodes of the lost session would be in the way of other clients. The client deletes
// them one by one in a later session.

// wallSteps is how much later than its timeout Keeper may end a session: it looks
// every 500 ms.
const wallSteps = time.Second

// Gone reports whether cause says that the servers have ended the session. A
// refused handshake does not say so. A leader that was deposed and does not know it
// refuses sessions that live on under the next leader.
func Gone(cause error) bool {
	return errors.Is(cause, wire.ErrClosed) || errors.Is(cause, fate.ErrClosed) || errors.Is(cause, zk.ErrSessionExpired)
}

// Unburiable reports whether a server may keep the session after that end, and no request of
// this client could end it.
func (s *Session) Unburiable(cause error) bool {
	return s.Product() == ClickHouseKeeper && !Gone(cause)
}

// Linger notes that a server may keep the session, which is over, for its timeout.
func (s *Session) Linger() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = time.Now().Add(s.link.Timeout() + wallSteps)
}

// Standing is what is known of the session's end. It lingers while a server may keep it.
func (s *Session) Standing() duties.Standing {
	if s.Over() == nil {
		return duties.Stands
	}
	if cause := s.link.Cause(); cause == nil || !s.Unburiable(cause) {
		return duties.Over
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept.IsZero() || time.Now().Before(s.kept) { // zero: the client is about to call Linger
		return duties.Lingers
	}
	return duties.Over
}
