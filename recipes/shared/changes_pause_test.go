package shared_test

import (
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/retry"
)

// No server is reached, and the client gives up at once. A follower of a value
// asks again, after pauses, and goes on when a server is back.
func TestSharedCountFollowedWithoutPatience(t *testing.T) {
	t.Parallel()
	for _, p := range []retry.Policy{retry.None(), retry.NTimes(3, 0)} {
		bubble(t, func(r *rig) {
			s := r.sharedCount(r.Connect("a", client.WithRetry(p)), 1)
			time.AfterFunc(time.Second, r.Srv.Stop)
			time.AfterFunc(time.Minute, r.Srv.Resume)
			time.AfterFunc(70*time.Second, func() { r.Check(r.Srv.SetData(countPath, []byte{0, 0, 0, 7})) })
			failed, last := 0, int32(0)
			for now, err := range s.Changes(r.Within(80 * time.Second)) {
				if last = now.Value; err != nil {
					failed++
				}
				if failed > 1000 {
					break
				}
			}
			if failed == 0 || failed > 1000 || last != 7 {
				r.Errorf("%v: %d errors in a minute without a server; followed to %d", p, failed, last)
			}
			testrig.WantNoGoroutine(r.T, ourFrames)
		})
	}
}
