package shared_test

import (
	"context"
	"strings"
	"testing"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/zktest"
)

// An operator deletes the mark while an answer is lost. TrySet says what
// happened, or that it does not know; it never says what did not happen.
func TestTrySetMarkDeletedInDoubt(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		s, other := r.sharedCount(r.Connect("a"), 1), r.sharedCount(r.Connect("b"), 1)
		for name, tt := range map[string]struct {
			fault     func(zktest.Match) *zktest.Rule
			meanwhile func()
			set       bool // and what is known
			unknown   bool
		}{
			"not applied":              {r.Srv.DropBefore, func() {}, true, false}, // by the second try
			"applied":                  {r.Srv.LoseReply, func() {}, false, true},
			"another sets the same":    {r.Srv.DropBefore, func() { r.Check(other.Set(r.Ctx, 2)) }, false, true},
			"another sets it to 9":     {r.Srv.DropBefore, func() { r.Check(other.Set(r.Ctx, 9)) }, false, true},
			"the node is deleted":      {r.Srv.DropBefore, func() { r.Check(r.Srv.Delete(countPath)) }, false, true},
			"the node is made again":   {r.Srv.DropBefore, func() { r.Check(r.Srv.Delete(countPath)); r.wantCount(other, 1) }, false, true},
			"applied, and overwritten": {r.Srv.LoseReply, func() { r.Check(other.Set(r.Ctx, 9)) }, false, true},
		} {
			_ = r.Srv.Delete(countPath)
			prev := r.wantCount(s, 1)
			lost := tt.fault(zktest.Match{Op: zktest.OpMulti, Client: "a"})
			cleaned := r.Srv.BeforeApply(zktest.Match{Op: zktest.OpExists, PathPrefix: countPath, Client: "a"}, func(context.Context, zktest.Request) {
				for _, child := range r.Srv.Children(countPath) {
					if strings.HasSuffix(child, "-set") {
						r.Check(r.Srv.Delete(countPath + "/" + child))
					}
				}
				tt.meanwhile()
			})
			set, err := s.TrySet(r.Ctx, prev, 2)
			if lost.Fired() != 1 || cleaned.Fired() != 1 {
				r.Fatalf("%s: %d answers lost, %d marks deleted", name, lost.Fired(), cleaned.Fired())
			}
			if set != tt.set || client.UnknownOutcome(err) != tt.unknown || !tt.unknown && err != nil {
				r.Errorf("%s: TrySet = %v, %v", name, set, err)
			}
			if now := r.wantVersioned(s); set && (now.Value != 2 || now.Version != prev.Version+1) {
				r.Errorf("%s: set, and now %+v", name, now)
			}
			r.noMarks()
		}
	})
}

// Of a mark that may not be read nothing is known.
func TestTrySetMarkUnreadableInDoubt(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		s := r.sharedCount(r.Connect("a"), 1)
		for _, fault := range []func(zktest.Match) *zktest.Rule{r.Srv.DropBefore, r.Srv.LoseReply} {
			prev := r.wantVersioned(s)
			fault(zktest.Match{Op: zktest.OpMulti, Client: "a"})
			r.Srv.Fail(zktest.Match{Op: zktest.OpExists, PathPrefix: countPath, Client: "a"}, zktest.CodeNoAuth)
			set, err := s.TrySet(r.Ctx, prev, 2)
			if set || !client.UnknownOutcome(err) {
				r.Errorf("TrySet = %v, %v", set, err)
			}
			r.noMarks()
		}
	})
}
