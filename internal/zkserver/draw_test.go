package zkserver_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/docent-go/docent/zktest"
)

// listings returns the order in which a client is given the same children.
func listings(t *testing.T, seed uint64, client string) string {
	t.Helper()
	srv := zktest.NewServer(t, zktest.WithSeed(seed))
	for i := range 8 {
		if err := srv.Create(fmt.Sprint("/q/", i), nil); err != nil {
			t.Fatal(err)
		}
	}
	// Another client's draws must not matter.
	other := memory(t, srv.Client("other"))
	c := memory(t, srv.Client(client))
	out := ""
	for range 4 {
		must(t, other, 8, body("/q", false), 0)
		d := dec{b: must(t, c, 8, body("/q", false), 0).body}
		out += fmt.Sprint(d.strings())
	}
	return out
}

func TestChildrenComeInASeededOrder(t *testing.T) {
	t.Parallel()
	first := listings(t, 1, "a")
	if again := listings(t, 1, "a"); again != first {
		t.Errorf("the same seed gives %s, then %s", first, again)
	}
	if other := listings(t, 2, "a"); other == first {
		t.Errorf("two seeds give %s", first)
	}
	if other := listings(t, 1, "b"); other == first {
		t.Errorf("two clients are given %s", first)
	}
}

func TestSessionsEndInASeededOrder(t *testing.T) {
	t.Parallel()
	deleted := func(seed uint64) string {
		srv := zktest.NewServer(t, zktest.WithSeed(seed))
		a, b := memory(t, srv.Client("a")), memory(t, srv.Client("b"))
		for i := range 8 {
			must(t, a, 1, ephemeral(fmt.Sprint("/", i)), 0)
		}
		must(t, b, 106, body("/", int32(1)), 0)
		srv.ExpireSession(a.session)
		_, events, err := b.call(11, nil)
		if err != nil || len(events) != 8 {
			t.Fatalf("%d events, %v", len(events), err)
		}
		return shownEvents("", events)
	}
	if first, again := deleted(1), deleted(1); again != first {
		t.Errorf("the same seed gives %s, then %s", first, again)
	}
	if first, other := deleted(1), deleted(2); other == first {
		t.Errorf("two seeds give %s", first)
	}
}

// TestSeededOrderIgnoresNames repeats a run with other names, as protected
// creates have them: what the seed orders are nodes, not their names.
func TestSeededOrderIgnoresNames(t *testing.T) {
	t.Parallel()
	run := func(names [8]string) (listed, deleted []int) {
		number := map[string]int{}
		srv := zktest.NewServer(t, zktest.WithSeed(1))
		a, b := memory(t, srv.Client("a")), memory(t, srv.Client("b"))
		for i, name := range names {
			number[name] = i
			must(t, a, 1, ephemeral("/"+name), 0)
		}
		d := dec{b: must(t, b, 8, body("/", false), 0).body}
		for _, name := range d.strings() {
			if i, own := number[name]; own {
				listed = append(listed, i)
			}
		}
		must(t, b, 106, body("/", int32(1)), 0)
		srv.ExpireSession(a.session)
		_, events, err := b.call(11, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			_, name, _ := strings.Cut(shownEvents("", []answer{e}), "/")
			deleted = append(deleted, number[name[:1]])
		}
		return listed, deleted
	}
	listed, deleted := run([8]string{"a", "b", "c", "d", "e", "f", "g", "h"})
	again, deletedAgain := run([8]string{"h", "c", "a", "g", "b", "f", "e", "d"})
	if len(listed) != 8 || !slices.Equal(listed, again) {
		t.Errorf("listed %v, with other names %v", listed, again)
	}
	if len(deleted) != 8 || !slices.Equal(deleted, deletedAgain) {
		t.Errorf("deleted %v, with other names %v", deleted, deletedAgain)
	}
}
