package observe

import (
	"slices"
	"strings"
	"sync"

	"github.com/docent-go/docent/client"
)

// Other is the value of a label in place of the values beyond a limit.
const Other = "other"

// maxValues is how many values a label may have whose values the program gives.
const maxValues = 100

// LockName maps an acquire to the value of the label "docent.lock.name", a cache that starts to
// that of "docent.cache.name", and a registered node to that of "docent.node.name"; "" is no label.
// The last two have a Recipe ("Tree", "GroupMember", ...) and a Path alone. The function is called once for each acquire and each start, and must be safe for
// concurrent use. Bytes that are not UTF-8 become U+FFFD. A panic of it reaches the caller of
// the acquire; for a cache it ends the process.
//
// The values must be few. [LockInfo.Path] itself is right only if the program has a
// fixed set of locks. It is wrong if there is one lock per order or per user.
//
// [LockInfo.Path]: https://pkg.go.dev/github.com/docent-go/docent/client#LockInfo
type LockName func(client.LockInfo) string

// NoName gives no acquire a name: locks differ by recipe and mode alone.
func NoName(client.LockInfo) string { return "" }

// FirstElement names a lock after the first element of its path: "orders" for
// "/orders/4711", but "locks" for every lock below "/locks", where [Below] is right. A multi-lock is named after its first lock.
func FirstElement(lock client.LockInfo) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(firstOf(lock), "/"), "/")
	return name
}

// Path names a lock after its whole path. It is right for a fixed set of paths, and wrong if there is
// one lock per order or user.
func Path(lock client.LockInfo) string { return lock.Path }

// Below names the locks below each of the directories after their first element there: with
// Below("/locks") "/locks/orders/4711" is "/locks/orders". The first directory that fits counts.
// Paths outside are [Other]. A multi-lock is named after its first lock.
func Below(directories ...string) LockName {
	dirs := make([]string, 0, len(directories))
	for _, dir := range directories {
		dirs = append(dirs, strings.TrimSuffix(dir, "/")+"/")
	}
	return func(lock client.LockInfo) string {
		path := firstOf(lock)
		for _, dir := range dirs {
			if rest, ok := strings.CutPrefix(path, dir); ok {
				name, _, _ := strings.Cut(rest, "/")
				return dir + name
			}
		}
		return Other
	}
}

// firstOf is the path of a lock, of a multi-lock that of its first lock.
func firstOf(lock client.LockInfo) string {
	if lock.Mode == "multi" {
		path, _, _ := strings.Cut(lock.Path, "+/")
		return path
	}
	return lock.Path
}

// Listed names the locks with the given paths after their paths, and all others
// [Other].
func Listed(paths ...string) LockName {
	listed := slices.Clone(paths)
	return func(lock client.LockInfo) string {
		if slices.Contains(listed, lock.Path) {
			return lock.Path
		}
		return Other
	}
}

// limit lets the first maxValues values pass, and returns [Other] for any other. So a
// label that is mapped badly costs a limited number of series.
type limit struct {
	mu   sync.RWMutex
	seen map[string]struct{}
}

func (l *limit) value(v string) string {
	l.mu.RLock()
	_, ok := l.seen[v]
	l.mu.RUnlock()
	if ok || v == "" {
		return v
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.seen[v]; ok {
		return v
	}
	if len(l.seen) >= maxValues {
		return Other
	}
	if l.seen == nil {
		l.seen = map[string]struct{}{}
	}
	l.seen[v] = struct{}{}
	return v
}
