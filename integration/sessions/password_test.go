package sessions_test

import (
	"encoding/hex"
	"math"
	"testing"

	"github.com/docent-go/docent/integration/sessions"
)

// The vectors come from java.util.Random itself.
func TestDerivedPassword(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		id   int64
		want string
	}{
		{0, "f22acd4a97e69d6d20a49bb638eadb38"},
		{1, "054cc74a37327db215e702e20c73f005"},
		{-1, "20f62cb5648dc2d771471c8a2486a9ee"},
		{72057594037927937, "054cc74a37327db215e702e20c73f005"},
		{102474478877741620, "b3042ffb06a7b38243c05abd35c80c88"},
		{math.MinInt64, "f22acd4a97e69d6d20a49bb638eadb38"},
		{math.MaxInt64, "20f62cb5648dc2d771471c8a2486a9ee"},
		{3007405056, "60b420bb3851d9d47acb933dbe70399b"},
	} {
		if got := hex.EncodeToString(sessions.DerivedPassword(tt.id)); got != tt.want {
			t.Errorf("DerivedPassword(%d) = %s, want %s", tt.id, got, tt.want)
		}
	}
}
