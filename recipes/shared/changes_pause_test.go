package shared_test

import (
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/retry"
)

// No server is reached, and the client gives up at once. A follower of a value
// asks again, after pauses, and goes on when a server is back.
func TestSharedCountFollowedWithoutPatience(t *testing.T) {
	t.Parallel()
	for _, p := range []retry.Policy{retry.None(), retry.NTimes(3, 0)} {
		bubble(t, func(r *rig) {
			s := r.sharedCount(r.connect("a", client.WithRetry(p)), 1)
			time.AfterFunc(time.Second, r.srv.Stop)
			time.AfterFunc(time.Minute, r.srv.Resume)
			time.AfterFunc(70*time.Second, func() { r.check(r.srv.SetData(countPath, []byte{0, 0, 0, 7})) })
			failed, last := 0, int32(0)
			for now, err := range s.Changes(r.within(80 * time.Second)) {
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
			wantNoGoroutine(r.T)
		})
	}
}
