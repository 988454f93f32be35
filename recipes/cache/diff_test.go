package cache_test

import (
	"strings"
	"testing"

	"github.com/docent-go/docent/recipes/cache"
)

// Diff yields what differs between two snapshots, in the order of the paths, either way round.
func TestDiff(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.create("/app", "")
		for _, name := range []string{"a", "b", "c"} {
			r.create("/app/"+name, name)
		}
		tree := r.tree("/app")
		before := tree.Snapshot()
		r.set("/app/a", "A")
		r.remove("/app/b")
		r.create("/app/d", "d")
		r.want(tree, "/app= /app/a=A /app/c=c /app/d=d")
		after := tree.Snapshot()
		show := func(s, from *cache.Snapshot[string]) string {
			var all []string
			for was, is := range s.Diff(from) {
				one := ""
				if was != nil {
					one = was.Path + "=" + was.Value
				}
				if one += ">"; is != nil {
					one += is.Path + "=" + is.Value
				}
				all = append(all, one)
			}
			return strings.Join(all, " ")
		}
		for want, got := range map[string]string{
			"/app/a=a>/app/a=A /app/b=b> >/app/d=d": show(after, before),
			"/app/a=A>/app/a=a >/app/b=b /app/d=d>": show(before, after),
			"":                                      show(after, after),
			">/app= >/app/a=a >/app/b=b >/app/c=c":  show(before, nil),
		} {
			if got != want {
				r.Errorf("%s, want %s", got, want)
			}
		}
		for range after.Diff(before) {
			break // a reader may leave
		}
	})
}
