package peers

import (
	"context"
	"fmt"

	"github.com/docent-go/docent/bench/internal/load"
)

// Open connects the contenders of spec's peer.
func Open(ctx context.Context, spec *load.Spec) (*load.Field, error) {
	switch spec.Peer {
	case "docent":
		return docent(ctx, spec)
	case "raw":
		return raw(spec)
	case "rawho":
		return rawHandOver(spec)
	case "zklock":
		return zkLock(spec)
	case "etcd":
		return etcd(ctx, spec)
	case "redsync":
		return redis(spec)
	}
	return nil, fmt.Errorf("no peer %q", spec.Peer)
}
