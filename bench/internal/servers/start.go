package servers

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// Start starts so many servers with their data below dir and waits until they serve.
func Start(ctx context.Context, family Family, servers int, fsync bool, dir string) (*Ensemble, error) {
	dir = filepath.Join(dir, string(family))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	e := &Ensemble{}
	var err error
	switch family {
	case ZooKeeper:
		err = e.startZooKeeper(ctx, servers, fsync, dir)
	case Etcd:
		err = e.startEtcd(ctx, servers, fsync, dir)
	case Redis:
		err = e.startRedis(ctx, servers, fsync, dir)
	}
	if err != nil {
		e.Stop()
		return nil, fmt.Errorf("%s: %w", family, err)
	}
	return e, nil
}
