package client_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/zktest"
)

// Every removal that is begun ends, and says so.
func TestRemovalHook(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		do   func(*rig, *client.Client, *client.Session)
		want []string
	}{
		"at once": {
			do:   func(*rig, *client.Client, *client.Session) {},
			want: []string{"owed 0", "done 1"},
		},
		"after two tries": {
			do: func(r *rig, _ *client.Client, _ *client.Session) {
				r.Srv.Fail(zktest.Match{Op: zktest.OpDelete, Times: 2}, zktest.CodeNoAuth)
			},
			want: []string{"owed 0", "failed 1", "failed 2", "done 3"},
		},
		"the session ends": {
			do: func(r *rig, _ *client.Client, s *client.Session) {
				r.Srv.Fail(zktest.Match{Op: zktest.OpDelete, Times: 1}, zktest.CodeNoAuth)
				r.Srv.ExpireSession(s.ID())
			},
			want: []string{"owed 0", "failed 1", "with session 1"},
		},
		"the client is closed": {
			do: func(r *rig, c *client.Client, _ *client.Session) {
				r.Srv.Ignore(zktest.Match{Op: zktest.OpDelete, Times: zktest.Always})
				go func() { _ = c.CloseContext(r.Within(10 * time.Second)) }()
			},
			want: []string{"owed 0", "with session 0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				var told notices[client.RemovalInfo]
				c := r.Connect("a", client.WithNamespace("ns"), client.WithObserver(client.Observer{Removal: told.add}))
				s := r.Session(c)
				_, err := s.Create(r.Ctx, "/a", nil, client.Ephemeral(), client.WithParents())
				r.Check(err)
				begun := time.Now()
				r.Check(inner.DeleteInBackground(s, "/a", nil))
				tt.do(r, c, s)
				time.Sleep(time.Minute)
				var got []string
				for _, i := range told.take() {
					got = append(got, fmt.Sprintf("%v %d", i.State, i.Tries))
					if i.Path != "/ns/a" || !i.Begun.Equal(begun) || (i.Err != nil) != (i.State == client.RemovalFailed) {
						t.Errorf("removal: %+v", i)
					}
				}
				if !slices.Equal(got, tt.want) {
					t.Errorf("the hook was told %q, want %q", got, tt.want)
				}
			})
		})
	}
}

// What a client cannot remove any more is given up, with the reason.
func TestRemovalHookGivenUp(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		var told notices[client.RemovalInfo]
		c := r.Connect("a", client.WithObserver(client.Observer{Removal: told.add}))
		r.Srv.Ignore(zktest.Match{Op: zktest.OpCreate})
		_, err := c.Create(r.Within(time.Second), "/n", nil, client.Protected()) // it would stay
		wantOutcome(t, err, client.OutcomeUnknown)
		r.Srv.Partition()
		testrig.WantErr(t, c.CloseContext(r.Within(time.Second)), context.DeadlineExceeded)
		time.Sleep(time.Minute)
		got := told.take()
		if len(got) == 0 || got[len(got)-1].State != client.RemovalGivenUp || !errors.Is(got[len(got)-1].Err, client.ErrClosed) {
			t.Errorf("the hook was told %+v", got)
		}
		r.Srv.Heal()
	})
}
