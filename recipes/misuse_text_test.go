package recipes_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
)

// Refusals of misuse say, in these words, what was asked for and what to do.
func TestMisuseTexts(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		run  func(*rig, *client.Client) error
		want string // with an asterisk for what differs from run to run
	}{
		"permits within a lease": {
			func(r *rig, c *client.Client) error {
				l, err := r.semaphore(c, 2).Acquire(r.Ctx, 1)
				r.Check(err)
				_, err = r.semaphore(c, 2).Acquire(l.Context(), 2)
				return err
			}, "recipes: acquire /pools/db: would wait for itself: the caller holds 1 of the 2 permits and asks for 2 more; acquire all of them at once, or release the held ones first",
		},
		"behind a waiter": {
			func(r *rig, c *client.Client) error {
				s := r.semaphore(c, 1)
				_, err := s.Acquire(r.Ctx, 1)
				r.Check(err)
				go func() { _, _ = s.Acquire(r.Ctx, 1) }()
				time.Sleep(time.Second)
				_, err = s.TryAcquire(r.Ctx, 1)
				return err
			}, "recipes: try to acquire /pools/db: not free: waiter /pools/db/locks/*",
		},
		"ended context": {
			func(r *rig, c *client.Client) error {
				ctx, cancel := context.WithCancel(r.Ctx)
				cancel()
				_, err := r.mutex(c).Acquire(ctx)
				return err
			}, "recipes: acquire " + dir + ": the context had ended before: context canceled",
		},
		"ended context, permits": {
			func(r *rig, c *client.Client) error {
				ctx, cancel := context.WithCancel(r.Ctx)
				cancel()
				_, err := r.semaphore(c, 1).TryAcquire(ctx, 1)
				return err
			}, "recipes: try to acquire /pools/db: the context had ended before: context canceled",
		},
		"context of a released hold": {
			func(r *rig, c *client.Client) error {
				h := r.held(r.mutex(c))
				r.Check(h.Release(r.Ctx))
				_, err := r.rw(c).ReadLock().Acquire(h.Context())
				return err
			}, "recipes: acquire " + dir + ": the context had ended before, with a hold that is released: context canceled: lock released",
		},
		"several, in a context of a released hold": {
			func(r *rig, c *client.Client) error {
				h := r.held(r.mutex(c))
				r.Check(h.Release(r.Ctx))
				_, err := r.multiOf(r.mutex(c)).Acquire(h.Context())
				return err
			}, "recipes: acquire " + dir + ": the context had ended before, with a hold that is released: context canceled: lock released",
		},
		"upgrade": {
			func(r *rig, c *client.Client) error {
				h, err := r.rw(c).ReadLock().Acquire(r.Ctx)
				r.Check(err)
				_, err = r.rw(c).WriteLock().Acquire(h.Context())
				return err
			}, "recipes: acquire " + dir + ": would wait for itself: a read hold is not upgraded: release it first (" + dir + "/*)",
		},
		"without re-entry": {
			func(r *rig, c *client.Client) error {
				m := r.mutex(c, recipes.WithoutReentry())
				_, err := m.Acquire(r.held(m).Context())
				return err
			}, "recipes: acquire " + dir + ": would wait for itself: the lock was made WithoutReentry, so that the caller would wait for its own hold: release that first, or leave the option out (" + dir + "/*)",
		},
		"downgrade twice": {
			func(r *rig, c *client.Client) error {
				h, err := r.rw(c).WriteLock().Acquire(r.Ctx)
				r.Check(err)
				_, err = h.Downgrade(r.Ctx)
				r.Check(err)
				_, err = h.Downgrade(r.Ctx)
				testrig.WantErr(r.T, err, recipes.ErrReleased)
				return err
			}, "recipes: downgrade " + dir + ": lock released: this write hold was downgraded or released before",
		},
		"no contender": {
			func(r *rig, c *client.Client) error {
				return r.mutex(c).RequestRelease(r.Ctx, recipes.Contender{})
			}, "recipes: request the release of " + dir + ": a contender of another lock: it names no node; take one that Queue has listed",
		},
		"ACL without an entry": {
			func(_ *rig, c *client.Client) error {
				_, err := recipes.NewInterProcessMutex(c, dir, recipes.WithNodeACL())
				return err
			}, "recipes: WithNodeACL without an entry: zk: invalid ACL specified; leave the option out for the client's default",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				text := fmt.Sprint(tt.run(r, r.Connect("a")))
				before, after, _ := strings.Cut(tt.want, "*")
				if text != tt.want && (before == tt.want || !strings.HasPrefix(text, before) || !strings.HasSuffix(text, after)) {
					t.Errorf("error %q\nwant  %q", text, tt.want)
				}
			})
		})
	}
}
