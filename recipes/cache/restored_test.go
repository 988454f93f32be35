package cache_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/zktest"
)

// another moves the client of a rig to other servers, as after a restore from a backup, or
// after a new ensemble took the place of the old one. It returns the client, and the other server.
func (r *rig) another(opts ...zktest.Option) (c *client.Client, other *zktest.Server, move func()) {
	r.Helper()
	time.Sleep(time.Second) // a session's id is made of the time, and no two servers give the same
	other = zktest.NewServer(r.T, append([]zktest.Option{zktest.WithTick(time.Second)}, opts...)...)
	c, to := r.Movable("moved")
	return c, other, func() {
		to(other)
		r.Srv.Client("moved").Cut()
	}
}

// After a restore the nodes are older, and the transactions may go on behind those that the
// cache has seen. A snapshot shows what the servers have now.
func TestRestoredFromBackup(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		c, other, move := r.another()
		r.create("/app", "")
		r.create("/app/limit", "old")
		r.Check(other.Create("/app", nil))
		r.Check(other.Create("/app/limit", []byte("old")))
		r.Check(other.Create("/app/flag", []byte("on")))
		r.set("/app/limit", "new") // after the backup
		tree := r.start(c, "/app", opts...)
		for other.Zxid() <= r.Srv.Zxid() {
			r.Check(other.SetData("/", nil))
		}
		h := r.hear(tree)
		move()
		time.Sleep(2 * testrig.SessionTimeout)
		if got := text(tree.Snapshot()); got != "/app= /app/flag=on /app/limit=old" || !tree.Synced() {
			r.Errorf("%s, %v", got, tree.State())
		}
		r.wantHeard(h, tree, "began, stale, recreated /app, created /app/flag, recreated /app/limit, synced")
	})
}

// New servers count from 0. A cache takes them for servers that lag,
// for a session timeout. Then it tells of a gap, and shows what they have.
func TestNewServers(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		c, other, move := r.another()
		r.create("/app", "1")
		for i := range 20 {
			r.set("/app", strconv.Itoa(i))
		}
		r.Check(other.Create("/app", []byte("new")))
		tree := r.start(c, "/app", opts...)
		h := r.hear(tree)
		move()
		time.Sleep(testrig.SessionTimeout / 2)
		if tree.Synced() || text(tree.Snapshot()) != "/app=19" {
			r.Errorf("%s, %v", text(tree.Snapshot()), tree.State())
		}
		time.Sleep(testrig.SessionTimeout)
		if err := tree.State().Err; err == nil || !strings.Contains(err.Error(), "cache: the server is behind the snapshot") {
			r.Errorf("a cache of servers that lag: %v", err)
		}
		time.Sleep(2 * testrig.SessionTimeout)
		if got := text(tree.Snapshot()); got != "/app=new" || !tree.Synced() {
			r.Errorf("%s, %v", got, tree.State())
		}
		r.Check(other.SetData("/app", []byte("newer")))
		_, err := tree.Wait(r.Within(time.Minute), other.Zxid())
		r.Check(err)
		r.wantHeard(h, tree, "began, stale, gap, recreated /app, synced, updated /app")
	})
}
