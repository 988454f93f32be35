package barrier

import (
	"slices"
	"testing"
)

// Who belongs to a round: whose node stood when it was opened, and whom it names.
func TestRuleOfRound(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		round round
		m     standing
		want  bool
	}{
		{"no round", round{}, standing{name: "a", czxid: 3}, false},
		{"no round, with the name", round{names: []string{"a"}}, standing{name: "a"}, false},
		{"stood before", round{opened: 5}, standing{name: "a", czxid: 4}, true},
		{"came after", round{opened: 5}, standing{name: "a", czxid: 6}, false},
		{"has no node", round{opened: 5}, standing{name: "a"}, false},
		{"came after, and is named", round{opened: 5, names: []string{"b", "a"}}, standing{name: "a", czxid: 6}, true},
		{"another is named", round{opened: 5, names: []string{"b"}}, standing{name: "a", czxid: 6}, false},
		{"names may not be read", round{opened: 5, unread: true}, standing{name: "a", czxid: 6}, true},
	} {
		if got := tt.round.has(tt.m); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// Each row of the table of entering.
func TestRuleOfEntering(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	another, named := round{opened: 5, names: []string{"b"}}, round{opened: 5, names: []string{"a", "b"}}
	for _, tt := range []struct {
		name  string
		here  int64 // czxid of the own node
		round round
		live  *bool
		want  deed // with rounds
		plain deed // without
	}{
		{"the round was opened since", 4, another, nil, pass, pass},
		{"no round", 4, round{}, nil, await, await},
		{"the round names it", 6, named, nil, register, register},
		{"the round is another, and nobody was asked", 6, another, nil, askLive, askLive},
		{"the round is another, of nobody", 6, another, &no, removeStale, removeStale},
		{"the round is another, of somebody", 6, another, &yes, withdraw, register},
		{"no node, no round", 0, round{}, nil, join, join},
		{"no node, and the round names it", 0, named, nil, join, join},
		{"no node, and the round is another", 0, another, nil, askLive, join},
		{"the same, of nobody", 0, another, &no, removeStale, join},
		{"the same, of somebody", 0, another, &yes, awaitEnd, join},
	} {
		for _, rounds := range []bool{true, false} {
			want := tt.plain
			if rounds {
				want = tt.want
			}
			e := entering{name: "a", rounds: rounds, czxid: tt.here}
			if got := e.next(tt.round, tt.live); got != want {
				t.Errorf("%s, with rounds %v: %d, want %d", tt.name, rounds, got, want)
			}
		}
	}
}

// A round that was opened while the node stood may be gone when it is looked at. It counts
// until the session is over.
func TestRuleOfPassing(t *testing.T) {
	t.Parallel()
	e := entering{name: "a", czxid: 4}
	e.saw(0)
	if e.saw(3); e.passes {
		t.Error("passes with a round from before")
	}
	e.saw(5)
	if e.saw(3); !e.passes || e.next(round{}, nil) != pass {
		t.Error("does not pass with a round that is gone")
	}
	e.away()
	if e.czxid != 0 || e.passes || e.next(round{opened: 5}, nil) != join {
		t.Errorf("in another session: %+v", e)
	}
}

// Each row of the table of leaving.
func TestRuleOfLeaving(t *testing.T) {
	t.Parallel()
	ours, others := round{opened: 5, names: []string{"b"}}, round{opened: 9, names: []string{"b"}}
	for _, tt := range []struct {
		name  string
		gone  bool
		wait  []string
		round round
		names []string
		want  deed
		whom  string
	}{
		{"all are higher", false, []string{"c", "d"}, ours, []string{"b", "c", "d"}, awaitOther, "d"},
		{"one is lower", false, []string{"a", "c"}, ours, []string{"a", "b", "c"}, removeAndAwait, "a"},
		{"nobody, and the round is its own", false, nil, ours, []string{"b"}, removeBoth, ""},
		{"nobody, and the round has another", false, nil, round{opened: 5, names: []string{"b", "e"}}, []string{"b", "e"}, removeOwn, ""},
		{"nobody, and the round has one that is gone", false, nil, round{opened: 5, names: []string{"b", "e"}}, []string{"b"}, removeBoth, ""},
		{"nobody, and one stands that is not of the round", false, nil, ours, []string{"b", "e"}, removeBoth, ""},
		{"nobody, and the round is gone", false, nil, round{}, []string{"b"}, removeOwn, ""},
		{"nobody, and the round is another", false, nil, others, []string{"b"}, removeOwn, ""},
		{"gone, some", true, []string{"a", "c"}, ours, []string{"a", "c"}, awaitOther, "a"},
		{"gone, nobody, and the round is its own", true, nil, ours, nil, tidy, ""},
		{"gone, nobody, and the round is another", true, nil, others, nil, leftAll, ""},
		{"gone, nobody, and the round has another", true, nil, round{opened: 5, names: []string{"e"}}, []string{"e"}, leftAll, ""},
		{"the others have gone meanwhile", false, []string{"a", "c"}, ours, []string{"b"}, removeBoth, ""},
		{"another client has deleted its node", false, []string{"c"}, ours, []string{"c"}, deleted, ""},
	} {
		l := leaving{own: "b", opened: 5, gone: tt.gone, begin: 8, wait: slices.Clone(tt.wait)}
		if next, whom := l.next(tt.round, tt.names, 10); next != tt.want || whom != tt.whom || l.begin != 8 {
			t.Errorf("%s: %d for %q, want %d for %q", tt.name, next, whom, tt.want, tt.whom)
		}
		if tt.want == deleted && !l.gone {
			t.Errorf("%s: it does not know", tt.name)
		}
	}
	unknown := leaving{own: "b", begin: 8}
	if next, _ := unknown.next(round{}, []string{"b"}, 10); next != removeOwn {
		t.Errorf("the round was gone before it was read: %d", next)
	}
	l := leaving{own: "b", opened: 5}
	names := []string{"a", "b", "c"}
	if next, whom := l.next(ours, names, 10); next != removeAndAwait || whom != "a" || l.begin != 10 || !slices.Equal(l.wait, []string{"a", "c"}) {
		t.Errorf("at the beginning: %d for %q, waits for %v since %d", next, whom, l.wait, l.begin)
	}
	if !slices.Equal(names, []string{"a", "b", "c"}) {
		t.Errorf("the list of the caller is %v", names)
	}
	l.forget("a")
	if next, whom := l.next(ours, names, 12); next != awaitOther || whom != "c" {
		t.Errorf("without one: %d for %q", next, whom)
	}
}

// A Leave of the round that was opened at 5, which began at 8.
func TestRuleOfAwaiting(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		opened int64 // of its round
		m      standing
		seen   int64 // the ready node
		want   bool
	}{
		{"is younger than the call", 5, standing{czxid: 9}, 5, false},
		{"came with the newest change", 5, standing{czxid: 8}, 5, true},
		{"stood when it was opened", 5, standing{czxid: 4}, 0, true},
		{"the round is not known", 0, standing{czxid: 7}, 6, true},
		{"is Curator's", 5, standing{czxid: 7, curator: true}, 0, true},
		{"has come late", 5, standing{czxid: 7, late: true}, 0, true},
		{"the round is open", 5, standing{czxid: 7}, 5, true},
		{"the round is over", 5, standing{czxid: 7}, 0, false},
		{"another round is open", 5, standing{czxid: 7}, 6, false},
	} {
		l := leaving{own: "b", opened: tt.opened, begin: 8}
		if got := l.awaits(tt.m, tt.seen); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
