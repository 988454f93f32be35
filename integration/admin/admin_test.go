// Package admin_test runs the calls of the client that ask about servers and change them on real
// ZooKeeper servers.
package admin_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/integration/harness"
	"github.com/docent-go/docent/integration/zkcontainer"
)

const password = "s3cret"

// connect makes a client that is closed with the test.
func connect(ctx context.Context, t *testing.T, servers string, opts ...client.Option) *client.Client {
	t.Helper()
	c, err := client.Connect(ctx, servers, append([]client.Option{
		client.WithSessionTimeout(6 * time.Second), client.WithLogger(slog.New(slog.DiscardHandler)),
	}, opts...)...)
	check(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestOneServer(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	srv := zkcontainer.Start(t, harness.Image(), zkcontainer.WithSuperuser(password),
		zkcontainer.WithSystemProperty("zookeeper.enforceQuota", "true"), zkcontainer.WithSystemProperty("zookeeper.extendedTypesEnabled", "true"))
	super := connect(ctx, t, srv.Addr(), client.WithAuth("digest", "super:"+password))
	c := connect(ctx, t, srv.Addr(), client.WithNamespace("ns"), client.WithAuth("digest", "bob:pw"))
	t.Run("identities", func(t *testing.T) {
		for _, tt := range []struct {
			c    *client.Client
			want client.Identity
		}{{c, client.Identity{Scheme: "digest", ID: "bob"}}, {super, client.Identity{Scheme: "digest", ID: "super"}}} {
			all, err := tt.c.Identities(ctx)
			if err != nil || !slices.Contains(all, tt.want) || !slices.ContainsFunc(all, func(i client.Identity) bool { return i.Scheme == "ip" }) {
				t.Errorf("%v, %v", all, err)
			}
		}
	})
	t.Run("trees", func(t *testing.T) { trees(ctx, t, c) })
	t.Run("quotas", func(t *testing.T) { quotas(ctx, t, c) })
	t.Run("no ensemble", func(t *testing.T) {
		_, err := super.Reconfigure(ctx, client.Reconfiguration{Leave: []int64{2}})
		if !errors.Is(err, client.ErrUnsupported) || !strings.Contains(err.Error(), "single server") {
			t.Errorf("Reconfigure: %v", err)
		}
		if e, err := super.Ensemble(ctx); err == nil {
			t.Errorf("Ensemble: %+v", e)
		}
	})
}

// trees makes nodes of all kinds and asks about them.
func trees(ctx context.Context, t *testing.T, c *client.Client) {
	res, err := c.Multi(ctx, client.CreateOp("/t", nil), client.CreateOp("/t/container", nil, client.Container()),
		client.CreateOp("/t/ttl-", []byte("four"), client.TTL(time.Hour), client.Sequential()), client.CreateOp("/t/e", nil, client.Ephemeral()))
	check(t, err)
	if res[1].Stat == nil || res[2].Stat == nil || res[2].Stat.DataLength != 4 || res[2].Path != "/t/ttl-0000000001" {
		t.Errorf("%+v", res)
	}
	for _, opt := range []client.CreateOption{client.Ephemeral(), client.Container(), client.TTL(time.Hour), client.Sequential()} {
		path, stat, err := c.CreateStat(ctx, "/t/made", []byte("x"), opt)
		check(t, err)
		if _, now, err := c.Get(ctx, path); err != nil || *now != *stat {
			t.Errorf("%s: %+v, now %+v, %v", path, stat, now, err)
		}
		check(t, c.Delete(ctx, path, 0))
	}
	if all, err := c.Ephemerals(ctx, "/t"); err != nil || !slices.Equal(all, []string{"/t/e"}) {
		t.Errorf("Ephemerals: %v, %v", all, err)
	}
	if all, err := c.Ephemerals(ctx, "/t/x"); err != nil || len(all) != 0 {
		t.Errorf("Ephemerals of none: %v, %v", all, err)
	}
	if n, err := c.CountDescendants(ctx, "/t"); err != nil || n != 3 {
		t.Errorf("CountDescendants: %d, %v", n, err)
	}
	read, err := c.MultiRead(ctx, client.GetOp("/t/ttl-0000000001"), client.ChildrenOp("/t"), client.GetOp("/none"))
	check(t, err)
	if string(read[0].Data) != "four" || read[0].Stat == nil || len(read[1].Children) != 3 || !errors.Is(read[2].Err, client.ErrNoNode) {
		t.Errorf("MultiRead: %+v", read)
	}
}

// quotas are set, enforced, listed and removed.
func quotas(ctx context.Context, t *testing.T, c *client.Client) {
	_, err := c.Create(ctx, "/q/a", []byte("12345"), client.WithParents())
	check(t, err)
	q := client.Quota{Bytes: 7, HardNodes: 3, HardBytes: 10}
	check(t, c.SetQuota(ctx, "/q", q))
	if got, err := c.Quota(ctx, "/q"); err != nil || got != (client.TreeQuota{Path: "/q", Quota: q, UsedNodes: 2, UsedBytes: 5}) {
		t.Errorf("%+v, %v", got, err)
	}
	_, err = c.Create(ctx, "/q/b", nil)
	check(t, err)
	if _, err = c.Create(ctx, "/q/c", nil); !errors.Is(err, client.ErrQuotaExceeded) {
		t.Errorf("one node too many: %v", err)
	}
	if _, err = c.Set(ctx, "/q/b", []byte("123456"), -1); !errors.Is(err, client.ErrQuotaExceeded) {
		t.Errorf("one byte too many: %v", err)
	}
	if err := c.SetQuota(ctx, "/q/a", q); err == nil || !strings.Contains(err.Error(), "/q has a quota") {
		t.Errorf("a quota in another: %v", err)
	}
	check(t, c.SetQuota(ctx, "/q", client.Quota{Nodes: 1}))
	_, err = c.Create(ctx, "/q/c", nil)
	check(t, err)
	if all, err := c.Quotas(ctx, "/"); err != nil || len(all) != 1 || all[0].UsedNodes != 4 || all[0].Quota != (client.Quota{Nodes: 1}) {
		t.Errorf("%+v, %v", all, err)
	}
	check(t, c.RemoveQuota(ctx, "/q"))
	if _, err := c.Quota(ctx, "/q"); !errors.Is(err, client.ErrNoNode) {
		t.Errorf("after its end: %v", err)
	}
}

func TestEnsemble(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	e := zkcontainer.StartEnsemble(t, harness.Image(), 3, zkcontainer.WithSuperuser(password),
		zkcontainer.WithSystemProperty("readonlymode.enabled", "true"), zkcontainer.WithProperty("localSessionsEnabled", "true"),
		zkcontainer.WithProperty("localSessionsUpgradingEnabled", "true"))
	servers := strings.Join(e.Servers(), ",")
	c := connect(ctx, t, servers, client.WithAuth("digest", "super:"+password))
	_, err := c.Create(ctx, "/a", []byte("data"), client.ACL(zk.WorldACL(zk.PermAll)...))
	check(t, err)
	t.Run("reconfigure", func(t *testing.T) { reconfigure(ctx, t, e, c) })
	t.Run("read-only", func(t *testing.T) { readOnly(ctx, t, e) })
}

// reconfigure lets a follower leave and join again.
func reconfigure(ctx context.Context, t *testing.T, e *zkcontainer.Ensemble, c *client.Client) {
	now, err := c.Ensemble(ctx)
	check(t, err)
	followers := e.Followers(ctx)
	if len(now.Members) != 3 || len(followers) != 2 {
		t.Fatalf("%+v, %d followers", now, len(followers))
	}
	id := int64(followers[0].ID())
	less, err := c.Reconfigure(ctx, client.Reconfiguration{Leave: []int64{id}, IfVersion: now.Version})
	check(t, err)
	if len(less.Members) != 2 || less.Version <= now.Version {
		t.Errorf("%+v, before %+v", less, now)
	}
	var line string
	for _, m := range now.Members {
		if m.ID == id {
			line, _, _ = strings.Cut(m.Line, ";")
		}
	}
	back := client.Reconfiguration{Join: []string{line + ";2181"}}
	stale := back
	stale.IfVersion = now.Version
	if _, err = c.Reconfigure(ctx, stale); !errors.Is(err, client.ErrBadVersion) {
		t.Errorf("of an old version: %v", err)
	}
	more, err := c.Reconfigure(ctx, back)
	check(t, err)
	if read, err := c.Ensemble(ctx); err != nil || len(more.Members) != 3 || read.Version < more.Version {
		t.Errorf("%+v, read %+v, %v", more, read, err)
	}
	_, err = connect(ctx, t, e.Members()[0].Addr()).Reconfigure(ctx, back)
	if !errors.Is(err, client.ErrNoAuth) || !strings.Contains(err.Error(), "superDigest") {
		t.Errorf("without rights: %v", err)
	}
}

// readOnly cuts one member off. It serves readers, and nobody else.
func readOnly(ctx context.Context, t *testing.T, e *zkcontainer.Ensemble) {
	lone := e.Followers(ctx)[0]
	reader := connect(ctx, t, lone.Addr(), client.WithReadOnly())
	check(t, lone.Partition(ctx))
	for change := range reader.States(ctx) {
		if change.ReadOnly {
			break
		}
	}
	data, _, err := reader.Get(ctx, "/a")
	s, _ := reader.Session(ctx)
	if err != nil || string(data) != "data" || !s.ReadOnly() {
		t.Errorf("%q, %v", data, err)
	}
	if _, err := reader.Set(ctx, "/a", nil, -1); !errors.Is(err, client.ErrReadOnly) {
		t.Errorf("Set: %v", err)
	}
	if err := reader.Sync(ctx, "/a"); !errors.Is(err, client.Code(-119)) {
		t.Errorf("Sync: %v", err)
	}
	short, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	if _, err := client.Connect(short, lone.Addr(), client.WithLogger(slog.New(slog.DiscardHandler))); err == nil || !strings.Contains(err.Error(), "read-only server") {
		t.Errorf("a client that may write: %v", err)
	}
	writer := connect(ctx, t, strings.Join(e.Servers(), ","))
	_, err = writer.Set(ctx, "/a", []byte("new"), -1)
	check(t, err)
	check(t, lone.Heal(ctx))
	for change := range reader.States(ctx) {
		if change.State == client.Connected && !change.ReadOnly {
			break
		}
	}
	check(t, reader.Sync(ctx, "/a"))
	if data, _, err := reader.Get(ctx, "/a"); err != nil || string(data) != "new" {
		t.Errorf("%q, %v", data, err)
	}
}
