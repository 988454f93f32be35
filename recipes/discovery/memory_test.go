//go:build !race

// The race detector keeps memory of its own; make explore runs this without it.

package discovery_test

import (
	"runtime"
	"testing"

	"github.com/docent-go/docent/internal/testrig"
)

// A directory of 10,000 instances, as Spring writes them, takes less than 20 MB.
func TestMemory(t *testing.T) { //nolint:paralleltest // other tests would be measured too
	ctx, _, d := crowd(t)
	s, err := d.Cache("orders")
	testrig.Check(t, err)
	before := live()
	testrig.Check(t, s.Start(ctx))
	taken := live() - before
	if n := len(s.Snapshot().Instances); n != many || taken > 20e6 || taken < 1e6 {
		t.Errorf("%d instances take %d bytes", n, taken)
	}
	t.Logf("%d bytes", taken)
	s.Close()
}

// live is how much memory is in use.
func live() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
