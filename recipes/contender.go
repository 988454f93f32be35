package recipes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/internal/seqqueue"
)

// Contender is a node that holds a lock or waits for it. This library, Curator or any
// other library with the same names has made it.
type Contender struct {
	Path         string // of the node
	Sequence     int64  // its place: lower goes first
	Mode         Mode
	Holder       bool   // it holds the lock; of another library, as that one sees its own
	Session      int64  // that made the node, which is deleted with it; 0 for a node that stays
	FencingToken int64  // czxid
	Data         []byte // what its owner wrote: by default the address of its host
	Owner        Owner  // what the data says, zero if nothing
	Family       Family // the library that made it, by its name

	// QueuedSince is when it asked for the lock: when its node was made, by the
	// server's clock. It is zero for a lease of this library, whose node is made when
	// the permit is granted. Curator makes its lease first and waits then.
	QueuedSince time.Time
	// HeldSince is since when it holds the lock, by the server's clock. It is zero
	// for a waiter, and for a holder of which that is not known. Servers keep no
	// record of it. It is known of a lease of this library. Queue also knows it of a holder that
	// certainly did not have to wait: that one holds since its node was made.
	HeldSince time.Time
	// Held bounds since when it holds the lock. It is zero for a waiter. If HeldSince
	// is known, both bounds are HeldSince. See [Since] for what is known otherwise.
	Held Since

	// Unreadable is set if the ACL of the node does not let this client read it.
	// What its name tells is known then. Session, QueuedSince, HeldSince,
	// FencingToken, Data and Owner are not, and are zero.
	Unreadable bool

	// WaitingBehind is how many acquires of the client that asks wait in its process,
	// without a node, until one of its nodes leaves; see [WithMaxContenders]. It is set
	// on the last contender of that client that stands in line, and 0 otherwise. Other clients cannot know it.
	WaitingBehind int

	asked bool   // its owner was asked to release
	full  string // its path on the server, "" if a program made the Contender
}

// Since says since when a contender holds a lock, as far as the servers' answers prove it,
// by the clock of the servers. Of a holder that had to wait, the servers keep no record of its
// turn. Its turn came after its node was made, and with the last deletion in the directory at the latest:
//
//	the newest change of the directory made | Earliest            | Latest
//	the holder's node                       | when that was made  | the same
//	another contender's node                | when it asked       | when that node was made
//	nothing that is there now               | when it asked       | not known
//
// The last line is that of a contender that has left, be it the holder before or a waiter. It is also
// that of ClickHouse Keeper, whose directories do not tell their newest change, and of Curator's leases.
// Who looks again can do better: a contender that waited at one look and held at the next
// began between them.
type Since struct {
	Earliest time.Time // it did not hold before; zero if that is not known
	Latest   time.Time // it held from then on; zero if that is not known
}

// Exact reports whether the beginning is known, and not only bounds of it.
func (s Since) Exact() bool { return !s.Earliest.IsZero() && s.Earliest.Equal(s.Latest) }

// Age is for how long the contender has held at the time now: not for less than least, and
// not for more than most. least is 0 if Latest is not known. most is 0 if
// Earliest is not known, as for a waiter. now is by the clock of the servers, or wrong by what the
// clocks differ.
func (s Since) Age(now time.Time) (least, most time.Duration) {
	if !s.Latest.IsZero() {
		least = max(0, now.Sub(s.Latest))
	}
	if !s.Earliest.IsZero() {
		most = max(least, now.Sub(s.Earliest))
	}
	return least, most
}

// Mode is what a contender wants of a lock.
type Mode int

// The modes.
const (
	ModeExclusive Mode = iota + 1 // a mutex
	ModeRead                      // shared by readers
	ModeWrite                     // exclusive among readers and writers
	ModeLease                     // one permit of a semaphore
)

// String is the mode in a word.
func (m Mode) String() string {
	switch m {
	case ModeExclusive:
		return "exclusive"
	case ModeRead:
		return "read"
	case ModeWrite:
		return "write"
	case ModeLease:
		return "lease"
	default:
		return "unknown"
	}
}

// modeOf tells by the text in front of the number.
func modeOf(tag string) Mode {
	switch tag {
	case readTag, kazooRead:
		return ModeRead
	case writeTag:
		return ModeWrite
	case leaseTag:
		return ModeLease
	default:
		return ModeExclusive // kazoo's WriteLock has the names of its Lock
	}
}

// Age is how long the contender has been there at the time now, waiting and
// holding, and 0 if it is Unreadable. It compares two hosts' clocks, so it may be
// off, and negative, by what they differ.
func (c Contender) Age(now time.Time) time.Duration {
	switch {
	case !c.QueuedSince.IsZero():
		return now.Sub(c.QueuedSince)
	case !c.HeldSince.IsZero():
		return now.Sub(c.HeldSince)
	default:
		return 0
	}
}

// Owner is the process that made a contender's node, as far as its data tells. Data that
// says nothing of the kind leaves it zero. kazoo's data is whatever its user calls an
// identifier, and go-zookeeper's is empty. A request to release may replace the data,
// see [Contender.ReleaseRequested].
type Owner struct {
	Host     string // its address, "" if not known
	HostName string // what the host calls itself, "" if not told; see client.WithName
	PID      int    // process id, 0 if not told
	Client   string // its name, "" if not told; see client.WithName
}

// named is what client.WithName writes.
var named = regexp.MustCompile(`^(\S+) pid=(\d{1,10})(?: host=(\S+))? client=(.+)$`)

// parseOwner reads a node's data. An address alone is what Curator writes, and
// Docent without a name.
func parseOwner(data []byte) Owner {
	text := string(data)
	if m := named.FindStringSubmatch(text); m != nil && printable(text) {
		pid, err := strconv.ParseInt(m[2], 10, 32)
		if err != nil {
			return Owner{}
		}
		return Owner{Host: strings.Trim(m[1], "?"), HostName: m[3], PID: int(pid), Client: m[4]}
	}
	if _, err := netip.ParseAddr(text); err == nil {
		return Owner{Host: text}
	}
	return Owner{}
}

// ReleaseRequested reports whether the owner was asked to release; see
// [InterProcessMutex.RequestRelease]. In Curator's protocol the request stands
// where the owner's data was. A holder of this library writes its data again, with
// the request behind it, so that Data and Owner are known. Of other owners, and of a
// waiter, they are not.
func (c Contender) ReleaseRequested() bool { return c.asked }

// Campaigns reports whether the node is that of a campaign by this library, as its name
// tells. A [LeaderSelector] has the other names of a mutex. Curator's says nothing of it.
func (c Contender) Campaigns() bool { return movable(c.Path) }

// String is for people. It has the data in it, if that is a short text.
func (c Contender) String() string {
	what := "waiter"
	if c.Holder {
		what = "holder"
	}
	return what + " " + c.text()
}

// text is String without what the contender does.
func (c Contender) text() string {
	if c.Unreadable {
		return fmt.Sprintf("%s, %s by %s, which this client may not read", c.Path, c.Mode, c.Family)
	}
	var s strings.Builder
	s.WriteString(c.Path)
	switch {
	case c.Session != 0:
		fmt.Fprintf(&s, ", session 0x%x", uint64(c.Session)) //nolint:gosec // bits, not a quantity
	case !c.QueuedSince.IsZero() || !c.HeldSince.IsZero(): // the node was read
		s.WriteString(", of no session, so that it stays until it is deleted")
	}
	if !c.QueuedSince.IsZero() {
		s.WriteString(", queued since " + c.QueuedSince.Format(time.RFC3339))
	}
	switch {
	case !c.HeldSince.IsZero():
		s.WriteString(", holds since " + c.HeldSince.Format(time.RFC3339))
	case !c.Held.Latest.IsZero():
		s.WriteString(", holds since " + c.Held.Latest.Format(time.RFC3339) + " or longer")
	}
	fmt.Fprintf(&s, ", %s by %s", c.Mode, c.Family)
	if text := string(c.Data); text != "" && text != revocation && len(text) <= maxText && printable(text) {
		s.WriteString(", " + text)
	}
	if c.asked {
		s.WriteString(", asked to release")
	}
	return s.String()
}

// maxText bounds the data that is shown: an address and a client's name fit.
const maxText = 256

// revocation is what a node's data says when its owner is asked to release
// (Curator: LockInternals.REVOKE_MESSAGE).
const revocation = "__REVOKE__"

// answered stands behind the data of a holder of this library that has heard.
const answered = " " + revocation

func printable(s string) bool {
	for _, r := range s {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return false
		}
	}
	return true
}

// lookups bounds the reads in flight for one inspection.
const lookups = 16

// contenders reads the nodes of a line and says which of them hold the lock: a node
// holds it if no node ahead blocks it. A node that vanishes meanwhile is left out.
// changed is the newest change of the directory's children (pzxid), as of the line.
func contenders(ctx context.Context, c *client.Client, q *seqqueue.Queue, line []seqqueue.Node, changed int64) ([]Contender, error) {
	found := make([]*Contender, len(line))
	errs := make([]error, len(line))
	slots := make(chan struct{}, lookups)
	var wg sync.WaitGroup
	for i, n := range line {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			found[i], errs[i] = lookUp(ctx, c, q.Path(n), n)
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	all := make([]Contender, 0, len(line))
	came := cameLast(found, changed)
	for i, f := range found {
		if f != nil {
			putInLine(f, line, found[:i], changed, came)
			all = append(all, *f)
		}
	}
	return all, nil
}

// cameLast is when the contender came whose node was the newest change of the directory. It
// is zero if no node of found was.
func cameLast(found []*Contender, changed int64) time.Time {
	for _, f := range found {
		if f != nil && !f.Unreadable && f.FencingToken == changed {
			return f.QueuedSince
		}
	}
	return time.Time{}
}

// putInLine says whether contender c holds the lock, and since when. In the line, c
// stands behind the contenders of earlier. A nil there is a contender that has vanished. came is
// what cameLast has found: whoever holds has held since then.
func putInLine(c *Contender, line []seqqueue.Node, earlier []*Contender, changed int64, came time.Time) {
	i := len(earlier)
	blocks := rule(line[i].Tag)
	c.Holder = !slices.ContainsFunc(line[:i], func(o seqqueue.Node) bool {
		return o.Recipe == line[i].Recipe && o.Key < line[i].Key && blocks(o) // a downgraded read has the write's number
	})
	switch {
	case !c.Holder || c.Unreadable:
	case c.FencingToken == changed || allAhead(c, earlier):
		c.HeldSince = c.QueuedSince
		c.Held = Since{c.HeldSince, c.HeldSince}
	default:
		c.Held = bounds(c.QueuedSince, came)
		if c.Held.Exact() { // to the millisecond
			c.HeldSince = came
		}
	}
}

// bounds are those of a hold that began between two times. If they stand the other way round, two
// servers have stamped them whose clocks differ, and the later one says nothing.
func bounds(earliest, latest time.Time) Since {
	if latest.Before(earliest) {
		latest = time.Time{}
	}
	return Since{earliest, latest}
}

// allAhead reports whether every node that was ever ahead of that of c is still
// there. The number of c counts these nodes: a server numbers a node by the children
// that its directory has had. The read node of a downgrade is younger, and stands there
// with the number of a write node that has left.
func allAhead(c *Contender, earlier []*Contender) bool {
	var n int64
	last := int64(-1) // the number counted last: a write node and its read node are one
	for _, o := range earlier {
		if o != nil && !o.Unreadable && o.FencingToken < c.FencingToken && o.Sequence < c.Sequence && o.Sequence != last {
			n, last = n+1, o.Sequence
		}
	}
	return n == c.Sequence
}

// sessionOf returns the session that a node is deleted with, 0 if it stays. ClickHouse
// Keeper shows an owner of containers, which is no session's id there or on
// ZooKeeper (EphemeralType.CONTAINER_EPHEMERAL_OWNER). Other negative owners are
// sessions, made by servers with an id from 128 on.
func sessionOf(stat *zk.Stat) int64 {
	if stat.EphemeralOwner == math.MinInt64 {
		return 0
	}
	return stat.EphemeralOwner
}

// lookUp returns nil for a node that is gone.
func lookUp(ctx context.Context, c *client.Client, path string, n seqqueue.Node) (*Contender, error) {
	data, stat, err := c.Get(ctx, path)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil //nolint:nilnil // gone is a result
	}
	found := contenderAt(c, path, n)
	if errors.Is(err, zk.ErrNoAuth) {
		found.Unreadable = true // a missing node is told from it
		return found, nil
	}
	if err != nil {
		return nil, err
	}
	fill(found, data, stat)
	return found, nil
}

// asLease makes c the holder of a permit. Its node was made when that was granted, or by Curator
// before.
func asLease(c *Contender) {
	made := c.QueuedSince
	if c.Family != FamilyDocent {
		c.HeldSince, c.Held = time.Time{}, Since{Earliest: made}
		return
	}
	c.QueuedSince, c.HeldSince, c.Held = time.Time{}, made, Since{made, made}
}

// contenderAt is the contender n at path, as far as its name tells.
func contenderAt(c *client.Client, path string, n seqqueue.Node) *Contender {
	full, _ := inner.ServerPath(c, path) // the path came from the server
	return &Contender{Path: path, full: full, Sequence: n.Sequence(), Mode: modeOf(n.Tag), Family: familyOf(path)}
}

// fill adds what the node of a contender says.
func fill(c *Contender, data []byte, stat *zk.Stat) {
	c.Session = sessionOf(stat)
	c.QueuedSince = time.UnixMilli(stat.Ctime)
	c.FencingToken = stat.Czxid
	c.Data, c.asked = cutRevocation(data)
	c.Owner = parseOwner(c.Data)
}

// cutRevocation returns what the owner of a node has written, and whether it was
// asked to release. Where the request stands alone, the data is not known and is
// the request.
func cutRevocation(data []byte) (own []byte, asked bool) {
	if string(data) == revocation {
		return data, true
	}
	return bytes.CutSuffix(data, []byte(answered))
}
