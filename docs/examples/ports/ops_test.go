package ports_test

import (
	"context"
	"fmt"
	"testing"

	kit "github.com/go-kit/kit/sd/zk"
	"github.com/go-kit/log"
	"github.com/hashicorp/go-hclog"
	oldvault "github.com/hashicorp/vault/physical/zookeeper"
	"github.com/hashicorp/vault/sdk/physical"
	"github.com/kvtools/valkeyrie/store"
	oldstore "github.com/kvtools/zookeeper"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/docs/examples/ports/gokit"
	"github.com/docent-go/docent/docs/examples/ports/valkeyrie"
	"github.com/docent-go/docent/docs/examples/ports/vault"
)

// entries are in a directory that is listed.
const entries = 200

// operation is what users of a port do, again and again with another i.
type operation struct {
	name    string
	prepare func() error // nil if nothing is needed
	do      func(i int) error
}

// port is a backend before and after: each opens it on a server and returns what it does.
type port struct {
	name          string
	before, after func(tb testing.TB, server string) []operation
}

func ports() []port {
	return []port{
		{"Vault", vaultOn(oldvault.NewZooKeeperBackend), vaultOn(vault.New)},
		{"Valkeyrie", storeOn(func(ctx context.Context, at []string) (store.Store, error) {
			return oldstore.New(ctx, at, nil)
		}), storeOn(func(ctx context.Context, at []string) (store.Store, error) {
			return valkeyrie.New(ctx, at, nil)
		})},
		{"go-kit", kitOn(func(_ testing.TB, at string) (kit.Client, error) {
			return kit.NewClient([]string{at}, log.NewNopLogger())
		}), kitOn(func(tb testing.TB, at string) (kit.Client, error) {
			tb.Helper()
			c, err := client.Connect(tb.Context(), at)
			if err != nil {
				return nil, err
			}
			tb.Cleanup(func() { _ = c.Close() })
			return gokit.New(tb.Context(), c), nil
		})},
	}
}

// wants returns an error if a list is not complete.
func wants(n, have int, err error) error {
	if err == nil && have != n {
		err = fmt.Errorf("%d of %d", have, n)
	}
	return err
}

func check(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func vaultOn(factory physical.Factory) func(testing.TB, string) []operation {
	return func(tb testing.TB, server string) []operation {
		tb.Helper()
		s, err := factory(map[string]string{"address": server, "path": "vault" + suffix()}, hclog.NewNullLogger())
		check(tb, err)
		ha, ok := s.(physical.HABackend)
		if !ok {
			tb.Fatal("no locks")
		}
		ctx := tb.Context()
		put := func(size int, format string, a ...any) error {
			return s.Put(ctx, &physical.Entry{Key: fmt.Sprintf(format, a...), Value: make([]byte, size)})
		}
		list := func(size int) operation {
			return operation{fmt.Sprintf("list %d entries of %d bytes", entries, size), func() error {
				for i := range entries {
					if err := put(size, "list%d/%d", size, i); err != nil {
						return err
					}
				}
				return nil
			}, func(int) error {
				keys, err := s.List(ctx, fmt.Sprintf("list%d/", size))
				return wants(entries, len(keys), err)
			}}
		}
		return []operation{
			{"put a new entry", nil, func(i int) error { return put(100, "new/%d", i) }},
			{"put in a new directory", nil, func(i int) error { return put(100, "dirs/%d/entry", i) }},
			{"put an entry again", nil, func(int) error { return put(100, "again") }},
			{"get", nil, func(int) error { _, err := s.Get(ctx, "again"); return err }},
			{"delete a directory's last entry", nil, func(i int) error { return s.Delete(ctx, fmt.Sprintf("dirs/%d/entry", i)) }},
			list(100),
			list(10_000),
			{"lock and unlock", nil, func(int) error {
				lock, err := ha.LockWith("core/lock", "value")
				if err != nil {
					return err
				}
				if _, err := lock.Lock(nil); err != nil {
					return err
				}
				return lock.Unlock()
			}},
		}
	}
}

func storeOn(open func(context.Context, []string) (store.Store, error)) func(testing.TB, string) []operation {
	return func(tb testing.TB, server string) []operation {
		tb.Helper()
		ctx, dir, value := tb.Context(), "store"+suffix(), make([]byte, 100)
		s, err := open(ctx, []string{server})
		check(tb, err)
		tb.Cleanup(func() { _ = s.Close() })
		put := func(format string, a ...any) error {
			return s.Put(ctx, dir+fmt.Sprintf(format, a...), value, nil)
		}
		return []operation{
			{"put a new key", nil, func(i int) error { return put("/new/%d", i) }},
			{"put a key again", nil, func(int) error { return put("/key") }},
			{fmt.Sprintf("list %d keys", entries), func() error {
				for i := range entries {
					if err := put("/list/%d", i); err != nil {
						return err
					}
				}
				return nil
			}, func(int) error {
				keys, err := s.List(ctx, dir+"/list", nil)
				return wants(entries, len(keys), err)
			}},
			{"lock and unlock", nil, func(int) error {
				lock, err := s.NewLock(ctx, dir+"/lock", &store.LockOptions{Value: value})
				if err != nil {
					return err
				}
				if _, err := lock.Lock(ctx); err != nil {
					return err
				}
				return lock.Unlock(ctx)
			}},
		}
	}
}

func kitOn(open func(testing.TB, string) (kit.Client, error)) func(testing.TB, string) []operation {
	return func(tb testing.TB, server string) []operation {
		tb.Helper()
		const instances = 50
		dir := "/kit" + suffix()
		c, err := open(tb, server)
		check(tb, err)
		tb.Cleanup(c.Stop)
		return []operation{
			{"register", nil, func(i int) error {
				return c.Register(&kit.Service{Path: dir, Name: "one", Data: fmt.Append(nil, i)})
			}},
			{fmt.Sprintf("read and watch %d instances", instances), func() error {
				for i := range instances {
					if err := c.Register(&kit.Service{Path: dir, Name: "many", Data: fmt.Append(nil, i)}); err != nil {
						return err
					}
				}
				return nil
			}, func(int) error {
				all, _, err := c.GetEntries(dir + "/many")
				return wants(instances, len(all), err)
			}},
		}
	}
}
