package exclusion_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/integration/harness"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// limited bounds a test; nothing in it may wait for ever.
func limited(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// eventually polls what no event tells, until it holds. If it does not, the
// test has failed and goes on: there is more to see.
func eventually(ctx context.Context, t *testing.T, limit time.Duration, ask func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		err := ask()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Errorf("not within %v: %v", limit, err)
			return
		case <-again.C:
		}
	}
}

// directory makes the lock's directory as a node that stays, so that its
// counter cannot start again in the middle.
func directory(t *testing.T, raw *zk.Conn, path string) {
	t.Helper()
	_, err := raw.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
	check(t, err)
}

// clean waits until nothing of the workers is left on any server: no node, no
// watch, no session but that of raw, which only looks.
func clean(ctx context.Context, t *testing.T, e *harness.Ensemble, raw *zk.Conn, path string) {
	t.Helper()
	eventually(ctx, t, sessionTimeout+5*time.Second, func() error {
		if _, err := raw.Sync(path); err != nil {
			return err
		}
		names, _, err := raw.Children(path)
		if err == nil && len(names) > 0 {
			err = fmt.Errorf("nodes left: %v", names)
		}
		for _, n := range e.Nodes() {
			err = errors.Join(err, quiet(ctx, n))
		}
		return err
	})
}

func quiet(ctx context.Context, n *harness.Node) error {
	watches, err := n.Watches(ctx)
	if err != nil {
		return err
	}
	if watches.Total != 0 {
		err = fmt.Errorf("node %d: %d watches left", n.ID(), watches.Total)
	}
	sessions, e := number(ctx, n, "global_sessions")
	if e == nil && sessions != 1 {
		e = fmt.Errorf("node %d: %d sessions, want 1", n.ID(), sessions)
	}
	return errors.Join(err, e)
}

// number is one of a server's counters.
func number(ctx context.Context, n *harness.Node, name string) (int, error) {
	all, err := n.Mntr(ctx)
	if err != nil {
		return 0, err
	}
	v, err := strconv.Atoi(all[name])
	if err != nil {
		return 0, fmt.Errorf("node %d: counter %s: %w", n.ID(), name, err)
	}
	return v, nil
}

// total adds a counter up over all servers.
func total(ctx context.Context, t *testing.T, e *harness.Ensemble, name string) (sum int) {
	t.Helper()
	for _, n := range e.Nodes() {
		v, err := number(ctx, n, name)
		check(t, err)
		sum += v
	}
	return sum
}
