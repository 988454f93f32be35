package nodes

import "testing"

// What is known of the path before a node is made.
func TestKeeperBegin(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		mode Mode
		set  settings
		want aim
	}{
		{Ephemeral, settings{}, free},
		{Persistent, settings{}, free},
		{Ephemeral, settings{protected: true}, nowhere},
		{EphemeralSequential, settings{}, nowhere},
		{PersistentSequential, settings{protected: true}, nowhere},
	} {
		if k := newKeeper(tt.mode, tt.set); k.aim != tt.want {
			t.Errorf("%v, protected %v: aim %d, want %d", tt.mode, tt.set.protected, k.aim, tt.want)
		}
	}
}

// A session that follows another one.
func TestKeeperSessions(t *testing.T) {
	t.Parallel()
	k := lookingAt(same)
	if remember, _ := k.begins(false); remember || !k.stands || k.at != decides || k.czxid != 7 {
		t.Errorf("in the same session: remembers %v, %+v", remember, k)
	}
	for _, tt := range []struct {
		name     string
		before   func(k *keeper)
		remember bool
		czxid    int64
		then     func(k *keeper)
	}{
		{"of a node", same, true, 7, func(k *keeper) { k.claim, k.czxid = past, 0 }},
		{"of a node in doubt", func(k *keeper) { k.claim, k.czxid = doubtful, 0 }, true, 0, func(k *keeper) { k.claim = past }},
		{"of a ghost", func(k *keeper) { k.claim, k.czxid = past, 0 }, false, 0, same},
		{"of a ghost, and a create in doubt", func(k *keeper) { k.claim, k.czxid, k.unsure = past, 0, named }, true, 0, same},
		{"without a node", func(k *keeper) { k.claim, k.czxid = unclaimed, 0 }, false, 0, same},
		{"of a persistent node", func(k *keeper) { k.ephemeral = false }, false, 0, same},
		{"after Close", func(k *keeper) { k.ephemeral, k.closed = false, true }, false, 0, func(k *keeper) { k.unsure = behind }},
		{"after Close, in doubt", func(k *keeper) { k.ephemeral, k.closed, k.unsure = false, true, search }, false, 0, same},
	} {
		k := lookingAt(tt.before)
		want := k
		want.at, want.stands = decides, false
		tt.then(&want)
		if remember, czxid := k.begins(true); remember != tt.remember || remember && czxid != tt.czxid || k != want {
			t.Errorf("after a session %s: remembers %v of %d, %+v; want %+v", tt.name, remember, czxid, k, want)
		}
	}
}

// Close, and Start after a failed one.
func TestKeeperClosesAndOpens(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name          string
		before        func(k *keeper)
		opens, closes func(k *keeper)
	}{
		{"with a node", same, func(k *keeper) { k.unsure = behind }, same},
		{"with nothing that may stand", func(k *keeper) { k.claim = unclaimed }, func(k *keeper) { k.czxid = 0 }, same},
		{"in doubt", func(k *keeper) { k.unsure, k.claim, k.czxid = named, doubtful, 0 }, same, same},
		{"with a number that is taken", func(k *keeper) { k.unsure, k.claim, k.czxid = crowded, unclaimed, 0 }, same, func(k *keeper) { k.unsure = behind }},
		{"with another's node", func(k *keeper) { k.claim = adopted }, func(k *keeper) { k.czxid = 0 }, same},
		{"with a node that is not to be made again", func(k *keeper) { k.stopWhenRemoved = true }, func(k *keeper) { k.claim, k.czxid, k.unsure = doubtful, 0, behind }, same},
		{"with another's that is not to be made again", func(k *keeper) { k.stopWhenRemoved, k.claim = true, adopted }, func(k *keeper) { k.czxid = 0 }, same},
	} {
		k := lookingAt(tt.before)
		want := k
		want.at, want.stands, want.closed = decides, false, true
		tt.closes(&want)
		if k.closes(); k != want {
			t.Errorf("closed %s: %+v, want %+v", tt.name, k, want)
		}
		k = lookingAt(tt.before)
		k.closed = true
		want = k
		want.at, want.stands, want.closed = decides, false, false
		tt.opens(&want)
		if k.opens(); k != want {
			t.Errorf("opened %s: %+v, want %+v", tt.name, k, want)
		}
	}
}

// What is done next, by what is known.
func TestKeeperNext(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		before keeper
		want   step
	}{
		{"has the data", keeper{at: stands, wrote: 3}, rests},
		{"has older data", keeper{at: stands, wrote: 2}, sets},
		{"a step was chosen", keeper{at: replaces, unsure: named}, replaces},
		{"nothing stands", keeper{aim: free}, creates},
		{"nothing is known", keeper{}, creates},
		{"something may stand", keeper{aim: taken}, looks},
		{"something may stand, unsure", keeper{aim: taken, unsure: behind, claim: made}, syncs},

		{"closed, with nothing", keeper{closed: true, aim: taken}, ended},
		{"closed, with nothing, unsure", keeper{closed: true, unsure: behind}, ended},
		{"closed, with another's", keeper{closed: true, aim: taken, claim: adopted}, ended},
		{"closed, with a node", keeper{closed: true, aim: taken, claim: made}, checks},
		{"closed, with a ghost", keeper{closed: true, aim: taken, claim: past}, checks},
		{"closed, with a node, unsure", keeper{closed: true, aim: taken, claim: made, unsure: behind}, syncs},
		{"closed, with a create in doubt", keeper{closed: true, aim: free, unsure: named}, syncs},
		{"closed, and nothing was found", keeper{closed: true, aim: free, claim: doubtful}, ended},
	} {
		if got := tt.before.next(3); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, stepNames[got], stepNames[tt.want])
		}
	}
	for _, s := range []State{Absent, Refused} {
		if got := (&keeper{stands: true}).state(s); got != Ours {
			t.Errorf("the node stands: told as %v", got)
		}
		if got := (&keeper{}).state(s); got != s {
			t.Errorf("the node does not stand: told as %v, want %v", got, s)
		}
	}
}
