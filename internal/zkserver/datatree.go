package zkserver

import (
	"slices"
	"strings"

	"github.com/docent-go/docent/internal/zkserver/jute"
	"github.com/docent-go/docent/internal/zkserver/watch"
	"github.com/docent-go/docent/internal/zoodefs"
)

func newDataTree(w *watch.Manager[conn], cfg *config) *dataTree {
	t := &dataTree{
		nodes:      map[string]*dataNode{},
		ephemerals: map[int64]map[string]uint64{},
		containers: map[string]struct{}{},
		ttls:       map[string]struct{}{},
		watches:    w,

		showsContainers: cfg.has(QuirkContainerOwner),
		keepsPzxid:      cfg.Keeper,
	}
	if cfg.has(QuirkKeeperNodes) {
		t.nodes["/"] = t.seed("", "keeper")
		t.seedKeeper()
		return t
	}
	t.nodes["/"] = t.seed("", "zookeeper")
	t.seed("/zookeeper", "quota", "config")
	t.seed("/zookeeper/quota")
	t.roster = cfg.roster
	config := t.seed(configNode)
	if !t.roster.Alone() {
		config.data = []byte(t.roster.String())
		config.stat.version, config.stat.mzxid = -1, t.roster.Version
	}
	config.acl = []jute.ACL{{Perms: zoodefs.PermRead, Scheme: "world", ID: "anyone", HasScheme: true, HasID: true}}
	config.stat.aversion = -1
	return t
}

// seed adds a node that every server has from its start.
func (t *dataTree) seed(path string, children ...string) *dataNode {
	n := &dataNode{data: []byte{}, acl: jute.OpenACL(), children: map[string]uint64{}}
	for _, c := range children {
		t.made++
		n.children[c] = t.made
	}
	t.nodes[path] = n
	return n
}

// seedKeeper makes the system nodes of Keeper: version 3 of its protocol, and the
// feature flag of multiRead.
func (t *dataTree) seedKeeper() {
	t.seed("/keeper", "api_version", "feature_flags")
	t.seed("/keeper/api_version").data = []byte("3")
	t.seed("/keeper/feature_flags").data = []byte{1 << 6}
}

func inKeeperFolder(path string) bool {
	return path == "/keeper" || strings.HasPrefix(path, "/keeper/")
}

// configNode is the node with the configuration of an ensemble.
const configNode = "/zookeeper/config"

// opPreset presets a counter of an ensemble. No request has the type.
const opPreset zoodefs.Op = -2

// apply performs x and fires the watches that x triggers.
func (t *dataTree) apply(x *txn) txnResult {
	res := t.applyOne(x)
	if x.zxid > t.lastZxid {
		t.lastZxid = x.zxid
	}
	return res
}

func (t *dataTree) applyOne(x *txn) txnResult {
	res := txnResult{op: x.op, path: x.path}
	switch x.op {
	case zoodefs.OpCreate, zoodefs.OpCreate2, zoodefs.OpCreateContainer, zoodefs.OpCreateTTL:
		res.stat, res.err = t.create(x)
	case zoodefs.OpDelete, zoodefs.OpDeleteContainer:
		res.err = t.delete(x.path, x.zxid)
	case zoodefs.OpSetData:
		res.stat, res.err = t.setData(x)
	case zoodefs.OpReconfig:
		t.roster = x.roster
		res.stat, res.err = t.setData(x)
	case zoodefs.OpSetACL:
		res.stat, res.err = t.setACL(x)
	case zoodefs.OpCloseSession:
		delete(t.ephemerals, x.session)
		for _, p := range x.paths {
			t.delete(p, x.zxid)
		}
	case zoodefs.OpMulti:
		t.applyMulti(x, &res)
	case opPreset:
		if n := t.nodes[x.path]; n != nil {
			x.preset(&n.stat)
		}
	case zoodefs.OpError:
		res.err = x.err
	}
	return res
}

// applyMulti performs all parts, or none if one of them failed in preparation. Then
// the parts before the failed one report success, and the parts after it report
// that they were not tried.
func (t *dataTree) applyMulti(x *txn, res *txnResult) {
	failed := slices.ContainsFunc(x.parts, func(p *txn) bool { return p.op == zoodefs.OpError })
	after := false
	for _, p := range x.parts {
		switch {
		case !failed:
			res.parts = append(res.parts, t.applyOne(p))
			continue
		case p.op == zoodefs.OpError:
			after = true
			res.parts = append(res.parts, txnResult{op: zoodefs.OpError, err: p.err})
		case after:
			res.parts = append(res.parts, txnResult{op: zoodefs.OpError, err: zoodefs.CodeRuntimeInconsistency})
		default:
			res.parts = append(res.parts, txnResult{op: zoodefs.OpError})
		}
	}
}

func splitPath(path string) (parent, name string) {
	i := strings.LastIndexByte(path, '/')
	return path[:i], path[i+1:]
}

func (t *dataTree) create(x *txn) (jute.Stat, zoodefs.Code) {
	parentPath, name := splitPath(x.path)
	parent := t.nodes[parentPath]
	if parent == nil {
		return jute.Stat{}, zoodefs.CodeNoNode
	}
	if t.nodes[x.path] != nil {
		return jute.Stat{}, zoodefs.CodeNodeExists
	}
	cversion := x.parentVersion
	if cversion == -1 {
		cversion = parent.stat.cversion + 1
	}
	// Since 3.6.0 the counter never decreases (ZOOKEEPER-3249). So at its maximum
	// it sticks instead of wrapping, and pzxid sticks with it.
	if cversion > parent.stat.cversion {
		parent.stat.cversion = cversion
		parent.stat.pzxid = x.zxid
	}
	n := &dataNode{
		data: x.data, acl: x.acl,
		stat: newStoredStat(x.zxid, x.time, x.owner), children: map[string]uint64{},
	}
	t.made++
	parent.children[name] = t.made
	t.nodes[x.path] = n
	switch kindOf(x.owner) {
	case ownerContainer:
		t.containers[x.path] = struct{}{}
	case ownerTTL:
		t.ttls[x.path] = struct{}{}
	case ownerSession:
		if t.ephemerals[x.owner] == nil {
			t.ephemerals[x.owner] = map[string]uint64{}
		}
		t.ephemerals[x.owner][x.path] = t.made
	case ownerNone:
	}
	st := t.stat(n)
	t.noteQuota(x.path, 1)
	t.use(x.path, 1, len(x.data))
	t.watches.Trigger(watch.DataTable, zoodefs.EventNodeCreated, x.path, x.zxid, n.acl, nil)
	t.watches.Trigger(watch.ChildTable, zoodefs.EventNodeChildrenChanged, watch.RootName(parentPath), x.zxid, parent.acl, nil)
	return st, zoodefs.CodeOK
}

func (t *dataTree) delete(path string, zxid int64) zoodefs.Code {
	parentPath, name := splitPath(path)
	parent, n := t.nodes[parentPath], t.nodes[path]
	if parent == nil {
		return zoodefs.CodeNoNode
	}
	delete(parent.children, name)
	if !t.keepsPzxid {
		parent.stat.pzxid = max(parent.stat.pzxid, zxid)
	}
	if n == nil {
		return zoodefs.CodeNoNode
	}
	delete(t.nodes, path)
	delete(t.containers, path)
	delete(t.ttls, path)
	if owned := t.ephemerals[n.stat.owner]; owned != nil {
		delete(owned, path)
	}
	t.noteQuota(path, -1)
	t.use(path, -1, -len(n.data))
	told := t.watches.Trigger(watch.DataTable, zoodefs.EventNodeDeleted, path, zxid, n.acl, nil)
	t.watches.Trigger(watch.ChildTable, zoodefs.EventNodeDeleted, path, zxid, n.acl, told)
	t.watches.Trigger(watch.ChildTable, zoodefs.EventNodeChildrenChanged, watch.RootName(parentPath), zxid, parent.acl, nil)
	return zoodefs.CodeOK
}

func (t *dataTree) setData(x *txn) (jute.Stat, zoodefs.Code) {
	n := t.nodes[x.path]
	if n == nil {
		return jute.Stat{}, zoodefs.CodeNoNode
	}
	more := len(x.data) - len(n.data)
	n.data = x.data
	n.stat.mtime, n.stat.mzxid, n.stat.version = x.time, x.zxid, x.version
	st := t.stat(n)
	t.use(x.path, 0, more)
	t.watches.Trigger(watch.DataTable, zoodefs.EventNodeDataChanged, x.path, x.zxid, n.acl, nil)
	return st, zoodefs.CodeOK
}

func (t *dataTree) setACL(x *txn) (jute.Stat, zoodefs.Code) {
	n := t.nodes[x.path]
	if n == nil {
		return jute.Stat{}, zoodefs.CodeNoNode
	}
	n.acl, n.stat.aversion = x.acl, x.version
	return t.stat(n), zoodefs.CodeOK
}
