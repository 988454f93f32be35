package interop_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/integration/harness"
)

// TestEvictedCurator deletes the node of a holder of Curator's, as an operator does.
// Docent holds at once, and Curator is not told: docs/operations.md says so. A latch
// goes on believing that it leads, and the others release without an error.
func TestEvictedCurator(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	a := newArena(ctx, t, harness.StartServer(ctx, t))
	p, j := a.docents(ctx, t, 1)[0], a.curators(ctx, t, 1)[0]
	for _, k := range mixedKinds {
		path := fmt.Sprintf("/evicted/%d", paths.Add(1))
		name := strings.ReplaceAll(strings.Trim(path, "/"), "/", "-")
		check(t, j.peer.Make(ctx, name, j.name, k.kind, append([]string{path}, k.args...)...))
		t.Run(k.kind+k.lock, func(t *testing.T) {
			theirs := j.peer.Thread(name)
			nodes, err := theirs.Acquire(ctx, name+k.lock, 1, stuck)
			check(t, err)
			check(t, p.client.Delete(ctx, nodes[0], client.AnyVersion))
			for _, o := range ourRecipes(t, p.client, path) {
				if o.line != k.line {
					continue
				}
				hold, err := o.acquire(ctx)
				check(t, err)
				if k.kind == "latch" {
					leads, err := theirs.Leads(ctx, name)
					check(t, err)
					if !leads {
						t.Error("Curator's latch heard of it: say so in docs/operations.md")
					}
				}
				check(t, hold.Close())
			}
			if err := theirs.Release(ctx, name+k.lock); err != nil {
				t.Errorf("Curator's release says %v: say so in docs/operations.md", err)
			}
		})
	}
}
