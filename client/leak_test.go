package client_test

import (
	"regexp"
	"testing"
	"testing/synctest"

	"github.com/docent-go/docent/internal/testrig"
)

// ourFrames are what goroutines of the client and of go-zookeeper run, and those of the
// test's server do not.
var ourFrames = regexp.MustCompile(`docent/(client|client/internal/\w+|retry|internal/(wire|clock|ctxerr|runonce|inside))\.|go-zookeeper/zk\.`)

// wantQuiet fails if a goroutine of the client or of go-zookeeper still runs
// in the caller's bubble, now: not after something has timed out.
func wantQuiet(t *testing.T) {
	t.Helper()
	testrig.WantNoGoroutine(t, ourFrames)
}

// The check sees what it looks for.
func TestLeakCheck(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		synctest.Wait()
		if n := len(testrig.Goroutines(r.T, ourFrames)); n < 3 {
			r.Errorf("%d goroutines of a client that is connected", n)
		}
		r.Check(c.CloseContext(r.Ctx))
		wantQuiet(r.T)
	})
}
