package seqqueue

import (
	"strconv"
	"strings"
)

const (
	digits = 10 // of a sequence number

	// A queue is exhausted this close to the end of the counter. The room
	// left is for contenders that do not know the rule.
	lastSequence = 1<<31 - 1<<20
	// From here on every contender warns.
	warnSequence = 1 << 30
)

// Node is a contender.
type Node struct {
	Name string // of the child
	Key  string // what it is ordered by: its sequence number, as text
}

// Sequence is the number in the name.
func (n Node) Sequence() int64 {
	v, _ := strconv.ParseInt(n.Key, 10, 64) // ten digits
	return v
}

// before is the order of the queue. Two contenders with the same number
// cannot come of one server's counter short of its end; the name then decides,
// so that all of us at least agree.
func (n Node) before(o Node) bool {
	if n.Key != o.Key {
		return n.Key < o.Key
	}
	return n.Name < o.Name
}

// parse reads a child's name. It reports false for a foreign one. A number
// past the end of the counter is negative, with the sign as one of at least
// ten characters (Java's "%010d"), and sets wrapped.
func parse(prefix, name string) (n Node, wrapped, ok bool) {
	i := strings.LastIndex(name, prefix)
	if i < 0 {
		return Node{}, false, false
	}
	key := name[i+len(prefix):]
	if rest, negative := strings.CutPrefix(key, "-"); negative {
		return Node{}, isNumber(rest) && (len(rest) == digits-1 || len(rest) == digits && rest[0] != '0'), false
	}
	if len(key) != digits || !isNumber(key) {
		return Node{}, false, false
	}
	return Node{Name: name, Key: key}, false, true
}

func isNumber(s string) bool {
	if s == "" || len(s) > digits {
		return false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}
