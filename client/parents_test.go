package client_test

import (
	"testing"
	"time"

	"github.com/docent-go/docent/client"
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
	if _, ok := r.srv.Node(path); ok != want {
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
		r.srv.OnRequest(func(q zktest.Request) {
			if q.Op == zktest.OpCreateContainer {
				asked++
			}
		})
		c := r.connect("a")
		s, held, _ := r.held(c)
		for _, dir := range []string{"/deep/er/down", "/other"} {
			e, err := inner.CreateAndList(r.ctx, s, newNode{Dir: dir, Prefix: "lock-"})
			r.check(err)
			if n, _ := r.srv.Node(dir); n.Container {
				t.Errorf("%s is a container", dir)
			}
			time.Sleep(3 * sessionTimeout)
			r.wantNode(dir, true)
			r.check(s.Delete(r.ctx, e.Path, client.AnyVersion))
		}
		r.check(s.Err())
		time.Sleep(5 * sessionTimeout)
		r.wantNode("/deep", false)
		r.wantNode("/other", false)
		r.wantNode(held, true)
		if zookeeper := c.Product() == "Apache ZooKeeper"; zookeeper && asked != 1 || !zookeeper && asked != 0 {
			t.Errorf("%s was asked for %d containers", c.Product(), asked)
		}
		r.check(c.Close())
		r.wantNode("/locks", true) // which another client had made
	})
}

// Close removes what is empty, however deep, and leaves what others use.
func TestCloseRemovesEmptyParents(t *testing.T) {
	t.Parallel()
	eachWithoutContainers(t, func(r *rig) {
		c, other := r.connect("a"), r.connect("b")
		for _, path := range []string{"/empty/a/n", "/used/b/n"} {
			_, err := c.Create(r.ctx, path, nil, client.WithParents())
			r.check(err)
			r.check(c.Delete(r.ctx, path, client.AnyVersion))
		}
		_, err := other.Create(r.ctx, "/used/c", nil)
		r.check(err)
		r.check(c.Close())
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
		c := r.connect("a")
		for _, dir := range []string{"/written", "/again"} {
			_, err := c.Create(r.ctx, dir+"/n", nil, client.WithParents())
			r.check(err)
			r.check(c.Delete(r.ctx, dir+"/n", client.AnyVersion))
		}
		_, err := c.Set(r.ctx, "/written", []byte("x"), client.AnyVersion)
		r.check(err)
		r.check(r.srv.Delete("/again"))
		r.create("/again", "")
		time.Sleep(3 * sessionTimeout)
		r.check(c.Close())
		r.wantNode("/written", true)
		r.wantNode("/again", true)
	})
}

// A parent that vanishes between its own create and that of the child is made
// again, here for each of several tries.
func TestParentThatVanishes(t *testing.T) {
	t.Parallel()
	eachWithoutContainers(t, func(r *rig) {
		c, other := r.connect("a"), r.connect("b")
		for range 50 {
			e, err := inner.CreateAndList(r.ctx, r.session(c), newNode{Dir: "/d", Prefix: "lock-"})
			r.check(err)
			r.check(c.Delete(r.ctx, e.Path, client.AnyVersion))
			go func() { _ = other.Delete(r.ctx, "/d", client.AnyVersion) }() // ends with its answer
		}
		time.Sleep(time.Second)
	})
}
