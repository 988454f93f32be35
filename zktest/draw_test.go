package zktest_test

import (
	"fmt"
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
