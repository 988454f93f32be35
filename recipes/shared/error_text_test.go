package shared_test

import (
	"context"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/shared"
)

// An error about the data of a number says what to do with the node.
func TestDataErrorsSayWhatToDo(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		for path, data := range map[string]string{
			"/five": "12345", "/four": "1234", "/negative": "\xff\xff\xff\xff\xff\xff\xff\xff", "/most": "\x7f\xff\xff\xff\xff\xff\xff\xff",
		} {
			r.Check(r.Srv.Create(path, []byte(data)))
		}
		add := func(path string) error {
			n, err := shared.NewDistributedAtomicLong(c, path)
			r.Check(err)
			_, err = n.Increment(r.Ctx)
			return err
		}
		next := func(path string) error {
			s, err := shared.NewSequence(c, path, 5)
			r.Check(err)
			_, err = s.Next(r.Ctx)
			return err
		}
		testrig.WantErrText(t, add("/five"), "holds 5 bytes, not the 8 bytes", "delete it")
		testrig.WantErrText(t, add("/four"), "of a SharedCount or a DistributedAtomicInteger", "a path of its own")
		testrig.WantErrText(t, add("/most"), "does not fit", "WithWrapping")
		testrig.WantErrText(t, next("/negative"), "-1", "the highest id handed out")
		testrig.WantErrText(t, shared.ErrSequenceReplaced, "a new Sequence")
	})
}

// An operation whose context ends while no server is reached says why there is none.
func TestNoServerIsTheReason(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		n := r.long(r.Connect("a"))
		r.Srv.Refuse()
		r.Srv.CutAll()
		time.Sleep(time.Second)
		_, err := n.Increment(r.Within(time.Second))
		testrig.WantErr(t, err, context.DeadlineExceeded, client.ErrNotConnected)
		testrig.WantErrText(t, err, "connection refused")
		if !client.SafeToRetry(err) || client.UnknownOutcome(err) {
			t.Errorf("nothing was sent, and the error says otherwise: %v", err)
		}
		r.Srv.Accept()
	})
}
