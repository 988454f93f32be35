package barrier

import (
	"fmt"
	"os"
	"testing"

	"github.com/docent-go/docent/internal/explore"
)

var anyFault = []act{unanswered, givesUp, expires, moves, operatorNode, operatorReady}

// All sequences of moves of three members, or of two of which one comes again.
// DOCENT_EXPLORE_LONG=1 adds more faults, and every fault where a third member comes late.
func TestExploreMachine(t *testing.T) {
	t.Parallel()
	once, again := [three]int8{1, 1, 1}, [three]int8{2, 1, 0}
	models := []*model{
		{members: 2, enters: once},
		{members: 2, enters: once, rounds: true},
		{members: 2, enters: once, curator: of(0)},
		{members: 2, enters: again, faults: 1, kinds: anyFault},
		{members: 2, enters: again, faults: 1, kinds: anyFault, rounds: true},
		{members: 3, enters: once, faults: 1, kinds: anyFault[:2]},
	}
	if os.Getenv("DOCENT_EXPLORE_LONG") == "1" {
		models = append(models,
			&model{members: 2, enters: once, curator: of(2), rounds: true},
			&model{members: 2, enters: [three]int8{2, 1, 1}},
			&model{members: 2, enters: [three]int8{2, 1, 1}, rounds: true},
			&model{members: 2, enters: again, faults: 2, kinds: anyFault[:5]},
			&model{members: 2, enters: again, faults: 2, kinds: anyFault[:5], rounds: true},
			&model{members: 3, enters: once, faults: 1, kinds: anyFault},
			&model{members: 3, enters: once, faults: 1, kinds: anyFault, rounds: true},
			&model{members: 3, enters: once, faults: 1, kinds: anyFault, curator: of(1)},
			&model{members: 2, enters: once, faults: 1, kinds: anyFault, curator: of(2)},
			&model{members: 2, enters: once, faults: 1, kinds: anyFault},
			&model{members: 2, enters: once, faults: 1, kinds: anyFault, rounds: true})
	}
	if underRace {
		models = models[3:5]
	}
	for _, m := range models {
		t.Run(fmt.Sprintf("%+v", *m), func(t *testing.T) {
			t.Parallel()
			explore.Whole(t, m.machine(), 8_000_000)
		})
	}
}

// Bugs in the rules, and what shows them.
func TestExploreMachineFindsBugs(t *testing.T) {
	t.Parallel()
	if underRace {
		return // the machine has no goroutines
	}
	once, two := [three]int8{1, 1, 1}, [three]int8{1, 1, 0}
	for _, c := range []struct {
		model
		want string
	}{
		{model{members: 2, enters: [three]int8{2, 1, 0}, faults: 2, kinds: []act{expires}, bug: "take a stale round for open"}, errEarly.Error()},
		{model{members: 3, enters: once, faults: 1, kinds: []act{givesUp}, bug: "open without a check"}, errFew.Error()},
		{model{members: 2, enters: two, faults: 1, kinds: []act{operatorReady}, bug: "forget the event"}, "counted"},
		{model{members: 2, enters: once, faults: 1, kinds: []act{expires}, rounds: true, bug: "pass with any round of this Enter"}, errEarly.Error()},
		{model{members: 2, enters: once, bug: "wait for all"}, "the Leave of"},
		{model{members: 2, enters: once, bug: "do not wait for late members"}, errLeft.Error()},
		{model{members: 2, enters: once, bug: "join without a write"}, errAlone.Error()},
		{model{members: 2, enters: once, bug: "remove the ready node of others"}, errAlone.Error()},
		{model{members: 2, enters: once, bug: "remove ready in any version"}, errAlone.Error()},
	} {
		t.Run(c.bug, func(t *testing.T) {
			t.Parallel()
			explore.Finds(t, c.machine(), 8_000_000, c.want)
		})
	}
}
