package zkserver

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/docent-go/docent/internal/zkserver/jute"
	"github.com/docent-go/docent/internal/zkserver/quota"
	"github.com/docent-go/docent/internal/zkserver/roster"
	"github.com/docent-go/docent/internal/zkserver/watch"
	"github.com/docent-go/docent/internal/zoodefs"
)

// Values of a stored ephemeral owner that are not sessions.
const (
	containerOwner = int64(-1 << 63)
	ttlOwnerMask   = int64(-1) << 56
	maxTTL         = int64(1)<<40 - 1
)

// storedStat is the metadata that a node keeps. cversion counts creations of
// children only: it is the counter behind sequential names.
type storedStat struct {
	czxid, mzxid, pzxid         int64
	ctime, mtime                int64
	version, cversion, aversion int32
	owner                       int64
}

func newStoredStat(zxid, now, owner int64) storedStat {
	return storedStat{czxid: zxid, mzxid: zxid, pzxid: zxid, ctime: now, mtime: now, owner: owner}
}

// ownerKind tells what a stored owner means.
type ownerKind int

const (
	ownerNone ownerKind = iota
	ownerSession
	ownerContainer
	ownerTTL
)

func kindOf(owner int64) ownerKind {
	switch {
	case owner == 0:
		return ownerNone
	case owner == containerOwner:
		return ownerContainer
	case owner&ttlOwnerMask == ttlOwnerMask:
		return ownerTTL
	default:
		return ownerSession
	}
}

// dataNode is one node of the tree.
type dataNode struct {
	data     []byte
	acl      []jute.ACL
	stat     storedStat
	children map[string]uint64 // name and age, see dataTree.made
}

// stat translates the stored counters. The cversion that clients see counts
// deletions of children too.
func (t *dataTree) stat(n *dataNode) jute.Stat {
	kids := int32(len(n.children))
	owner := n.stat.owner
	switch kindOf(owner) {
	case ownerSession:
	case ownerContainer:
		if !t.showsContainers {
			owner = 0
		}
	case ownerNone, ownerTTL:
		owner = 0
	}
	return jute.Stat{
		Czxid: n.stat.czxid, Mzxid: n.stat.mzxid, Pzxid: n.stat.pzxid,
		Ctime: n.stat.ctime, Mtime: n.stat.mtime,
		Version: n.stat.version, Aversion: n.stat.aversion,
		Cversion:       n.stat.cversion*2 - kids,
		EphemeralOwner: owner,
		DataLength:     int32(len(n.data)),
		NumChildren:    kids,
	}
}

// validPath reports whether the server accepts path as the name of a node to write.
// It does not check the paths of reads, which find no such node.
func validPath(path string) bool {
	if path == "" || path[0] != '/' {
		return false
	}
	if path == "/" {
		return true
	}
	if strings.HasSuffix(path, "/") {
		return false
	}
	for name := range strings.SplitSeq(path[1:], "/") {
		if name == "" || name == "." || name == ".." {
			return false
		}
	}
	return !strings.ContainsFunc(path, forbiddenRune)
}

// forbiddenRune reports characters that the server refuses. It refuses characters
// beyond the basic plane because Java sees their surrogates.
func forbiddenRune(r rune) bool {
	return r <= 0x1f || r >= 0x7f && r <= 0x9f || r >= 0xd800 && r <= 0xf8ff || r >= 0xfff0
}

// parentForWrite returns the parent of a path, or false if the server does not look
// for it at all.
func parentForWrite(path string) (string, bool) {
	i := strings.LastIndexByte(path, '/')
	if i < 0 || strings.IndexByte(path, 0) >= 0 {
		return "", false
	}
	return path[:i], true
}

// systemPath reports whether path is a node that cannot be deleted.
func systemPath(path string) bool {
	switch path {
	case "/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config":
		return true
	default:
		return false
	}
}

// childNames returns the children in name order.
func (n *dataNode) childNames() []string { return slices.Sorted(maps.Keys(n.children)) }

// ephemeralsOf returns the paths a session owns, in name order.
func (t *dataTree) ephemeralsOf(session int64) []string {
	return slices.Sorted(maps.Keys(t.ephemerals[session]))
}

// byAge returns names in the order in which they were made. Everything that is
// drawn from a seed starts from this order. Alphabetical order would be wrong,
// because names may have random parts, which differ between two runs of one seed.
func byAge(ages map[string]uint64) []string {
	type aged struct {
		name string
		age  uint64
	}
	all := make([]aged, 0, len(ages)) // large directories are listed often: look each name up once
	for name, age := range ages {
		all = append(all, aged{name, age})
	}
	slices.SortFunc(all, func(a, b aged) int { return cmp.Compare(a.age, b.age) })
	names := make([]string, len(all))
	for i, a := range all {
		names[i] = a.name
	}
	return names
}

// descendants counts the nodes below path. For the root the real server subtracts
// its second key, and counts the nodes of the system.
func (t *dataTree) descendants(path string) int32 {
	if path == "/" {
		return int32(len(t.nodes) - 2)
	}
	n := int32(0)
	for p := range t.nodes {
		if strings.HasPrefix(p, path+"/") {
			n++
		}
	}
	return n
}

// noteQuota notes that a node has been made or deleted that may be one of a quota. The
// server counts a tree anew when its usage node is made.
func (t *dataTree) noteQuota(path string, made int) {
	if _, ok := quota.OfLimits(path); ok {
		t.quotas += made
	}
	if top, ok := quota.OfStats(path); ok && made > 0 {
		var count, size int64
		for p, n := range t.nodes {
			if p == top || strings.HasPrefix(p, top+"/") {
				count, size = count+1, size+int64(len(n.data))
			}
		}
		t.nodes[path].data = []byte(quota.Usage(count, size).String())
	}
}

// use adds to the usage of the nearest tree with a quota. The usage node does not change
// its version. A text that is none stays; the real server ends over it.
func (t *dataTree) use(path string, count, size int) {
	top, ok := t.underQuota(path)
	if !ok {
		return
	}
	n := t.nodes[quota.StatsPath(top)]
	if n == nil {
		return
	}
	if usage, ok := quota.Parse(n.data); ok {
		usage.Add(int64(count), int64(size))
		n.data = []byte(usage.String())
	}
}

// underQuota returns the nearest tree around path that has limits.
func (t *dataTree) underQuota(path string) (string, bool) {
	for t.quotas > 0 && path != "" {
		if t.nodes[quota.LimitsPath(path)] != nil {
			return path, true
		}
		path = path[:strings.LastIndexByte(path, '/')]
	}
	return "", false
}

// dataTree is the replicated state: the nodes, the sessions that own ephemeral
// nodes, and the last transaction applied. It changes only through apply, so a
// second server that applies the same transactions has the same tree. The server's
// mutex guards it.
type dataTree struct {
	nodes      map[string]*dataNode        // the root has two keys, "" and "/"
	ephemerals map[int64]map[string]uint64 // path and age
	containers map[string]struct{}
	ttls       map[string]struct{}
	lastZxid   int64
	made       uint64 // how many nodes have been made; the age of the newest
	quotas     int    // how many trees have limits
	roster     roster.Roster
	watches    *watch.Manager[conn]
	// showsContainers makes the Stat of a container show its stored owner.
	showsContainers bool
	// keepsPzxid leaves the Pzxid of a directory as it is when a child is deleted.
	keepsPzxid bool
}

// txn is one transaction, complete in itself: what it does to a tree depends on
// nothing else. op is opError for a request that failed but took a zxid.
type txn struct {
	zxid, time    int64
	session       int64
	op            zoodefs.Op
	err           zoodefs.Code
	path          string
	data          []byte
	acl           []jute.ACL
	owner         int64
	parentVersion int32 // cversion of the parent after a create
	version       int32
	roster        roster.Roster
	paths         []string // ephemerals of a closed session
	parts         []*txn   // of a multi
	preset        func(*storedStat)
}

// txnResult is the result of a transaction.
type txnResult struct {
	op    zoodefs.Op
	err   zoodefs.Code
	path  string
	stat  jute.Stat
	parts []txnResult
}

// changeRecord is the state that a node will have when the transactions in flight
// have been applied. stat is nil for a node that will be deleted.
type changeRecord struct {
	zxid     int64
	path     string
	stat     *storedStat
	children int
	size     int // of the data
	acl      []jute.ACL
}

// prepStage turns requests into transactions. It checks them against the tree as it
// will be, not as it is. The log lies between preparation and application, and two
// creates that overlap there must not get the same name. It is also the reason why
// a full sequence counter becomes negative under load and sticks otherwise.
type prepStage struct {
	tree     *dataTree
	zxid     int64 // last zxid given out
	latest   map[string]*changeRecord
	inFlight []*changeRecord // by zxid
	clock    func() int64    // wall clock, milliseconds
	cfg      *config
}

func (p *prepStage) nextZxid() int64 {
	p.zxid++
	return p.zxid
}

// record returns the state that the node at path will have, or nil.
func (p *prepStage) record(path string) *changeRecord {
	if r := p.latest[path]; r != nil {
		if r.stat == nil {
			return nil
		}
		return r
	}
	n := p.tree.nodes[path]
	if n == nil {
		return nil
	}
	st := n.stat
	return &changeRecord{zxid: -1, path: path, stat: &st, children: len(n.children), size: len(n.data), acl: n.acl}
}

// duplicate returns a copy that a transaction may change.
func (r *changeRecord) duplicate(zxid int64) *changeRecord {
	st := *r.stat
	return &changeRecord{zxid: zxid, path: r.path, stat: &st, children: r.children, size: r.size, acl: r.acl}
}

func (p *prepStage) add(r *changeRecord) {
	p.inFlight = append(p.inFlight, r)
	p.latest[r.path] = r
}

// applied forgets the records of transactions up to zxid.
func (p *prepStage) applied(zxid int64) {
	n := 0
	for n < len(p.inFlight) && p.inFlight[n].zxid <= zxid {
		r := p.inFlight[n]
		if p.latest[r.path] == r {
			delete(p.latest, r.path)
		}
		n++
	}
	if n == len(p.inFlight) {
		p.inFlight = p.inFlight[:0]
		return
	}
	p.inFlight = slices.Delete(p.inFlight, 0, n)
}

// forget drops all records: the transactions in flight will not be applied.
func (p *prepStage) forget() {
	clear(p.latest)
	p.inFlight = nil
}
