package docs_test

import (
	"context"
	"errors"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/barrier"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/recipes/nodes"
	"github.com/docent-go/docent/recipes/shared"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/zktest"
)

// aclCase is a row of the table of rights in docs/operations.md.
type aclCase struct {
	recipe string
	open   []string // nodes that must be there and give every right
	dirs   []string // the nodes whose rights the row is about
	data   []byte   // of these nodes
	use    func(ctx context.Context, c *client.Client) error
}

// locked is a cycle of a lock in which one acquire waits for another.
func locked[H recipes.AnyHold](ctx context.Context, acquire func(context.Context) (H, error)) error {
	first, err := acquire(ctx)
	if err != nil {
		return err
	}
	got := make(chan error, 1)
	go func() {
		second, err := acquire(ctx)
		if err == nil {
			err = second.Release(ctx)
		}
		got <- err
	}()
	return errors.Join(first.Release(ctx), <-got)
}

func aclCases() []aclCase {
	lock := func(name string, contend func(c *client.Client) (func(context.Context) (*recipes.Hold, error), error)) aclCase {
		return aclCase{recipe: name, dirs: []string{"/at"}, use: func(ctx context.Context, c *client.Client) error {
			acquire, err := contend(c)
			if err != nil {
				return err
			}
			return locked(ctx, acquire)
		}}
	}
	count := aclCase{"`SharedCount`, `SharedValue`: the node", nil, []string{"/at"}, []byte{0, 0, 0, 1}, func(ctx context.Context, c *client.Client) error {
		count, err := shared.NewSharedCount(c, "/at", 1)
		if err != nil {
			return err
		}
		now, err := count.Get(ctx)
		if err == nil {
			_, err = count.TrySet(ctx, now, 2)
		}
		return err
	}}
	semaphore := func(name string, open ...string) aclCase {
		row := aclCase{recipe: name, use: func(ctx context.Context, c *client.Client) error {
			pool, err := recipes.NewInterProcessSemaphoreV2(c, "/at", 1)
			if err != nil {
				return err
			}
			return locked(ctx, func(ctx context.Context) (*recipes.Lease, error) { return pool.Acquire(ctx, 1) })
		}}
		for _, dir := range []string{"/at", "/at/locks", "/at/leases"} {
			if slices.Contains(open, dir) {
				row.open = append(row.open, dir)
			} else {
				row.dirs = append(row.dirs, dir)
			}
		}
		return row
	}
	long := []byte{0, 0, 0, 0, 0, 0, 0, 1}
	return []aclCase{
		lock("`InterProcessMutex`, multi-lock of mutexes", func(c *client.Client) (func(context.Context) (*recipes.Hold, error), error) {
			lock, err := recipes.NewInterProcessMutex(c, "/at")
			return lock.Acquire, err
		}),
		lock("`InterProcessReadWriteLock`", func(c *client.Client) (func(context.Context) (*recipes.Hold, error), error) {
			lock, err := recipes.NewInterProcessReadWriteLock(c, "/at")
			return lock.ReadLock().Acquire, err
		}),
		lock("`LeaderLatch`, `LeaderSelector`", func(c *client.Client) (func(context.Context) (*recipes.Hold, error), error) {
			latch, err := recipes.NewLeaderLatch(c, "/at")
			return func(ctx context.Context) (*recipes.Hold, error) {
				term, err := latch.Campaign(ctx)
				if err != nil {
					return nil, err
				}
				return term.Hold, nil
			}, err
		}),
		semaphore("`InterProcessSemaphoreV2`, `InterProcessSemaphoreMutex`: the path", "/at/locks", "/at/leases"),
		semaphore("the same: `locks`", "/at", "/at/leases"),
		semaphore("the same: `leases`", "/at", "/at/locks"),
		count,
		{"atomic numbers and values: the node", nil, []string{"/at"}, long, func(ctx context.Context, c *client.Client) error {
			number, err := shared.NewDistributedAtomicLong(c, "/at")
			if err == nil {
				_, err = number.Increment(ctx)
			}
			return err
		}},
		{"the same with `WithoutMark`, `Sequence`: the node", nil, []string{"/at"}, long, func(ctx context.Context, c *client.Client) error {
			ids, err := shared.NewSequence(c, "/at", 1)
			if err == nil {
				_, err = ids.Next(ctx)
			}
			return err
		}},
		{"`PersistentNode`: its parent", nil, []string{"/at"}, nil, func(ctx context.Context, c *client.Client) error {
			node, err := nodes.NewPersistentNode(c, nodes.Ephemeral, "/at/w1", nil)
			if err == nil {
				err = node.Start(ctx)
			}
			if err == nil {
				err = node.Close()
			}
			return err
		}},
		{"`GroupMember`", nil, []string{"/at"}, nil, func(ctx context.Context, c *client.Client) error {
			me, err := nodes.NewGroupMember(c, "/at", "w1", nil)
			if err == nil {
				err = me.Start(ctx)
			}
			if err == nil {
				_, err = me.Members(ctx)
			}
			if err == nil {
				err = me.Close()
			}
			return err
		}},
		{"`DistributedBarrier`: its parent", nil, []string{"/at"}, nil, func(ctx context.Context, c *client.Client) error {
			gate, err := barrier.NewDistributedBarrier(c, "/at/gate")
			if err == nil {
				err = gate.Set(ctx)
			}
			if err == nil {
				err = gate.Remove(ctx)
			}
			if err == nil {
				err = gate.Wait(ctx)
			}
			return err
		}},
		{"`DistributedDoubleBarrier`", nil, []string{"/at"}, nil, func(ctx context.Context, c *client.Client) error {
			start, err := barrier.NewDistributedDoubleBarrier(c, "/at", 1)
			if err != nil {
				return err
			}
			member, err := start.Enter(ctx)
			if err == nil {
				err = member.Leave(ctx)
			}
			return err
		}},
		{"`cache.Children`, `cache.Tree`", nil, []string{"/at"}, nil, func(ctx context.Context, c *client.Client) error {
			children, err := cache.NewChildren(c, "/at", cache.Bytes)
			if err != nil {
				return err
			}
			defer children.Close()
			if err = children.Start(ctx); err == nil {
				root, _ := children.Snapshot().Root()
				err = root.Err
			}
			return err
		}},
	}
}

var rights = []struct {
	letter string
	perm   int32
}{{"c", zk.PermCreate}, {"d", zk.PermDelete}, {"r", zk.PermRead}, {"w", zk.PermWrite}}

// works tells whether a recipe works, and cleans up, for a client that has only these
// rights in the directories of the row.
func works(t *testing.T, row aclCase, perms int32) (ok bool) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv, err := zktest.Start() // NewServer would print its requests after a failure
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = srv.Close() }()
		as := func(name string, opts ...client.Option) *client.Client {
			opts = append(opts, client.WithDialer(srv.Client(name).DialContext), client.WithAuth("digest", name+":secret"),
				client.WithLogger(slog.New(slog.DiscardHandler)))
			c, err := client.Connect(t.Context(), "zk:2181", opts...)
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		admin := as("admin")
		defer func() { _ = admin.Close() }()
		all := append(slices.Clone(row.open), row.dirs...)
		slices.Sort(all) // parents first
		for _, dir := range all {
			granted := perms
			if slices.Contains(row.open, dir) {
				granted = zk.PermAll
			}
			acl := append(zk.DigestACL(zk.PermAll, "admin", "secret"), zk.DigestACL(granted, "user", "secret")...)
			if _, err := admin.Create(t.Context(), dir, row.data, client.ACL(acl...)); err != nil {
				t.Fatal(err)
			}
		}
		made := len(srv.Tree())
		c := as("user", client.WithRetry(retry.None()))
		defer func() { _ = c.Close() }()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err = row.use(ctx, c)
		time.Sleep(time.Minute) // the session goes on, so what stands then was not cleaned up
		left := len(srv.Tree()) - made
		t.Logf("%s with %05b: %d left, %v", row.recipe, perms, left, err)
		ok = err == nil && left == 0
	})
	return ok
}

// The table of rights in docs/operations.md says what each recipe needs: it works
// with these rights, and with none of them taken away.
func TestRights(t *testing.T) {
	t.Parallel()
	for _, row := range aclCases() {
		t.Run(row.recipe, func(t *testing.T) {
			t.Parallel()
			need, all := "", int32(0)
			for _, right := range rights {
				if !works(t, row, zk.PermAll&^right.perm) {
					need += right.letter
					all |= right.perm
				}
			}
			if !works(t, row, all) {
				t.Errorf("it does not work with all that it needs, %q", need)
			}
			line := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(row.recipe) + ` \| (\w*) \|`).FindStringSubmatch(read(t, "operations.md"))
			if line == nil {
				t.Fatalf("docs/operations.md has no row of it; it needs %q", need)
			}
			if strings.TrimSpace(line[1]) != need {
				t.Errorf("it needs %q, and docs/operations.md says %q", need, line[1])
			}
		})
	}
}
