package client

import (
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client/internal/duties"
	"github.com/docent-go/docent/internal/wire"
)

// ClickHouse Keeper keeps a session whose connection was lost until its timeout has
// passed. No client can come back to end it: Keeper gives it another session. So the
// nodes of the lost session would be in the way of other clients. The client deletes
// them one by one in a later session.

// wallSteps is how much later than its timeout Keeper may end a session: it looks
// every 500 ms.
const wallSteps = time.Second

// isGone reports whether cause says that the servers have ended the session. A
// refused handshake does not say so. A leader that was deposed and does not know it
// refuses sessions that live on under the next leader.
func isGone(cause error) bool {
	return errors.Is(cause, wire.ErrClosed) || errors.Is(cause, ErrClosed) || errors.Is(cause, zk.ErrSessionExpired)
}

// unburied reports whether a server may keep the session after that end, and does not
// end it for this client.
func (s *sessionState) unburied(cause error) bool {
	return s.knownProduct() == clickHouseKeeper && !isGone(cause)
}

// linger has the nodes deleted that were held in s, which is over. They are deleted
// at the deadline that was promised to their holders.
func (s *sessionState) linger() {
	s.mu.Lock()
	s.kept = time.Now().Add(s.link.Timeout() + wallSteps)
	s.mu.Unlock()
	due := s.lease.promised()
	for _, path := range s.lease.nodes() {
		s.core.remover.Add(&duties.Removal{Owner: s, What: path, Full: []string{path}, Due: due})
	}
}

// lingers reports whether a server may keep s, which is over.
func (s *sessionState) lingers() bool {
	cause := s.link.Cause()
	if cause == nil || !s.unburied(cause) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kept.IsZero() || time.Now().Before(s.kept)
}
