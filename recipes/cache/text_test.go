package cache_test

import (
	"fmt"
	"testing"

	"github.com/docent-go/docent/recipes/cache"
)

// A change is printed as text, and not as pointers. What is in the data stays out of logs.
func TestChangeText(t *testing.T) {
	t.Parallel()
	node := &cache.Node[string]{Path: "/pool/assign", Value: "secret"}
	for want, c := range map[string]cache.Change[string]{
		"updated /pool/assign, live, zxid 23":   {Kind: cache.Updated, Path: "/pool/assign", Old: node, New: node, Zxid: 23},
		"deleted /pool/assign, resync, zxid 24": {Kind: cache.Deleted, Cause: cache.Resync, Path: "/pool/assign", Old: node, Zxid: 24},
		"gap, skipped, zxid 25":                 {Kind: cache.Gap, Cause: cache.Skipped, Zxid: 25},
	} {
		if got := fmt.Sprint(c); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Each kind of cache tells which path it follows, as in the namespace of its client.
func TestPath(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		value, err := cache.NewValue(c, "/config", cache.Text)
		r.Check(err)
		children, err := cache.NewChildren(c, "/config", cache.Text)
		r.Check(err)
		tree, err := cache.NewTree(c, "/config", cache.Text)
		r.Check(err)
		for _, of := range []interface{ Path() string }{value, children, tree} {
			if of.Path() != "/config" {
				r.Errorf("%T: %q", of, of.Path())
			}
		}
	})
}
