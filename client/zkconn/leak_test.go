package zkconn_test

import (
	"regexp"
	"testing"
	"testing/synctest"

	"github.com/docent-go/docent/client/zkconn"
	"github.com/docent-go/docent/internal/testrig"
)

var frames = regexp.MustCompile(`docent/client/zkconn\.`)

// Close leaves no goroutine, whatever watches there are.
func TestCloseLeavesNoGoroutine(t *testing.T) {
	t.Parallel()
	testrig.Bubble(t, func(r *testrig.Rig) {
		conn, _ := zkconn.New(r.Ctx, r.Connect("a"))
		for range 10 {
			_, _, _, err := conn.ExistsW("/n")
			r.Check(err)
		}
		synctest.Wait()
		if n := len(testrig.Goroutines(t, frames)); n < 11 {
			t.Errorf("nothing is tested: %d goroutines", n)
		}
		conn.Close()
		if all := testrig.Goroutines(t, regexp.MustCompile(`docent/client/zkconn\.\(`)); len(all) > 0 {
			t.Errorf("left: %v", all)
		}
	})
}
