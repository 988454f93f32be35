package barrier_test

import (
	"context"
	"testing"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
)

// The client or its session ends while an Enter makes sure that its node stands. The
// member is told: Enter fails, or makes the node again in the next session.
func TestSessionEndsAtTheEndOfEnter(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*rig, *client.Client, *client.Session){
		"client": func(r *rig, c *client.Client, _ *client.Session) { r.Check(c.Close()) },
		"session": func(r *rig, _ *client.Client, s *client.Session) {
			r.Srv.ExpireSession(s.ID())
			<-s.Context().Done()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				var c *client.Client
				var s *client.Session
				c = r.Connect("a", client.WithObserver(client.Observer{
					Operation: func(ctx context.Context, op client.OperationInfo) (context.Context, func(client.OperationResult)) {
						if op.Op != "exists" || op.Path == ready || s != nil {
							return ctx, nil
						}
						return ctx, func(client.OperationResult) {
							var err error
							s, err = c.Session(r.Ctx)
							r.Check(err)
							end(r, c, s)
						}
					},
				}))
				m, err := r.double(c, 1).Enter(r.Ctx)
				switch {
				case s == nil:
					r.Error("nothing was tested")
				case name == "client":
					testrig.WantErr(t, err, client.ErrClosed)
				default:
					r.Check(err)
					r.Check(m.Context().Err())
					r.standing(1)
					r.gone(r.leave(r.Ctx, m))
				}
			})
		})
	}
}
