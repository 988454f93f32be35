package zktest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/docent-go/docent/zktest"
)

// A number that no member has is named, with the numbers that there are.
func TestEnsembleMissingMember(t *testing.T) {
	t.Parallel()
	e := zktest.NewEnsemble(t, 3)
	for _, i := range []int{-1, 0, 4} {
		for name, f := range map[string]func(){
			"Server":         func() { e.Server(i) },
			"Cut":            func() { e.Cut(1, i) },
			"CutOneWay":      func() { e.CutOneWay(i, 2) },
			"Isolate":        func() { e.Isolate(i) },
			"ChangeLeader":   func() { _ = e.ChangeLeader(i) },
			"Client.To":      func() { e.Client("a").To(i) },
			"Server, Client": func() { e.Server(i).Client("a") },
		} {
			text := panics(f)
			if !strings.Contains(text, fmt.Sprintf("no member %d", i)) || !strings.Contains(text, "from 1 to 3") {
				t.Errorf("%s(%d) panics with %q", name, i, text)
			}
		}
	}
	if e.Server(1) == nil || e.Server(3) == nil { // the others live on, and no mutex is held
		t.Error("no member")
	}
}

// A member says in texts which one it is.
func TestMemberIsPrinted(t *testing.T) {
	t.Parallel()
	e := zktest.NewEnsemble(t, 3)
	if got := fmt.Sprint(e.Server(1), e.Leader()); got != "zk1 (following) zk3 (leading)" {
		t.Error(got)
	}
	e.Server(1).Stop()
	if got := fmt.Sprintf("%v", e.Server(1)); got != "zk1 (down)" {
		t.Error(got)
	}
}

// panics returns what f panics with.
func panics(f func()) (text string) {
	defer func() { text = fmt.Sprint(recover()) }()
	f()
	return ""
}
