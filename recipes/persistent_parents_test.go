package recipes_test

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
)

// withPersistentParents are the recipes with the option, and what stays of them.
func (r *rig) withPersistentParents(c *client.Client) map[string]struct {
	acquire acquirer
	stays   []string
} {
	r.Helper()
	type way = struct {
		acquire acquirer
		stays   []string
	}
	o := recipes.WithPersistentParents()
	m := r.mutex(c, o)
	rw, err := recipes.NewInterProcessReadWriteLock(c, dir, o)
	r.Check(err)
	multi, err := recipes.NewInterProcessMultiLock(m)
	r.Check(err)
	s, err := recipes.NewInterProcessSemaphoreV2(c, dir, 2, o)
	r.Check(err)
	sm, err := recipes.NewInterProcessSemaphoreMutex(c, dir, o)
	r.Check(err)
	latch, err := recipes.NewLeaderLatch(c, dir, o)
	r.Check(err)
	selector, err := recipes.NewLeaderSelector(c, dir, o)
	r.Check(err)
	below := []string{dir, dir + "/leases", dir + "/locks"}
	return map[string]way{
		"mutex": {as(m.Acquire), []string{dir}}, "multi-lock": {as(multi.Acquire), []string{dir}},
		"read": {as(rw.ReadLock().Acquire), []string{dir}}, "write": {as(rw.WriteLock().Acquire), []string{dir}},
		"semaphore":       {func(ctx context.Context) (io.Closer, error) { return s.Acquire(ctx, 2) }, below},
		"semaphore mutex": {as(sm.Acquire), below},
		"latch":           {as(latch.Campaign), []string{dir}}, "selector": {as(selector.Campaign), []string{dir}},
	}
}

// The servers sweep empty containers, with their data. The directory of a lock with
// persistent parents stays, and so does what a program has written there.
func TestPersistentParents(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"mutex", "multi-lock", "read", "write", "semaphore", "semaphore mutex", "latch", "selector"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				c := r.Connect("a")
				way := r.withPersistentParents(c)[kind]
				for range 4 { // also by the ways of a lock in constant use
					h, err := way.acquire(r.Ctx)
					r.Check(err)
					_, err = c.Set(r.Ctx, dir, []byte("10.0.0.7:8200"), client.AnyVersion)
					r.Check(err)
					r.Check(h.Close())
				}
				time.Sleep(30 * time.Minute)
				for _, path := range append(way.stays, "/locks") {
					if exists, _, err := c.Exists(r.Ctx, path); err != nil || !exists {
						r.Errorf("%s stands: %v, %v", path, exists, err)
					}
				}
				if data, _, err := c.Get(r.Ctx, dir); err != nil || string(data) != "10.0.0.7:8200" {
					r.Errorf("%s says %q, %v", dir, data, err)
				}
			})
		})
	}
}

// Without the option the directory is swept.
func TestContainerParents(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		r.Check(r.held(r.mutex(c)).Close())
		time.Sleep(30 * time.Minute)
		if exists, _, err := c.Exists(r.Ctx, "/locks"); err != nil || exists {
			r.Errorf("/locks stands: %v, %v", exists, err)
		}
	})
}
