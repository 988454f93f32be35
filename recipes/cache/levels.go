package cache

import "slices"

// opened are the levels of a tree.
type opened []openLevel

type openLevel struct {
	*pattern

	codec Codec[Typed]
}

// extent returns the longest path that all patterns begin with, and how far below it the
// deepest level is.
func (set opened) extent() (top string, depth int) {
	common := slices.Clone(set[0].parts)
	deepest := 0
	for _, l := range set {
		n := 0
		for n < min(len(common), len(l.parts)) && !common[n].free && common[n] == l.parts[n] {
			n++
		}
		common, deepest = common[:n], max(deepest, len(l.parts))
	}
	top = "/"
	for _, part := range common {
		top = childPath(top, part.name)
	}
	return top, deepest - len(common)
}

// and returns a filter that accepts what a level matches and what is above that, if
// accept does too.
func (set opened) and(accept func(path string) bool) func(path string) bool {
	return func(path string) bool {
		return slices.ContainsFunc(set, func(l openLevel) bool { return l.fits(path) >= 0 }) && (accept == nil || accept(path))
	}
}

// codecOf returns the codec of the level that matches path, nil if none does.
func (set opened) codecOf(path string) Codec[Typed] {
	for _, l := range set {
		if l.matches(path) {
			return l.codec
		}
	}
	return nil
}
