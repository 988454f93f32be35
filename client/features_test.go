package client_test

import (
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/zktest"
)

// What ClickHouse Keeper may not know is never sent there: the session lives on.
func TestKeeperIsAskedForNothingUnknown(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		s := r.Session(c)
		for what, opt := range map[string]client.CreateOption{
			"container nodes": client.Container(),
			"TTL nodes":       client.TTL(time.Minute),
		} {
			_, err := c.Create(r.Ctx, "/n", nil, opt)
			testrig.WantErr(t, err, client.ErrUnsupported)
			wantOutcome(t, err, client.OutcomeNeverSent)
			wantErrText(t, err, what, "code")
			wantErrText(t, err, "these are ClickHouse Keeper", "zk:")
		}
		r.Check(s.Err())
		if p := c.Product(); p != "ClickHouse Keeper" {
			t.Errorf("product %q", p)
		}
	}, zktest.WithProfile(zktest.ClickHouseKeeper))
}

// A ZooKeeper without containers says so once, and is not asked again: each time
// would cost a connection.
func TestOldServersAreAskedOnce(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		s := r.Session(c)
		_, err := c.Create(r.Ctx, "/n", nil, client.Container())
		testrig.WantErr(t, err, client.ErrUnsupported, client.Code(-6))
		wantOutcome(t, err, client.OutcomeRefused)
		_, err = c.Create(r.Ctx, "/n", nil, client.Container())
		testrig.WantErr(t, err, client.ErrUnsupported)
		wantOutcome(t, err, client.OutcomeNeverSent)
		r.Check(s.Err())
		if p := c.Product(); p != "Apache ZooKeeper" {
			t.Errorf("product %q", p)
		}
	}, zktest.WithoutOps(zktest.OpCreateContainer))
}
