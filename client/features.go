package client

import (
	"context"
	"errors"
	"fmt"
)

// ErrUnsupported says that the servers do not have what an operation needs. The
// text of an error that matches it names the feature and what has it. Nothing was
// changed.
var ErrUnsupported = errors.New("client: not supported by these servers")

// feature is something that not every server has. A client asks
// [session.supports] before it sends a request that needs one.
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
)

// String names the feature and what has it.
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
	default:
		return fmt.Sprintf("feature %d", int(f))
	}
}

// supports returns nil if a request that needs f may be sent in s. Otherwise the
// error is a fault that matches [ErrUnsupported], and nothing was sent. It waits,
// within ctx, until the product is known, which is one round trip after the first
// connection of the session.
//
// ClickHouse Keeper closes the connection, and the session with it, for a request
// that it does not know. Nothing tells which requests one of its releases knows,
// so that it counts as having no feature at all. Apache ZooKeeper answers -6, which
// [session.refused] remembers, and closes the connection; the session goes on.
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

// refused makes err, which a server answered to a request that needs f, match
// [ErrUnsupported] if it says that the server does not know the request. The client
// then never sends such a request again, but for TTL nodes: a setting of the
// servers decides about those.
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
