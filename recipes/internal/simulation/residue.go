package simulation

// residues: nothing is left behind.
func residues(f *facts) (errs []error) {
	promises := map[ResidueKind]error{
		ResidueNode:      ErrNodeLeft,
		ResidueWatch:     ErrWatchLeft,
		ResidueSession:   ErrSessionLeft,
		ResidueGoroutine: ErrGoroutineLeft,
		ResidueClose:     ErrCloseFailed,
		ResidueChain:     ErrChain,
	}
	for _, left := range f.Left {
		errs = append(errs, broken(promises[left.Kind], "%s", left.What))
	}
	return errs
}
