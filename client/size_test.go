package client_test

import (
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/zktest"
)

// suspensions counts how often c loses its connection from now on.
func (r *rig) suspensions(c *client.Client) func() int {
	from := len(r.srv.Log())
	return func() (n int) {
		for _, q := range r.srv.Log()[from:] {
			if q.Op == zktest.OpConnect {
				n++
			}
		}
		return n
	}
}

// What a server would answer by dropping the connection is refused before it is
// sent, whatever it is made of: the sum counts.
func TestTooLargeIsNeverSent(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		s := r.session(c)
		for _, path := range []string{"/g", "/v", "/w"} {
			r.create(path, "")
		}
		lost := r.suspensions(c)
		half := make([]byte, 600<<10)
		node := newNode{Dir: "/g", Prefix: "lock-", Data: half}
		for name, op := range map[string]func() error{
			"group and part": func() error {
				_, err := inner.CreateGroup(r.ctx, s, []newNode{node}, client.SetOp("/v", half, client.AnyVersion))
				return err
			},
			"two nodes": func() error {
				_, err := inner.CreateGroup(r.ctx, s, []newNode{node, node})
				return err
			},
			"two parts": func() error {
				_, err := c.Multi(r.ctx, client.SetOp("/v", half, client.AnyVersion), client.SetOp("/w", half, client.AnyVersion))
				return err
			},
			"node": func() error {
				_, err := c.Create(r.ctx, "/n", make([]byte, client.DefaultMaxRequest-10))
				return err
			},
			"protected node": func() error {
				_, err := c.Create(r.ctx, "/n", make([]byte, client.DefaultMaxRequest-80), client.Protected())
				return err
			},
			"data": func() error {
				_, err := c.Set(r.ctx, "/v", make([]byte, client.DefaultMaxRequest), client.AnyVersion)
				return err
			},
			"path": func() error { return c.Delete(r.ctx, "/"+strings.Repeat("x", client.DefaultMaxRequest), 0) },
			"checks": func() error {
				parts := make([]client.Op, 30_000)
				for i := range parts {
					parts[i] = client.CheckOp("/"+strings.Repeat("x", 30), 0)
				}
				_, err := c.Multi(r.ctx, parts...)
				return err
			},
		} {
			began := time.Now()
			err := op()
			wantErr(t, err, client.ErrTooLarge)
			wantOutcome(t, err, client.OutcomeNeverSent)
			wantErrText(t, err, "jute.maxbuffer", "tries")
			if took := time.Since(began); took != 0 {
				t.Errorf("%s: refused after %v", name, took)
			}
		}
		if n := lost(); n != 0 {
			t.Errorf("the connection was lost %d times", n)
		}
		if kids := r.named("/g"); len(kids) != 0 {
			t.Errorf("made %v", kids)
		}
	})
}

// The largest request that a server takes is sent.
func TestLargestRequestIsSent(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		s := r.session(c)
		r.create("/v", "")
		lost := r.suspensions(c)
		const header, set = 8, 4 + len("/v") + 4 + 4
		largest := make([]byte, client.DefaultMaxRequest-header-set)
		_, err := c.Set(r.ctx, "/v", largest, client.AnyVersion)
		r.check(err)
		_, err = inner.CreateGroup(r.ctx, s, []newNode{{Dir: "/g", Prefix: "n-", Data: largest[:len(largest)/2]}},
			client.SetOp("/v", largest[:len(largest)/2-500], client.AnyVersion))
		r.check(err)
		if n := lost(); n != 0 {
			t.Errorf("the connection was lost %d times", n)
		}
	})
}

// A check of more nodes than one request has room for takes several.
func TestConfirmOfManyNodes(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		s := r.session(c)
		path, missing := "/"+strings.Repeat("x", 200), "/"+strings.Repeat("y", 200)
		r.create(path, "")
		paths := make([]string, 12_000)
		for i := range paths {
			paths[i] = path
		}
		whole := r.holdAs(s, paths...)
		paths[len(paths)-1] = missing
		torn := r.holdAs(s, paths...)
		lost := r.suspensions(c)
		r.srv.ResetCounts()
		r.check(whole.Confirm(r.ctx))
		if n := r.srv.Count(zktest.OpMulti); n != 3 {
			t.Errorf("%d transactions", n)
		}
		err := torn.Confirm(r.ctx)
		wantErr(t, err, zk.ErrNoNode)
		wantOutcome(t, err, client.OutcomeRefused)
		wantErrText(t, err, "part 11999 (check "+missing, "tries")
		if n := lost(); n != 0 {
			t.Errorf("the connection was lost %d times", n)
		}
	})
}
