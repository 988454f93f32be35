package client

import (
	"context"
	"errors"
	"fmt"
)

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
