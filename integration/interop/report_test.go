package interop_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// least is how much is expected of a load, less if it is a short one.
func least(n int) int { return int(int64(n) * int64(*loadTime) / int64(time.Minute)) }

// report says what a load was and fails if it was too little, or if the witness has seen
// what must not be.
func (a *arena) report(t *testing.T, all []*contender) {
	t.Helper()
	seen, faults := a.witness.now()
	turns, gaveUp, failed := map[side]int64{}, map[side]int64{}, map[side]int64{}
	longest, kills := map[side]time.Duration{}, map[side]int{}
	for _, p := range a.parties {
		kills[p.side] += p.killed()
	}
	for _, c := range all {
		s := c.party.side
		turns[s] += c.turns.Load()
		gaveUp[s] += c.gaveUp.Load()
		failed[s] += c.failed.Load()
		longest[s] = max(longest[s], time.Duration(c.longest.Load()))
		if n, late := c.turns.Load(), c.late.Load(); int(n) < least(a.fewest) || late == 0 {
			t.Errorf("%s had its turn %d times, %d of them after the last kill", c.who, n, late)
		}
	}
	var lines []string
	for s, n := range turns {
		lines = append(lines, fmt.Sprintf("%s: %d turns, longest wait %v, gave up %d, failed %d around %d kills, without a session %d, robbed of it %d, overtaken then %d",
			s, n, longest[s].Round(time.Millisecond), gaveUp[s], failed[s], kills[s], seen.ghosts[s], seen.robbed[s], seen.overtaken[s]))
		if int(n) < least(8*a.fewest) || kills[s] < least(6) || seen.opens[s] > 0 && seen.robbed[s] == 0 {
			t.Errorf("too little to mean anything: %s", lines[len(lines)-1])
		}
	}
	slices.Sort(lines)
	both := seen.together
	for pair, n := range seen.handovers {
		if pair[0] != nobody && pair[0] != pair[1] {
			both += n
		}
	}
	t.Logf("%s\n%d times one side after or beside the other, %d beside, %d times full, fence refused %d, slipped beside Curator's downgraded readers %d, Docent knew after %v at most",
		strings.Join(lines, "\n"), both, seen.together, seen.full, seen.stale, seen.slipped, seen.told.Round(time.Millisecond))
	if seen.opens[docent] > 0 && both < least(4*a.fewest) {
		t.Errorf("the sides met %d times", both)
	}
	for i, f := range faults {
		if i == 20 {
			t.Errorf("and %d more", len(faults)-i)
			break
		}
		t.Error(f)
	}
	a.clean(t)
}

// clean waits until nothing of Docent's is left, which has said that it is gone.
func (a *arena) clean(t *testing.T) {
	t.Helper()
	own := map[int64]string{}
	for _, p := range a.parties {
		if p.side != docent {
			continue
		}
		id, err := p.session(t.Context())
		check(t, err)
		own[id] = p.name
	}
	var left []string
	for end := time.Now().Add(matrixTimeout); time.Now().Before(end); {
		left = a.ownedBy(t, a.path, own)
		if len(left) == 0 {
			return
		}
		<-time.After(20 * time.Millisecond) // no event tells
	}
	t.Errorf("left behind: %v", left)
}

// ownedBy returns the nodes below path that belong to one of these sessions.
func (a *arena) ownedBy(t *testing.T, path string, own map[int64]string) []string {
	t.Helper()
	names, _, err := a.raw.Children(path)
	if err != nil { // swept away meanwhile
		return nil
	}
	var found []string
	for _, n := range names {
		full := path + "/" + n
		if _, stat, err := a.raw.Exists(full); err == nil && own[stat.EphemeralOwner] != "" {
			found = append(found, own[stat.EphemeralOwner]+" "+full)
		}
		found = append(found, a.ownedBy(t, full, own)...)
	}
	return found
}
