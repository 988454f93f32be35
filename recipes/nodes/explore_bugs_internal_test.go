package nodes

import (
	"os"
	"testing"

	"github.com/docent-go/docent/internal/explore"
)

var (
	lostAnswers = []act{losesRequest, losesAnswer, isRefused}
	lostNodes   = []act{expires, losesIt, operatorDeletes, operatorWrites, strangerMakes}
	allKinds    = append(append([]act{}, lostAnswers...), lostNodes...)
	ownNames    = []act{losesRequest, losesAnswer, isRefused, expires, losesIt, operatorDeletes, operatorWrites}
	numbers     = []act{losesRequest, losesAnswer, isRefused, expires, losesIt, operatorDeletes, operatorDeletesAll, strangerMakes}
)

// models are those of the modes and options that differ.
func models() map[string]*model {
	faults := int8(exploredFaults)
	if os.Getenv("DOCENT_EXPLORE_LONG") != "" {
		faults++ // minutes, and some GiB; numbers have twenty times the states for each
	}
	return map[string]*model{
		"ephemeral":                {mode: Ephemeral, kinds: allKinds, faults: faults},
		"started again":            {mode: Ephemeral, kinds: allKinds, faults: faults - 1, starts: 1},
		"persistent, again":        {mode: Persistent, kinds: allKinds, faults: faults - 1, starts: 1},
		"stop when removed, again": {mode: Ephemeral, set: settings{stopWhenRemoved: true}, kinds: allKinds, faults: faults - 1, starts: 1},
		"sequential, again":        {mode: EphemeralSequential, kinds: numbers, faults: exploredFaults - 1, starts: 1},
		"sibling":                  {mode: Ephemeral, kinds: append([]act{siblingMakes, isRefused}, lostNodes...), faults: faults},
		"take over":                {mode: Ephemeral, set: settings{takeOver: true}, kinds: allKinds, faults: faults},
		"stop when removed":        {mode: Ephemeral, set: settings{stopWhenRemoved: true}, kinds: allKinds, faults: faults},
		"protected":                {mode: Ephemeral, set: settings{protected: true}, kinds: ownNames, faults: faults},
		"persistent":               {mode: Persistent, kinds: allKinds, faults: faults},
		"ephemeral sequential":     {mode: EphemeralSequential, kinds: numbers, faults: exploredFaults},
		"persistent sequential":    {mode: PersistentSequential, set: settings{protected: true}, kinds: ownNames, faults: faults},
	}
}

// TestExploreKeeper walks all moves of the machine of a node with a server, with so many
// disturbances and one Set.
func TestExploreKeeper(t *testing.T) {
	t.Parallel()
	for name, m := range models() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			explore.Whole(t, m.machine(), 10_000_000)
		})
	}
}

// Each planted bug is found.
func TestExploreKeeperFindsBugs(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]struct {
		of   string
		want string
		bug  func(before keeper, k *keeper, a answer, is news) news
	}{
		"a failed round takes the node away": {"ephemeral", errHidden.Error(), func(_ keeper, _ *keeper, _ answer, is news) news {
			if is == isErr || is == isDenied {
				return isDeleted
			}
			return is
		}},
		"a create in doubt is forgotten": {"ephemeral", errLeftover.Error(), func(before keeper, k *keeper, a answer, is news) news {
			if before.at == creates && a.outcome == unknown {
				k.claim, k.unsure = unclaimed, behind
			}
			return is
		}},
		"a set in doubt counts as done": {"ephemeral", "Set waits", func(before keeper, k *keeper, a answer, is news) news {
			if before.at == sets && a.outcome == unknown {
				k.wrote = a.gen
			}
			return is
		}},
		"a node that was replaced is told": {"take over", errGhostly.Error(), func(_ keeper, _ *keeper, _ answer, is news) news {
			if is == isReplaced {
				return nothing
			}
			return is
		}},
		"each ephemeral node of the session is ours": {"sibling", errOthers.Error(), func(before keeper, k *keeper, a answer, is news) news {
			if before.at == looks && is == isForeign && a.owner == present {
				k.claims(a)
				return nothing
			}
			return is
		}},
		"a deletion in doubt ends Close": {"persistent", errLeftover.Error(), func(before keeper, k *keeper, a answer, is news) news {
			if before.at == deletes && a.outcome == unknown {
				k.at = ended
			}
			return is
		}},
		"a server that is behind is asked": {"persistent", errLeftover.Error(), func(_ keeper, k *keeper, _ answer, is news) news {
			if k.at == decides && k.unsure == named {
				k.at = confirms
			}
			return is
		}},
		"a number that is taken is looked at": {"ephemeral sequential", errNoPath.Error(), func(before keeper, k *keeper, _ answer, is news) news {
			if before.at == creates && k.unsure == crowded {
				k.aim, k.unsure = taken, behind
			}
			return is
		}},
		"a number that is taken is asked for again": {"ephemeral sequential", "there is no rest", func(_ keeper, k *keeper, _ answer, is news) news {
			if k.unsure == crowded {
				k.unsure = behind
			}
			return is
		}},
		"a search finds nothing": {"ephemeral sequential", errTwice.Error(), func(before keeper, k *keeper, _ answer, is news) news {
			if before.at == searches && !k.closed {
				k.aim = nowhere
			}
			return is
		}},
		"a search with a UUID finds nothing": {"persistent sequential", errTwice.Error(), func(before keeper, k *keeper, _ answer, is news) news {
			if before.at == searches && !k.closed {
				k.aim, k.claim = nowhere, made // with a new UUID
			}
			return is
		}},
		"a stranger's number is kept": {"ephemeral sequential", "there is no rest", func(before keeper, k *keeper, _ answer, is news) news {
			if before.at == looks && k.aim == nowhere {
				k.aim = taken
			}
			return is
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := models()[p.of]
			m.bug = p.bug
			explore.Finds(t, m.machine(), 1_000_000, p.want)
		})
	}
	for name, p := range map[string]struct {
		of, want string
		plant    func(*model)
	}{
		"every lost session left a ghost":           {"sibling", errTaken.Error(), func(m *model) { m.always = true }},
		"a node is shown by a session before":       {"persistent", errGhostly.Error(), func(m *model) { m.keeps = true }},
		"what a start before has removed is missed": {"stop when removed, again", errRobbed.Error(), func(m *model) { m.recalls = true }},
		"a node that rests is not watched":          {"ephemeral", errMissed.Error(), func(m *model) { m.blind = true }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := models()[p.of]
			p.plant(m)
			explore.Finds(t, m.machine(), 1_000_000, p.want)
		})
	}
}
