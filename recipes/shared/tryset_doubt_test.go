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
		s, other := r.sharedCount(r.connect("a"), 1), r.sharedCount(r.connect("b"), 1)
		for name, tt := range map[string]struct {
			fault     func(zktest.Match) *zktest.Rule
			meanwhile func()
			set       bool // and what is known
			unknown   bool
		}{
			"not applied":              {r.srv.DropBefore, func() {}, true, false}, // by the second try
			"applied":                  {r.srv.LoseReply, func() {}, false, true},
			"another sets the same":    {r.srv.DropBefore, func() { r.check(other.Set(r.ctx, 2)) }, false, true},
			"another sets it to 9":     {r.srv.DropBefore, func() { r.check(other.Set(r.ctx, 9)) }, false, true},
			"the node is deleted":      {r.srv.DropBefore, func() { r.check(r.srv.Delete(countPath)) }, false, true},
			"the node is made again":   {r.srv.DropBefore, func() { r.check(r.srv.Delete(countPath)); r.wantCount(other, 1) }, false, true},
			"applied, and overwritten": {r.srv.LoseReply, func() { r.check(other.Set(r.ctx, 9)) }, false, true},
		} {
			_ = r.srv.Delete(countPath)
			prev := r.wantCount(s, 1)
			lost := tt.fault(zktest.Match{Op: zktest.OpMulti, Client: "a"})
			cleaned := r.srv.BeforeApply(zktest.Match{Op: zktest.OpExists, PathPrefix: countPath, Client: "a"}, func(context.Context, zktest.Request) {
				for _, child := range r.srv.Children(countPath) {
					if strings.HasSuffix(child, "-set") {
						r.check(r.srv.Delete(countPath + "/" + child))
					}
				}
				tt.meanwhile()
			})
			set, err := s.TrySet(r.ctx, prev, 2)
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
		s := r.sharedCount(r.connect("a"), 1)
		for _, fault := range []func(zktest.Match) *zktest.Rule{r.srv.DropBefore, r.srv.LoseReply} {
			prev := r.wantVersioned(s)
			fault(zktest.Match{Op: zktest.OpMulti, Client: "a"})
			r.srv.Fail(zktest.Match{Op: zktest.OpExists, PathPrefix: countPath, Client: "a"}, zktest.CodeNoAuth)
			set, err := s.TrySet(r.ctx, prev, 2)
			if set || !client.UnknownOutcome(err) {
				r.Errorf("TrySet = %v, %v", set, err)
			}
			r.noMarks()
		}
	})
}
