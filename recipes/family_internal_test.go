package recipes

import "testing"

// Nodes of elections of this library may be moved, and no others.
func TestMovable(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"_c_0c708091-6d54-8820-8594-f6fdb71d5f95-lock-0000000001":  true,
		"_c_0c708091-6d54-8f20-b594-f6fdb71d5f95-latch-0000000001": true,
		"_c_0c708091-6d54-8720-8594-f6fdb71d5f95-lock-0000000001":  false,
		"_c_0c708091-6d54-8020-8594-f6fdb71d5f95-latch-0000000001": false,
		"_c_0c708091-6d54-4820-8594-f6fdb71d5f95-latch-0000000001": false, // Curator's
		"_c_0c708091-6d54-8820-c594-f6fdb71d5f95-lock-0000000001":  false, // no UUID's variant
		"latch-0000000001": false,
	} {
		if c := (Contender{Path: "/e/" + name}); movable(c.Path) != want || c.Campaigns() != want {
			t.Errorf("%s: movable %v", name, !want)
		}
	}
	for range 64 { // the bits are random
		if name := inner.ProtectedPrefix() + "lock-0000000001"; movable(name) {
			t.Fatalf("%s is movable", name)
		}
	}
}
