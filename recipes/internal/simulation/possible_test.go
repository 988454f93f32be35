package simulation_test

import (
	"regexp"
	"slices"
)

// modes are what contenders of a kind of lock are, while they wait and while they hold.
func (k *kind) modes() (waiting, holding []string) {
	both := []string{"a contender"}
	switch k {
	case readWrite:
		both = []string{"a reader", "a writer"}
	case semaphores, semaphoreMutexes, permitAlone:
		return []string{"one in a queue"}, []string{"a permit"}
	}
	return both, both
}

// possible are the situations that a crowd has to come to. Where kinds meet, each has its own.
// There readers, writers and those who want permits have too few neighbours for the seeds of CI:
// in their own crowds they have them all. A hold of a multi-lock comes to all that a hold comes to.
func (c setting) possible() (all []string) {
	var kinds []*kind
	several := false
	for _, g := range c.games {
		kinds = append(kinds, g.kinds...)
		several = several || g.together
	}
	if kinds[0] == strangers {
		kinds = []*kind{mutexes, readWrite}
	}
	for _, k := range kinds {
		if len(kinds) == 1 || k.place != nil && !k.shares {
			all = append(all, possible(k)...)
		}
		k.each(func(mode, state, what string) {
			if isUnwanted(k, amongAny(mode, state, what)) {
				return
			}
			all = append(all, amongAny(mode, state, what))
			if several && state == "holds" && what != "hands over" && what != "reads on" {
				all = append(all, amongAny(mode, state, what)+ofSeveral)
			}
		})
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// possible are the situations of a kind of lock: all of them, without the unwanted.
func possible(k *kind) (all []string) {
	waiting, _ := k.modes()
	next := []string{"nobody"}
	for _, mode := range waiting {
		next = append(next, mode+" of its client", mode+" of another")
	}
	k.each(func(mode, state, what string) {
		for _, ahead := range next {
			for _, behind := range next {
				if s := situation(mode, state, what, ahead, behind); !isUnwanted(k, s) {
					all = append(all, s)
				}
			}
		}
	})
	return all
}

// each goes through what contenders of a kind can be, and what can happen to them then.
func (k *kind) each(f func(mode, state, what string)) {
	waiting, holding := k.modes()
	add := func(mode, state string, ends ...string) {
		for _, what := range ends {
			f(mode, state, what)
		}
	}
	for _, mode := range waiting {
		add(mode, "waits", "gives up", "is deleted", "is asked", "loses its session")
		if k.elects() {
			add(mode, "waits", "is sent behind")
		}
	}
	for _, mode := range holding {
		add(mode, "holds", "releases", "is deleted", "is asked", "loses its session")
		if k.elects() {
			add(mode, "holds", "hands over")
		}
		add(mode, "holds twice", "is deleted", "is asked", "loses its session")
		if mode == "a writer" {
			add(mode, "holds", "reads on")
		}
	}
}

// unwanted are the situations that cannot be, that last for one request only, or that are too
// rare for the seeds of CI, with reasons.
var unwanted = []struct {
	kinds []*kind // nil: all
	what  *regexp.Regexp
	why   string
}{
	{nil, regexp.MustCompile(`^a (contender|writer) holds.*; behind a`), "it is the first, or the one ahead is being deleted"},
	{nil, regexp.MustCompile(`^a reader holds.*; behind a (writer|contender)`), "the one ahead is being deleted"},
	{nil, regexp.MustCompile(`^a permit holds.*; behind (a|one)`), "permits have no place"},
	{[]*kind{mutexes, readWrite, latches, mutexSelector}, regexp.MustCompile(` waits, .*; behind nobody`), "it holds, or is about to be told so"},
	{[]*kind{semaphores, permitAlone, latches}, regexp.MustCompile(`holds twice`), "an acquire within the hold is refused"},
	{[]*kind{readWrite}, regexp.MustCompile(`^a writer waits, is (asked|deleted); behind a writer of another, before a writer`), "rare: writers are fewer than readers"},
	{[]*kind{readWrite}, regexp.MustCompile(`^a reader holds twice.*; behind a`), "rare, and a front that shares is nothing to a reader"},
	{nil, regexp.MustCompile(`(hands over|is sent behind);.*before nobody`), "its successor stands behind it"},
	{[]*kind{mutexSelector}, regexp.MustCompile(`is sent behind`), "mutexes stand in between, and refuse it; latches come to it"},
}

func isUnwanted(k *kind, s string) bool {
	for _, i := range unwanted {
		for _, of := range append(i.kinds, k)[:max(len(i.kinds), 1)] {
			if of == k && i.what.MatchString(s) {
				return true
			}
		}
	}
	return false
}
