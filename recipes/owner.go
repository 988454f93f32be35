package recipes

import (
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

// Owner is the process that made a contender's node, as far as its data tells. Data that
// says nothing of the kind leaves it zero. kazoo's data is whatever its user calls an
// identifier, and go-zookeeper's is empty. A request to release may replace the data,
// see [Contender.ReleaseRequested].
type Owner struct {
	Host   string // its address, "" if not known
	PID    int    // process id, 0 if not told
	Client string // its name, "" if not told; see client.WithName
}

// named is what client.WithName writes.
var named = regexp.MustCompile(`^(\S+) pid=(\d{1,10}) client=(.+)$`)

// parseOwner reads a node's data. An address alone is what Curator writes, and
// Docent without a name.
func parseOwner(data []byte) Owner {
	text := string(data)
	if m := named.FindStringSubmatch(text); m != nil && printable(text) {
		pid, err := strconv.ParseInt(m[2], 10, 32)
		if err != nil {
			return Owner{}
		}
		return Owner{Host: strings.Trim(m[1], "?"), PID: int(pid), Client: m[3]}
	}
	if _, err := netip.ParseAddr(text); err == nil {
		return Owner{Host: text}
	}
	return Owner{}
}
