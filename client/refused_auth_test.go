package client_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/zktest"
)

// Credentials that the servers begin to refuse end the session once. After that the client
// does not say that it is connected, and sends nothing, until they are taken again.
func TestRefusedCredentialsDoNotFlap(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a", client.WithAuth("digest", "u:p"))
		_, err := c.Create(r.Ctx, "/d", nil)
		r.Check(err)
		states := map[client.State]int{}
		watching, stop := context.WithCancel(r.Ctx)
		watched := make(chan struct{})
		go func() {
			defer close(watched)
			for change := range c.States(watching) {
				states[change.State]++
			}
		}()
		refused := r.Srv.Fail(zktest.Match{Client: "a", Op: zktest.OpAuth, Times: zktest.Always}, zktest.CodeAuthFailed)
		time.Sleep(time.Second)
		r.Srv.Client("a").Cut()
		said := map[string]int{}
		for i := range 600 {
			ctx, cancel := context.WithTimeout(r.Ctx, 2*time.Second)
			_, err := c.Create(ctx, fmt.Sprintf("/d/%d", i), nil)
			cancel()
			switch {
			case errors.Is(err, client.ErrAuthFailed) && !client.UnknownOutcome(err):
				said["refused"]++
			default:
				said[fmt.Sprint(err)]++
			}
			time.Sleep(100 * time.Millisecond)
		}
		stop()
		<-watched
		if states[client.Connected] > 2 || states[client.Lost] != 1 {
			r.Errorf("in a minute of refused credentials: %v", states)
		}
		if said["refused"] < 598 {
			r.Errorf("creates said %v", said)
		}
		if refused.Fired() < 10 {
			r.Fatalf("nothing is tested: %d refusals", refused.Fired())
		}
		if n := len(r.Srv.Sessions()); n > 3 {
			r.Errorf("%d sessions on the server", n)
		}
		refused.Remove()
		_, err = c.Create(r.Within(time.Minute), "/d/at-last", nil)
		for errors.Is(err, client.ErrAuthFailed) {
			time.Sleep(100 * time.Millisecond)
			_, err = c.Create(r.Within(time.Minute), "/d/at-last", nil)
		}
		r.Check(err)
	})
}
