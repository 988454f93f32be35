package nodes

import "testing"

// row is a row of the tables of keeper: what is known before, the answer, and what is known
// after that.
type row struct {
	name   string
	before keeper
	answer answer
	then   func(k *keeper) // changes before into what is known after it
	is     news
}

func play(t *testing.T, rows []row) {
	t.Helper()
	for _, r := range rows {
		k, want := r.before, r.before
		r.then(&want)
		if is := k.answered(r.answer); k != want || is != r.is {
			t.Errorf("%s:\n%+v, news %d; want\n%+v, news %d", r.name, k, is, want, r.is)
		}
	}
}

func to(at step) func(*keeper) { return func(k *keeper) { k.at = at } }

// lookingAt is a keeper of an ephemeral node that looks, and has made the node 7.
func lookingAt(change func(k *keeper)) keeper {
	k := keeper{ephemeral: true, at: looks, claim: made, aim: taken, czxid: 7, stands: true, wrote: 1, sent: 1}
	change(&k)
	return k
}

func same(*keeper) {}

// A look that does not show the node.
func TestKeeperMisses(t *testing.T) {
	t.Parallel()
	lost := func(then step) func(k *keeper) {
		return func(k *keeper) { k.at, k.after, k.stands, k.czxid, k.claim = eases, then, false, 0, unclaimed }
	}
	stops := func(k *keeper) { k.stopWhenRemoved = true }
	gone := func(k *keeper) { k.at, k.stands = proves, false }
	play(t, []row{
		{"it stood", lookingAt(same), answer{}, lost(creates), isDeleted},
		{"it did not stand", lookingAt(func(k *keeper) { k.stands = false }), answer{}, func(k *keeper) {
			k.at, k.after, k.czxid, k.claim = creates, creates, 0, unclaimed
		}, nothing},
		{"it is to be deleted", lookingAt(func(k *keeper) { k.at, k.closed, k.stands = checks, true, false }), answer{}, func(k *keeper) {
			k.at, k.after, k.czxid, k.claim = ended, creates, 0, unclaimed
		}, nothing},
		{"it stops when removed", lookingAt(stops), answer{}, gone, isGone},
		{"it stops, and another stands there", lookingAt(stops), answer{there: true, czxid: 8, owner: others}, gone, isGone},
		{"it stops, and it stands", lookingAt(stops), answer{there: true, czxid: 7, owner: present}, to(stands), nothing},
		{"it stops, and none was known", lookingAt(func(k *keeper) { stops(k); k.czxid = 0 }), answer{}, lost(creates), isDeleted},
		{"it stops, and is to be deleted", lookingAt(func(k *keeper) { stops(k); k.at, k.closed, k.stands = checks, true, false }), answer{}, func(k *keeper) {
			k.at, k.after, k.czxid, k.claim = ended, creates, 0, unclaimed
		}, nothing},
		{"it stops, and its time to live is over", lookingAt(stops), answer{expired: true}, lost(creates), isDeleted},
		{"the same, and another stands there", lookingAt(stops), answer{expired: true, there: true, czxid: 8, owner: others}, func(k *keeper) {
			k.at, k.after, k.stands, k.czxid = eases, decides, false, 0
		}, isDeleted},
		{"it is proved", lookingAt(func(k *keeper) { stops(k); k.at, k.stands = proves, false }), answer{}, func(k *keeper) {
			k.at, k.claim, k.czxid = removed, unclaimed, 0
		}, nothing},
	})
}

// A look that shows a node with a session.
func TestKeeperLooksAtEphemeral(t *testing.T) {
	t.Parallel()
	doubts := func(k *keeper) { k.claim, k.czxid, k.stands, k.sent = doubtful, 0, false, 2 }
	checking := func(k *keeper) { k.at, k.closed, k.stands = checks, true, false }
	foreign := func(k *keeper) { k.at, k.claim, k.czxid, k.stands = probes, unclaimed, 0, false }
	left := func(k *keeper) { k.at, k.claim, k.czxid, k.stands = ended, unclaimed, 0, false }
	ghost := func(k *keeper) { k.at, k.after, k.stands, k.czxid, k.claim = eases, replaces, false, 0, past }
	ours := answer{there: true, czxid: 7, owner: present}
	play(t, []row{
		{"ours", lookingAt(func(k *keeper) { k.stands = false }), ours, func(k *keeper) { k.at, k.stands = stands, true }, nothing},
		{"ours, to be deleted", lookingAt(checking), ours, to(deletes), nothing},
		{"ours, in doubt", lookingAt(doubts), answer{there: true, czxid: 8, owner: present, first: true}, func(k *keeper) {
			k.at, k.stands, k.claim, k.czxid, k.wrote = stands, true, made, 8, 2
		}, nothing},
		{"of a lost session", lookingAt(same), answer{there: true, czxid: 7, owner: lost}, ghost, isReplaced},
		{"the same, in doubt", lookingAt(func(k *keeper) { k.claim = doubtful }), answer{there: true, czxid: 9, owner: lost}, ghost, isReplaced},
		{"the same, in doubt, by our name", lookingAt(func(k *keeper) { k.claim, k.protected = doubtful, true }), answer{there: true, czxid: 9, owner: lost}, ghost, isReplaced},
		{"the same, to be deleted", lookingAt(checking), answer{there: true, czxid: 9, owner: lost}, to(deletes), nothing},
		{"another object's", lookingAt(func(k *keeper) { k.claim, k.czxid, k.stands = unclaimed, 0, false }), answer{there: true, czxid: 8, owner: present}, foreign, isForeign},
		{"another client's", lookingAt(same), answer{there: true, czxid: 8, owner: others}, foreign, isForeign},
		{"persistent", lookingAt(same), answer{there: true, czxid: 8}, foreign, isForeign},
		{"another client's, to be deleted", lookingAt(checking), answer{there: true, czxid: 8, owner: others}, left, nothing},
		{"another client's, taken over", lookingAt(func(k *keeper) { k.takeOver = true }), answer{there: true, czxid: 8, owner: others}, ghost, isReplaced},
		{"the same, when none was ours", lookingAt(func(k *keeper) { k.takeOver, k.claim, k.czxid, k.stands = true, unclaimed, 0, false }), answer{there: true, czxid: 8, owner: others}, func(k *keeper) {
			k.at, k.after = replaces, replaces
		}, nothing},
		{"another client's, not taken over any more", lookingAt(func(k *keeper) { checking(k); k.takeOver = true }), answer{there: true, czxid: 8, owner: others}, left, nothing},
		{"with our number", lookingAt(func(k *keeper) { k.sequential = true }), answer{there: true, czxid: 8, owner: others}, func(k *keeper) {
			k.at, k.aim, k.claim, k.czxid, k.stands = decides, nowhere, unclaimed, 0, false
		}, isReplaced},
		{"the same, when none stood", lookingAt(func(k *keeper) { k.sequential, k.stands = true, false }), answer{there: true, czxid: 8, owner: others}, func(k *keeper) {
			k.at, k.aim, k.claim, k.czxid = decides, nowhere, unclaimed, 0
		}, nothing},
	})
}

// A look that shows a node without a session, and the read that tells whose it is.
func TestKeeperLooksAtPersistent(t *testing.T) {
	t.Parallel()
	persistent := func(change func(k *keeper)) keeper {
		return lookingAt(func(k *keeper) { k.ephemeral, k.stands, k.sent = false, false, 2; change(k) })
	}
	doubts := func(k *keeper) { k.claim, k.czxid = doubtful, 0 }
	reading := func(k *keeper) { doubts(k); k.at = reads }
	stood := func(c claim, wrote int) func(*keeper) {
		return func(k *keeper) { k.at, k.stands, k.claim, k.czxid, k.wrote = stands, true, c, 8, wrote }
	}
	first, later := answer{there: true, czxid: 8, first: true}, answer{there: true, czxid: 8}
	play(t, []row{
		{"ours", persistent(same), answer{there: true, czxid: 7}, func(k *keeper) { k.at, k.stands = stands, true }, nothing},
		{"ephemeral", persistent(same), answer{there: true, czxid: 8, owner: present}, func(k *keeper) {
			k.at, k.claim, k.czxid = probes, unclaimed, 0
		}, isForeign},
		{"in doubt, by our name", persistent(func(k *keeper) { doubts(k); k.protected = true }), later, stood(made, 2), nothing},
		{"in doubt, as it was made", persistent(doubts), first, to(reads), nothing},
		{"in doubt, and was written", persistent(doubts), later, stood(adopted, 0), nothing},
		{"another's", persistent(same), first, stood(adopted, 0), nothing},
		{"another's, by our name", persistent(func(k *keeper) { k.protected = true }), later, stood(adopted, 0), nothing},
		{"another's, taken over", persistent(func(k *keeper) { k.takeOver = true }), later, stood(made, 0), nothing},
		{"another's, to be deleted", persistent(func(k *keeper) { k.at, k.closed = checks, true }), later, func(k *keeper) {
			k.at, k.claim, k.czxid, k.wrote = ended, adopted, 8, 0
		}, nothing},
		{"has our data", persistent(reading), answer{czxid: 8, equal: true}, stood(made, 2), nothing},
		{"has other data", persistent(reading), answer{czxid: 8}, stood(adopted, 0), nothing},
		{"is gone", persistent(reading), answer{outcome: noNode}, to(decides), nothing},
		{"cannot be read", persistent(reading), answer{outcome: failed}, to(pauses), isErr},
	})
}

// Writes.
func TestKeeperWrites(t *testing.T) {
	t.Parallel()
	creating := func(change func(k *keeper)) keeper {
		k := keeper{ephemeral: true, at: creates, aim: free}
		change(&k)
		return k
	}
	writing := func(at step) keeper { return lookingAt(func(k *keeper) { k.at = at }) }
	deleting := lookingAt(func(k *keeper) { k.at, k.closed, k.stands = deletes, true, false })
	number := func(k *keeper) { k.sequential, k.aim = true, nowhere }
	doubt := func(u unsure) func(*keeper) {
		return func(k *keeper) { k.at, k.sent, k.claim, k.unsure = decides, 3, doubtful, u }
	}
	found := func(k *keeper) { k.at, k.sent, k.aim, k.unsure = decides, 3, taken, behind }
	syncing := func(at step) func(*keeper) { return func(k *keeper) { k.at, k.unsure = at, behind } }
	play(t, []row{
		{"created", creating(same), answer{czxid: 7, gen: 3}, func(k *keeper) {
			k.at, k.sent, k.wrote, k.claim, k.czxid, k.aim = decides, 3, 3, made, 7, taken
		}, nothing},
		{"the node exists", creating(same), answer{outcome: nodeExists, gen: 3}, found, nothing},
		{"the node exists by our name", creating(func(k *keeper) { k.protected, k.aim = true, nowhere }), answer{outcome: nodeExists, gen: 3}, func(k *keeper) {
			found(k)
			k.claim = doubtful
		}, nothing},
		{"the next number exists", creating(number), answer{outcome: nodeExists, gen: 3}, func(k *keeper) { k.at, k.sent, k.unsure = decides, 3, crowded }, nothing},
		{"a number exists that was free", creating(func(k *keeper) { k.sequential = true }), answer{outcome: nodeExists, gen: 3}, found, nothing},
		{"the create is in doubt", creating(same), answer{outcome: unknown, gen: 3}, doubt(named), isErr},
		{"the same, of a name of ours", creating(func(k *keeper) { k.protected, k.aim = true, nowhere }), answer{outcome: unknown, gen: 3}, doubt(named), isErr},
		{"the same, of a known number", creating(func(k *keeper) { k.sequential = true }), answer{outcome: unknown, gen: 3}, doubt(named), isErr},
		{"the same, of an unknown number", creating(number), answer{outcome: unknown, gen: 3}, doubt(search), isErr},
		{"the create is refused", creating(same), answer{outcome: denied, gen: 3}, func(k *keeper) { k.at, k.sent = pauses, 3 }, isDenied},

		{"replaced", writing(replaces), answer{gen: 3}, func(k *keeper) { k.at, k.sent, k.claim = decides, 3, doubtful }, nothing},
		{"none is to be replaced", writing(replaces), answer{outcome: noNode, gen: 3}, func(k *keeper) {
			k.at, k.sent, k.claim, k.aim = decides, 3, unclaimed, free
		}, nothing},
		{"another wrote before the replacement", writing(replaces), answer{outcome: badVersion, gen: 3}, func(k *keeper) {
			k.at, k.sent, k.unsure = decides, 3, behind
		}, nothing},
		{"the replacement is in doubt", writing(replaces), answer{outcome: unknown, gen: 3}, doubt(named), isErr},
		{"the replacement is refused", writing(replaces), answer{outcome: noAuth, gen: 3}, func(k *keeper) { k.at, k.sent = pauses, 3 }, isDenied},

		{"set", writing(sets), answer{czxid: 7, gen: 3}, func(k *keeper) { k.at, k.wrote = stands, 3 }, nothing},
		{"set on another node", writing(sets), answer{czxid: 8, gen: 3}, to(decides), nothing},
		{"none is to be set", writing(sets), answer{outcome: noNode, czxid: 7}, syncing(decides), nothing},
		{"another wrote before", writing(sets), answer{outcome: badVersion, czxid: 7}, syncing(decides), nothing},
		{"the set is in doubt", writing(sets), answer{outcome: unknown, czxid: 7}, syncing(decides), isErr},
		{"the set is refused", writing(sets), answer{outcome: noAuth, czxid: 7}, syncing(pauses), isDenied},

		{"deleted", deleting, answer{}, func(k *keeper) { k.at, k.claim = ended, unclaimed }, nothing},
		{"none is to be deleted", deleting, answer{outcome: noNode}, func(k *keeper) { k.at, k.claim = ended, unclaimed }, nothing},
		{"another wrote before the deletion", deleting, answer{outcome: badVersion}, syncing(decides), nothing},
		{"the deletion is in doubt", deleting, answer{outcome: unknown}, syncing(decides), isErr},
		{"the deletion has failed", deleting, answer{outcome: failed}, syncing(pauses), isErr},
		{"the deletion is refused", deleting, answer{outcome: noAuth}, syncing(ended), isErr},
	})
}

// Questions, pauses and failures.
func TestKeeperLearns(t *testing.T) {
	t.Parallel()
	syncing := func(u unsure) keeper { return keeper{at: syncs, unsure: u, aim: free} }
	known := func(a aim) func(*keeper) { return func(k *keeper) { k.at, k.unsure, k.aim = decides, sure, a } }
	play(t, []row{
		{"synced", syncing(behind), answer{}, known(free), nothing},
		{"synced, with a name in doubt", syncing(named), answer{}, to(confirms), nothing},
		{"synced, with a number in doubt", syncing(search), answer{}, to(searches), nothing},
		{"synced, with the number taken", syncing(crowded), answer{}, to(counts), nothing},
		{"a number is free", keeper{at: counts, unsure: crowded, aim: nowhere}, answer{}, known(free), nothing},
		{"found", keeper{at: searches, unsure: search}, answer{there: true}, known(taken), nothing},
		{"not found", keeper{at: confirms, unsure: named, aim: free}, answer{}, known(free), nothing},
		{"may be read", keeper{at: probes}, answer{}, to(rests), nothing},
		{"may not be read", keeper{at: probes}, answer{outcome: noAuth}, to(pauses), nothing},
		{"rested", keeper{at: rests}, answer{}, to(decides), nothing},
		{"paused", keeper{at: pauses}, answer{}, to(decides), nothing},
		{"eased", keeper{at: eases, after: replaces}, answer{}, to(replaces), nothing},

		{"an answer is lost", syncing(named), answer{outcome: unknown}, to(decides), isErr},
		{"no answer", syncing(named), answer{outcome: failed}, to(pauses), isErr},
		{"refused", keeper{at: looks}, answer{outcome: denied}, to(pauses), isDenied},
		{"an answer is lost after Close", keeper{at: checks, closed: true}, answer{outcome: unknown}, to(pauses), isErr},
		{"no answer after Close", keeper{at: checks, closed: true}, answer{outcome: failed}, to(pauses), isErr},
		{"refused after Close", keeper{at: checks, closed: true}, answer{outcome: denied}, to(ended), isErr},
	})
}
