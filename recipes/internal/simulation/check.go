package simulation

// beliefChecks know what a holder may believe: that it holds the lock until its
// context ends.
func beliefChecks() []func(*facts) []error {
	return []func(*facts) []error{overlaps, beliefs, lateLosses, deadlines, tokenOrder}
}

// checks know the promises that hold whatever holders believe.
func checks() []func(*facts) []error {
	return []func(*facts) []error{
		turns, tokenOrigin, guards, reentries, permits, downgrades, whole, kept,
		stuck, outlived, closings, refusals, lossesInPeace,
		contextErrors, lossErrors, causes, closedErrors, deletionErrors, fewErrors, busyErrors, foreignErrors, answers, releases, unexplained,
		sightOrder, unseen, residues, restless,
	}
}

// Check returns every broken promise, with what broke it.
func Check(h *History) []error { return h.broken(append(beliefChecks(), checks()...)) }

// CheckFenced is Check without the promises about what holders believe: what a
// lock promises to a resource that looks at tokens.
func CheckFenced(h *History) []error { return h.broken(checks()) }

func (h *History) broken(checks []func(*facts) []error) (broken []error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := newFacts(h)
	for _, check := range checks {
		broken = append(broken, check(f)...)
	}
	return broken
}
