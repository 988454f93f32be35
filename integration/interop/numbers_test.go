package interop_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/integration/harness"
	"github.com/docent-go/docent/integration/peers"
	"github.com/docent-go/docent/recipes"
)

// TestNumbersAlone puts a node that is named by its number alone in the directory of each
// recipe, as a lock does that a program has written by hand. Curator waits for it, and Docent
// does. Behind it the two stand in one line. Of Curator's recipes a reader alone does not wait.
func TestNumbersAlone(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	a := newArena(ctx, t, harness.StartServer(ctx, t))
	p, j := a.docents(ctx, t, 1)[0], a.curators(ctx, t, 1)[0]
	for _, k := range mixedKinds {
		for i := range ourRecipes(t, p.client, "/any") {
			path := fmt.Sprintf("/numbers/%d", paths.Add(1))
			o := ourRecipes(t, p.client, path)[i]
			reader := k.lock == ".read"
			if k.line != o.line || k.kind == "semaphore" || reader != (o.name == "read") {
				continue
			}
			t.Run(k.kind+k.lock+"/"+o.name, func(t *testing.T) {
				name := strings.ReplaceAll(strings.Trim(path, "/"), "/", "-")
				check(t, j.peer.Make(ctx, name, j.name, k.kind, append([]string{path}, k.args...)...))
				theirs, line := j.peer.Thread(name), path
				if k.line == "semaphore" {
					line += "/locks"
				}
				number, err := p.client.Create(ctx, line+"/", nil, client.Ephemeral(), client.Sequential(), client.WithParents())
				check(t, err)

				_, err = o.try(ctx)
				if !errors.Is(err, recipes.ErrBusy) || !strings.Contains(err.Error(), number) {
					t.Errorf("Docent beside %s: %v", number, err)
				}
				_, err = theirs.Acquire(ctx, name+k.lock, 1, soon)
				if waits := errors.Is(err, peers.ErrTimeUp); waits == reader {
					t.Errorf("Curator waits for %s: %v, %v", number, waits, err)
				}
				if err == nil {
					check(t, theirs.Release(ctx, name+k.lock))
				}

				granted := make(chan io.Closer, 1)
				go func() {
					h, err := o.acquire(ctx)
					check(t, err)
					granted <- h
				}()
				select {
				case <-granted:
					t.Fatalf("Docent is granted beside %s", number)
				case <-time.After(soon):
				}
				check(t, p.client.Delete(ctx, number, client.AnyVersion))
				h := <-granted
				if _, err := theirs.Acquire(ctx, name+k.lock, 1, soon); errors.Is(err, peers.ErrTimeUp) == reader {
					t.Errorf("Curator beside Docent: %v", err)
				} else if err == nil {
					check(t, theirs.Release(ctx, name+k.lock))
				}
				check(t, h.Close())
			})
		}
	}
}
