package client_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/zktest"
)

// The observer hears of the same end as the caller, also where the call adds to it at last.
func TestObserverHearsWhatTheCallerHears(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		var heard client.OperationResult
		var text string
		observer := client.WithObserver(client.Observer{Operation: func(ctx context.Context, _ client.OperationInfo) (context.Context, func(client.OperationResult)) {
			return ctx, func(res client.OperationResult) {
				heard, text = res, ""
				if res.Err != nil {
					text = res.Err.Error()
				}
			}
		}})
		same := func(err error) {
			t.Helper()
			var op *client.OpError
			if !errors.As(err, &op) || heard.Outcome != op.Outcome || text != err.Error() {
				t.Errorf("the observer: %v, %s; the caller: %v", heard.Outcome, text, err)
			}
		}
		r.create("/d/leaf", "") // deleted first, with the first batch
		owner := r.Connect("owner")
		_, err := owner.Create(r.Ctx, "/d/b", nil, client.ACL(zk.WorldACL(zk.PermRead)...))
		r.Check(err)
		_, err = owner.Create(r.Ctx, "/d/b/x", nil)
		if err == nil {
			t.Fatal("nothing is tested")
		}
		r.create("/d/b/x", "")
		c := r.Connect("a", observer)
		err = c.DeleteAll(r.Ctx, "/d")
		wantOutcome(t, err, client.OutcomeUnknown)
		same(err)

		r.Srv.Fail(zktest.Match{Client: "b", Op: zktest.OpAuth, Times: zktest.Always}, zktest.CodeAuthFailed)
		b, err := r.Open("zk", "b", client.WithAuth("digest", "u:1"), client.WithLazyConnect(), observer)
		r.Check(err)
		time.Sleep(10 * time.Second)
		err = b.ReplaceAuth(r.Ctx, "digest", "u:2")
		wantErrText(t, err, "presents the new ones", "u:2")
		same(err)
	})
}
