package client_test

import (
	"context"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/zktest"
)

// enforceAuth makes the server answer requests of clients that have not authenticated as
// ZooKeeper 3.9 does with enforce.auth.enabled, or with sessionRequireClientSASLAuth: with
// -124, and then it closes the connection. Here it closes it behind the calls of the test
// alone, so no call meets the end of a connection that is not its own.
func (r *rig) enforceAuth() (stop func()) {
	barred := func(q zktest.Request) bool { return q.Op != zktest.OpCloseSession && q.Op != zktest.OpAuth }
	refuse := r.Srv.Fail(zktest.Match{Times: zktest.Always, Where: barred}, zktest.CodeSessionClosedSASL)
	hangUp := r.Srv.DropAfter(zktest.Match{Times: zktest.Always, Where: func(q zktest.Request) bool {
		return barred(q) && q.Path != "/keeper/api_version"
	}})
	return func() { refuse.Remove(); hangUp.Remove(); r.Srv.CutAll() }
}

// Servers that want their clients to authenticate are no ClickHouse Keeper: the session
// outlives the connections, and every call says what is missing.
func TestEnforcedAuth(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		stop := r.enforceAuth()
		c := r.Connect("a")
		s := r.Session(c)
		for name, call := range map[string]func(context.Context) error{
			"get":       func(ctx context.Context) error { _, _, err := c.Get(ctx, "/zookeeper"); return err },
			"create":    func(ctx context.Context) error { _, err := c.Create(ctx, "/n", nil); return err },
			"container": func(ctx context.Context) error { _, err := c.Create(ctx, "/n", nil, client.Container()); return err },
			"hold": func(ctx context.Context) error {
				_, err := inner.Hold(ctx, r.Session(c), func(error) {}, "/n")
				return err
			},
		} {
			time.Sleep(5 * time.Second) // there is a connection again, and the product was asked for
			err := call(r.Within(time.Minute))
			testrig.WantErr(t, err, client.Code(-124))
			wantErrText(t, err, "the servers want their clients to authenticate: pass client.WithAuth with a scheme that they accept", "Keeper")
			if name != "hold" { // it has no operation of its own
				wantOutcome(t, err, client.OutcomeRefused)
			}
		}
		if p := c.Product(); p != "" {
			t.Errorf("product %q", p)
		}
		stop()
		time.Sleep(5 * time.Second)
		if p := c.Product(); p != "Apache ZooKeeper" {
			t.Errorf("product %q", p)
		}
		_, err := c.Create(r.Ctx, "/n", nil, client.Container())
		r.Check(err)
		r.Check(s.Err())
	})
}

// Connect asks nothing about a chroot that was not given.
func TestEnforcedAuthAtConnect(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.enforceAuth()
		_, err := r.Open("zk:2181", "a", client.WithAuth("digest", "user:password"))
		testrig.WantErr(t, err, client.Code(-124))
		wantErrText(t, err, "client: connect: exists /: ", "chroot")
	})
}
