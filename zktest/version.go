package zktest

import (
	"fmt"
	"regexp"
	"strconv"

	"github.com/docent-go/docent/internal/zkserver"
)

// Version selects a ZooKeeper release, whose behaviour the server shows where
// releases differ. [ParseVersion] finds the Version for a release number.
type Version int

const (
	// ZooKeeper35 means the releases 3.5.3 to 3.5.10. It is ZooKeeper380 without
	// the newer requests: addWatch, setWatches2, multiRead, getEphemerals,
	// getAllChildrenNumber and whoAmI. It has containers. It has not been compared
	// with a running server.
	ZooKeeper35 Version = iota + 1
	// ZooKeeper380 is release 3.8.0 as Debian 12 packages it, with the fix for
	// CVE-2024-23944. By that fix no client is told of changes to a node that it may
	// not read. It is also the nearest to the releases from 3.6.0 to 3.8.3, some of
	// which lack that fix. A client needs no permission for exists. A lone check
	// request is never answered. Watch events carry zxid -1. A connection has one
	// watch mode per path and table.
	ZooKeeper380
	// ZooKeeper384 is release 3.8.4 and later, as compared with 3.8.6. It differs from
	// ZooKeeper380 in three ways. On a node that exists, exists takes READ. Within a
	// transaction a create2 is answered with a Stat, and if create flags mean nothing
	// the whole transaction is refused. A lone check is refused as unknown, as in
	// releases since 3.8.5.
	ZooKeeper384
	// ZooKeeper39 is release 3.9.2 and later, as compared with 3.9.5. It is the
	// default. It differs from ZooKeeper384 in five ways. Watch events carry the zxid
	// of their transaction. A connection may watch a path in several modes at once. A
	// malformed write takes no zxid. deleteContainer works for clients. The ip scheme
	// takes IPv6 addresses, as in releases since 3.9.4.
	ZooKeeper39
)

// String returns the release that the version is compared with, such as "3.9.5".
func (v Version) String() string { return zkserver.Version(v).String() }

var releaseNumber = regexp.MustCompile(`\b(\d+)\.(\d+)\.(\d+)`)

// ParseVersion returns the Version that is nearest to a release. The text is a
// release number such as "3.9.5", or any text that contains one, such as the answer
// of a server to srvr. The first number counts. ParseVersion fails for a text
// without a number, for releases before 3.5, and for releases of 4.
func ParseVersion(text string) (Version, error) {
	m := releaseNumber.FindStringSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("zktest: no release number in %q; it has three parts, like 3.9.5", text)
	}
	var n [3]int
	for i := range n {
		n[i], _ = strconv.Atoi(m[i+1]) // digits; a number too large is the largest
	}
	minor, patch := n[1], n[2]
	switch {
	case n[0] != 3 || minor < 5:
		return 0, fmt.Errorf("zktest: %s is not a release that is imitated: those are 3.5 to 3.9", m[0])
	case minor >= 9:
		return ZooKeeper39, nil
	case minor == 8 && patch >= 4:
		return ZooKeeper384, nil
	case minor == 5:
		return ZooKeeper35, nil
	default:
		return ZooKeeper380, nil
	}
}
