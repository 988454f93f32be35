package shared_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/shared"
)

func wantText(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error, want one that says %q", parts)
		return
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not say %q", err, part)
		}
	}
}

// An error about the data of a number says what to do with the node.
func TestDataErrorsSayWhatToDo(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		for path, data := range map[string]string{
			"/five": "12345", "/four": "1234", "/negative": "\xff\xff\xff\xff\xff\xff\xff\xff", "/most": "\x7f\xff\xff\xff\xff\xff\xff\xff",
		} {
			r.check(r.srv.Create(path, []byte(data)))
		}
		add := func(path string) error {
			n, err := shared.NewDistributedAtomicLong(c, path)
			r.check(err)
			_, err = n.Increment(r.ctx)
			return err
		}
		next := func(path string) error {
			s, err := shared.NewSequence(c, path, 5)
			r.check(err)
			_, err = s.Next(r.ctx)
			return err
		}
		wantText(t, add("/five"), "holds 5 bytes, not the 8 bytes", "delete it")
		wantText(t, add("/four"), "of a SharedCount or a DistributedAtomicInteger", "a path of its own")
		wantText(t, add("/most"), "does not fit", "WithWrapping")
		wantText(t, next("/negative"), "-1", "the highest id handed out")
		wantText(t, shared.ErrSequenceReplaced, "a new Sequence")
	})
}

// An operation whose context ends while no server is reached says why there is none.
func TestNoServerIsTheReason(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		n := r.long(r.connect("a"))
		r.srv.Refuse()
		r.srv.CutAll()
		time.Sleep(time.Second)
		_, err := n.Increment(r.within(time.Second))
		wantErr(t, err, context.DeadlineExceeded, client.ErrNotConnected)
		wantText(t, err, "connection refused")
		if !client.SafeToRetry(err) || client.UnknownOutcome(err) {
			t.Errorf("nothing was sent, and the error says otherwise: %v", err)
		}
		r.srv.Accept()
	})
}
