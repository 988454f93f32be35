package zkserver_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/zktest"
)

// TestCommitsAreSeenBeforeAnswers observes what a quorum decides while the
// member that was asked cannot tell.
func TestCommitsAreSeenBeforeAnswers(t *testing.T) {
	t.Parallel()
	ensemble(t, func(t *testing.T, e *zktest.Ensemble) {
		var seen []string
		e.OnCommit(func(c zktest.Commit) {
			seen = append(seen, fmt.Sprintf("%#x %v %v -%v", c.Zxid, c.Op, c.Created, c.Deleted))
		})
		a := on(t, e, "a", 1)
		must(t, a, 1, ephemeral("/a"), 0)
		e.CutOneWay(3, 1)
		if _, err := a.send(1, ephemeral("/b")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(oneTick)
		e.Server(3).ExpireSession(a.session)
		time.Sleep(oneTick)
		synctest.Wait()
		want := []string{"0x100000002 create [/a] -[]", "0x100000003 create [/b] -[]"}
		if len(seen) != 3 || !slices.Equal(seen[:2], want) {
			t.Fatalf("commits %q", seen)
		}
		if end := seen[2]; end != "0x100000004 closeSession [] -[/a /b]" && end != "0x100000004 closeSession [] -[/b /a]" {
			t.Errorf("the last commit is %s", end)
		}
	})
}

// TestCommitsOfAServerAlone checks what a server on its own tells. It tells what
// a multi made, what a failed one did not, and what was deleted with a session.
func TestCommitsOfAServerAlone(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		var seen []string
		srv.OnCommit(func(c zktest.Commit) {
			seen = append(seen, fmt.Sprintf("%#x %v %v -%v", c.Zxid, c.Op, c.Created, c.Deleted))
		})
		a := memory(t, srv.Client("a"))
		must(t, a, 1, ephemeral("/a"), 0)
		must(t, a, 14, body(
			int32(1), false, int32(-1), "/s-", []byte{}, openACL, int32(3), // ephemeral and sequential
			int32(2), false, int32(-1), "/a", int32(-1),
			int32(-1), true, int32(-1)), 0)
		must(t, a, 14, body(
			int32(1), false, int32(-1), "/never", []byte{}, openACL, int32(1),
			int32(2), false, int32(-1), "/a", int32(-1),
			int32(-1), true, int32(-1)), 0)
		must(t, a, 3, body("/s-0000000001", false), 0)
		srv.ExpireSession(a.session)
		synctest.Wait()
		want := []string{
			"0x2 create [/a] -[]", "0x3 multi [/s-0000000001] -[/a]", "0x5 closeSession [] -[/s-0000000001]",
		}
		if !slices.Equal(seen, want) {
			t.Errorf("commits %q, want %q", seen, want)
		}
	})
}
