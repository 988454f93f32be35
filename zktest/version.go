package zktest

import (
	"fmt"
	"regexp"
	"strconv"
)

// Version selects the ZooKeeper release whose behaviour a server shows where
// releases differ. [ParseVersion] finds the one for a release number.
type Version int

const (
	// ZooKeeper35 stands for the releases 3.5.3 to 3.5.10: ZooKeeper380 without
	// the requests that are newer, which are addWatch, setWatches2, multiRead,
	// getEphemerals, getAllChildrenNumber and whoAmI. Containers are there.
	// It has not been compared with a running server.
	ZooKeeper35 Version = iota + 1
	// ZooKeeper380 is release 3.8.0 as Debian 12 packages it, with the fix for
	// CVE-2024-23944: a client is told of no change to a node that it may not
	// read. It is also the nearest to the releases from 3.6.0 to 3.8.3, some of
	// which lack that fix. A client needs no permission for exists, a lone check
	// request is never answered, watch events carry zxid -1, and a connection
	// has one watch mode per path and table.
	ZooKeeper380
	// ZooKeeper384 is release 3.8.4 and later, as compared with 3.8.6. It
	// differs from ZooKeeper380 in three ways. exists of a node that is there
	// takes READ. Within a transaction a create2 is answered with a Stat, and
	// create flags that mean nothing refuse the whole transaction. A lone check
	// is refused as unknown, which releases do since 3.8.5.
	ZooKeeper384
	// ZooKeeper39 is release 3.9.2 and later, as compared with 3.9.5, and is the
	// default. In addition to what ZooKeeper384 does, watch events carry the
	// zxid of their transaction, and a connection may watch a path in several
	// modes at once. A malformed write takes no zxid. deleteContainer works for
	// clients. Addresses of the ip scheme may be those of IPv6, which is so
	// since 3.9.4.
	ZooKeeper39
)

// String returns the release that the version is held to, such as "3.9.5".
func (v Version) String() string {
	switch v {
	case ZooKeeper35:
		return "3.5.10"
	case ZooKeeper380:
		return "3.8.0"
	case ZooKeeper384:
		return "3.8.6"
	case ZooKeeper39:
		return "3.9.5"
	default:
		return fmt.Sprintf("version%d", int(v))
	}
}

var releaseNumber = regexp.MustCompile(`\b(\d+)\.(\d+)\.(\d+)`)

// ParseVersion returns the Version that is nearest to a release. The text is a
// release number such as "3.9.5", or any text with one in it: the first counts,
// so that the answer of a server to srvr will do. It fails for a text without a
// number, for releases before 3.5 and for those of 4.
func ParseVersion(text string) (Version, error) {
	m := releaseNumber.FindStringSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("zktest: no release number in %q", text)
	}
	var n [3]int
	for i := range n {
		n[i], _ = strconv.Atoi(m[i+1]) // digits; a number too large is the largest
	}
	minor, patch := n[1], n[2]
	switch {
	case n[0] != 3 || minor < 5:
		return 0, fmt.Errorf("zktest: %s is no release from 3.5 on", m[0])
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

// traits are the ways in which releases differ that clients can see.
type traits struct {
	built string // when, as four-letter words say it
	// existsReads is set where exists of a node that is there takes READ
	// (ZOOKEEPER-2590).
	existsReads bool
	// typedMulti is set where a transaction keeps the types of its creates, and
	// reads their flags with care (ZOOKEEPER-4026).
	typedMulti bool
	// refusesCheck is set where a lone check is refused as unknown; older
	// servers trip over their own answer to it.
	refusesCheck bool
	// readsFirst is set where a write is read before it takes a zxid.
	readsFirst bool
	// manyModes is set where a connection may hold a path in several watch
	// modes at once (ZOOKEEPER-4466).
	manyModes bool
	// eventZxid is set where a watch event carries the zxid of its change.
	eventZxid bool
	ipv6      bool // the ip scheme knows addresses of IPv6
	restores  bool // mntr counts what the admin server's restore does
}

// traits returns what is particular to the version, and false if there is none
// such.
func (v Version) traits() (traits, bool) {
	switch v {
	case ZooKeeper35:
		return traits{built: "2022-05-29 11:06 UTC"}, true
	case ZooKeeper380:
		return traits{built: "2022-03-07 19:32 UTC"}, true
	case ZooKeeper384:
		return traits{built: "2026-01-28 20:21 UTC", existsReads: true, typedMulti: true, refusesCheck: true}, true
	case ZooKeeper39:
		return traits{
			built: "2026-02-11 20:15 UTC", existsReads: true, typedMulti: true, refusesCheck: true,
			readsFirst: true, manyModes: true, eventZxid: true, ipv6: true, restores: true,
		}, true
	default:
		return traits{}, false
	}
}

// unknownTo reports requests that are newer than the version.
func (v Version) unknownTo(op Op) bool {
	switch op {
	case OpMultiRead, OpGetEphemerals, OpGetAllChildrenNumber, OpSetWatches2, OpAddWatch, OpWhoAmI:
		return v == ZooKeeper35
	default:
		return false
	}
}

// versionText is what the server says it is where clients parse it.
func (c *config) versionText() string {
	if c.profile == ClickHouseKeeper {
		return "v26.6.1.1-zktest"
	}
	return c.version.String() + "-zktest, built on " + c.traits.built
}
