package seqqueue

// The pure parts, for tests.
var LineOf = line

// Parse is parse, with what it says of the number in the open.
func Parse(tag, name string) (n Node, isWrapped, ok bool) {
	n, v := parse(tag, name)
	return n, v == wrapped, v == number
}

// Limits of the sequence counter.
const (
	LastSequence = lastSequence
	WarnSequence = warnSequence
)

// Verdict is what judge says, in the open.
type Verdict struct {
	Listed, Wrapped, Blocked bool
	Nearest                  Node
	Foreign                  string
}

// Judge is judge.
func Judge(tags Tags, own Node, children []string, blocks Blocks) Verdict {
	v := judge(tags, own, children, blocks)
	return Verdict{v.listed, v.wrapped, v.blocked, v.nearest, v.foreign}
}
