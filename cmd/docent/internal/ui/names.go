package ui

import (
	"fmt"
	"net/netip"
	"path"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The kinds of locks, in the words of `docent ls`.
const (
	kindMutex     = "mutex"
	kindReadWrite = "read/write"
	kindSemaphore = "semaphore"
	kindLatch     = "latch"
)

// The tags that stand before the numbers.
const (
	tagLock  = "lock-"
	tagRead  = "__READ__"
	tagWrite = "__WRIT__"
	tagLatch = "latch-"
	tagLease = "lease-"
	tagBare  = "" // a name that is a number alone
)

// place is what the name of a contender says.
type place struct {
	name string
	tag  string
	key  string // ten digits
}

// before is the order of a queue. Of two with the same number the read node was downgraded
// from the write node, and stands behind it.
func (p place) before(o place) bool {
	switch {
	case p.key != o.key:
		return p.key < o.key
	case p.tag != o.tag:
		return p.tag > o.tag
	}
	return p.name < o.name
}

// tagged reads a name that ends with a tag and a number of ten digits.
func tagged(name, tag string) (place, bool) {
	i := 0
	if tag != tagBare {
		i = strings.LastIndex(name, tag)
	}
	if i < 0 {
		return place{}, false
	}
	key := name[i+len(tag):]
	if len(key) != 10 || strings.Trim(key, "0123456789") != "" {
		return place{}, false
	}
	return place{name, tag, key}, true
}

// inLine reads the name of a contender by the first of the tags that it has.
func inLine(name string, tags ...string) (place, bool) {
	for _, tag := range tags {
		if p, ok := tagged(name, tag); ok {
			return p, true
		}
	}
	return place{}, false
}

// contends reports whether a name is that of a contender of any lock, whose node has no
// children.
func contends(name string) bool {
	_, ok := inLine(name, tagLock, tagRead, tagWrite, tagLatch, tagLease)
	return ok
}

// The beginnings of the names that libraries give their nodes.
var (
	docentName      = regexp.MustCompile(`^_c_[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}-`)
	curatorName     = regexp.MustCompile(`^_c_[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}-`)
	goZookeeperName = regexp.MustCompile(`^_c_[0-9a-f]{32}-`)
)

// libraryOf tells by the name of a node which library has made it.
func libraryOf(name string) string {
	switch {
	case docentName.MatchString(name):
		return "Docent"
	case curatorName.MatchString(name):
		return "Curator"
	case goZookeeperName.MatchString(name):
		return "go-zookeeper"
	}
	return ""
}

// protected reports whether name begins as a node of a library that puts an id in front.
func protected(name string) bool { return libraryOf(name) != "" }

// What stands in the data of a node whose owner is asked to release, alone or behind the
// owner's own data.
const revocation = "__REVOKE__"

// owner is what the data of a contender's node says of its process.
type owner struct{ host, hostname, pid, client, outer string }

var named = regexp.MustCompile(`^(\S+) pid=(\d{1,10})(?: host=(\S+))? client=(.+)$`)

// ownerOf reads the data of a node. within is the session of the docent in whose command the
// owner runs.
func ownerOf(data string) (o owner, asked bool) {
	if data == revocation {
		return owner{}, true
	}
	data, asked = strings.CutSuffix(data, " "+revocation)
	if m := named.FindStringSubmatch(data); m != nil {
		o = owner{host: strings.Trim(m[1], "?"), pid: m[2], hostname: m[3], client: m[4]}
		if i := strings.LastIndex(o.client, " within="); i >= 0 {
			if outer, err := strconv.ParseUint(o.client[i+len(" within="):], 0, 64); err == nil {
				o.client, o.outer = o.client[:i], fmt.Sprintf("%#x", outer)
			}
		}
		return o, asked
	}
	if _, err := netip.ParseAddr(data); err == nil {
		return owner{host: data}, asked
	}
	return owner{client: data}, asked // kazoo's identifier, a participant's id
}

// shown is a text of others as a page may show it: what is no printable character is a
// replacement, and what is longer than most is cut.
func shown(text string, most int) string {
	cut := false
	if len(text) > most {
		text, cut = text[:most], true
	}
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == '\u00ad' || unicode.Is(unicode.Bidi_Control, r) {
			return utf8.RuneError
		}
		return r
	}, text)
	if cut {
		text += "…"
	}
	return text
}

// join is a path below dir.
func join(dir, name string) string {
	if dir == "/" {
		return "/" + name
	}
	return dir + "/" + name
}

// above is the directory of a path.
func above(at string) string { return path.Dir(at) }
