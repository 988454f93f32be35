package seqqueue

// The pure parts, for tests.
var (
	Parse  = parse
	LineOf = line
)

// Limits of the sequence counter.
const (
	LastSequence = lastSequence
	WarnSequence = warnSequence
)

// Verdict is what judge says, in the open.
type Verdict struct {
	Listed, Wrapped, Blocked bool
	Nearest                  Node
}

// Judge is judge.
func Judge(prefix string, own Node, children []string, blocks Blocks) Verdict {
	v := judge(prefix, own, children, blocks)
	return Verdict{v.listed, v.wrapped, v.blocked, v.nearest}
}
