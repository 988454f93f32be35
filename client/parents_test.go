package client_test

import (
	"context"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/zktest"
)

// noContainers are servers of both kinds that do not know containers.
var noContainers = map[string][]zktest.Option{
	"Keeper before containers":    {zktest.WithProfile(zktest.ClickHouseKeeper), zktest.WithoutOps(zktest.OpCreateContainer)},
	"Keeper with containers":      {zktest.WithProfile(zktest.ClickHouseKeeper)},
	"ZooKeeper before containers": {zktest.WithoutOps(zktest.OpCreateContainer)},
}

// eachWithoutContainers runs f on each of them.
func eachWithoutContainers(t *testing.T, f func(*rig)) {
	t.Helper()
	for name, opts := range noContainers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, f, opts...)
		})
	}
}

func (r *rig) wantNode(path string, want bool) {
	r.Helper()
	if _, ok := r.Srv.Node(path); ok != want {
		r.Errorf("%s exists: %v, want %v", path, ok, want)
	}
}

// Parents are made while something is held, without a request that would cost the
// session, and are removed when they are empty.
func TestParentsWithoutContainers(t *testing.T) {
	t.Parallel()
	eachWithoutContainers(t, func(r *rig) {
		r.create("/locks", "")
		asked := 0
		r.Srv.OnRequest(func(q zktest.Request) {
			if q.Op == zktest.OpCreateContainer {
				asked++
			}
		})
		c := r.Connect("a")
		s, held, _ := r.held(c)
		for _, dir := range []string{"/deep/er/down", "/other"} {
			e, err := inner.CreateAndList(r.Ctx, s, newNode{Dir: dir, Prefix: "lock-"})
			r.Check(err)
			if n, _ := r.Srv.Node(dir); n.Container {
				t.Errorf("%s is a container", dir)
			}
			time.Sleep(3 * testrig.SessionTimeout)
			r.wantNode(dir, true)
			r.Check(s.Delete(r.Ctx, e.Path, client.AnyVersion))
		}
		r.Check(s.Err())
		time.Sleep(5 * testrig.SessionTimeout)
		r.wantNode("/deep", false)
		r.wantNode("/other", false)
		r.wantNode(held, true)
		if zookeeper := c.Product() == "Apache ZooKeeper"; zookeeper && asked != 1 || !zookeeper && asked != 0 {
			t.Errorf("%s was asked for %d containers", c.Product(), asked)
		}
		r.Check(c.Close())
		r.wantNode("/locks", true) // which another client had made
	})
}

// Close removes what is empty, however deep, and leaves what others use.
func TestCloseRemovesEmptyParents(t *testing.T) {
	t.Parallel()
	eachWithoutContainers(t, func(r *rig) {
		c, other := r.Connect("a"), r.Connect("b")
		for _, path := range []string{"/empty/a/n", "/used/b/n"} {
			_, err := c.Create(r.Ctx, path, nil, client.WithParents())
			r.Check(err)
			r.Check(c.Delete(r.Ctx, path, client.AnyVersion))
		}
		_, err := other.Create(r.Ctx, "/used/c", nil)
		r.Check(err)
		r.Check(c.Close())
		r.wantNode("/empty", false)
		r.wantNode("/used/b", false)
		r.wantNode("/used", true)
	})
}

// A node is not this client's any more when another client has written to it, or
// has made it again.
func TestParentsOfOthersStay(t *testing.T) {
	t.Parallel()
	eachWithoutContainers(t, func(r *rig) {
		c := r.Connect("a")
		for _, dir := range []string{"/written", "/again"} {
			_, err := c.Create(r.Ctx, dir+"/n", nil, client.WithParents())
			r.Check(err)
			r.Check(c.Delete(r.Ctx, dir+"/n", client.AnyVersion))
		}
		_, err := c.Set(r.Ctx, "/written", []byte("x"), client.AnyVersion)
		r.Check(err)
		r.Check(r.Srv.Delete("/again"))
		r.create("/again", "")
		time.Sleep(3 * testrig.SessionTimeout)
		r.Check(c.Close())
		r.wantNode("/written", true)
		r.wantNode("/again", true)
	})
}

// A parent that vanishes between its own create and that of the child is made
// again, here for each of several tries.
func TestParentThatVanishes(t *testing.T) {
	t.Parallel()
	eachWithoutContainers(t, func(r *rig) {
		c, other := r.Connect("a"), r.Connect("b")
		for range 50 {
			e, err := inner.CreateAndList(r.Ctx, r.Session(c), newNode{Dir: "/d", Prefix: "lock-"})
			r.Check(err)
			r.Check(c.Delete(r.Ctx, e.Path, client.AnyVersion))
			go func() { _ = other.Delete(r.Ctx, "/d", client.AnyVersion) }() // ends with its answer
		}
		time.Sleep(time.Second)
	})
}

// A parent that another client deletes as fast as this one makes it does not make a
// create fail before the retry policy does. The error then says who is to blame.
func TestParentThatAlwaysVanishes(t *testing.T) {
	t.Parallel()
	for name, create := range map[string]func(*client.Client, *rig, string) error{
		"create": func(c *client.Client, r *rig, path string) error {
			_, err := c.Create(r.Ctx, path, nil, client.WithParents())
			return err
		},
		"create or set": func(c *client.Client, r *rig, path string) error {
			_, err := c.CreateOrSet(r.Ctx, path, nil, client.WithPersistentParents())
			return err
		},
	} {
		for _, path := range []string{"/d/n", "/d/deep/er/n"} {
			t.Run(name+path, func(t *testing.T) {
				t.Parallel()
				bubble(t, func(r *rig) {
					deleted := r.Srv.BeforeApply(zktest.Match{PathPrefix: "/d/", Times: 100}, func(context.Context, zktest.Request) {
						_ = r.Srv.Delete("/d") // there is none yet at first
					})
					err := create(r.Connect("hasty", client.WithRetry(retry.None())), r, path)
					testrig.WantErr(t, err, client.ErrNoNode)
					wantOutcome(t, err, client.OutcomeRefused)
					wantErrText(t, err, "another client deletes the parent as fast as this one makes it", "pass client.WithParents")
					if !client.SafeToRetry(err) {
						t.Errorf("%v: a repeat can help", err)
					}
					r.Check(create(r.Connect("patient"), r, path))
					if deleted.Fired() != 100 {
						t.Errorf("deleted %d times", deleted.Fired())
					}
				})
			})
		}
	}
}
