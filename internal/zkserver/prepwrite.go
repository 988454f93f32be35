package zkserver

import (
	"fmt"
	"slices"

	"github.com/docent-go/docent/internal/zkserver/access"
	"github.com/docent-go/docent/internal/zkserver/jute"
	"github.com/docent-go/docent/internal/zkserver/quota"
	"github.com/docent-go/docent/internal/zoodefs"
)

// write is one change with its arguments read: a request of its own or a part of a
// multi.
type write struct {
	op      zoodefs.Op
	create  jute.CreateRequest
	path    string
	data    []byte
	acl     []jute.ACL
	version int32
	null    bool // the path was null, which makes the real server fail in some writes
}

// parse reads the arguments of a request that is one change.
func (p *prepStage) parse(r *request) (write, zoodefs.Code) {
	w := write{op: r.op}
	d := jute.Decoder{B: r.body}
	switch r.op {
	case zoodefs.OpCreate, zoodefs.OpCreate2, zoodefs.OpCreateContainer, zoodefs.OpCreateTTL:
		w.create = d.Create(r.op)
		w.path, w.null = w.create.Path, w.create.Null
	case zoodefs.OpDelete, zoodefs.OpCheck:
		w.path, w.null = d.NullablePath()
		w.version = d.Int()
	case zoodefs.OpSetData:
		w.path, w.null = d.NullablePath()
		w.data, w.version = d.Buffer(), d.Int()
	case zoodefs.OpSetACL:
		w.path, w.null = d.NullablePath()
		w.acl, w.version = d.ACLs(), d.Int()
	case zoodefs.OpDeleteContainer:
		switch {
		case r.internal:
			w.path = r.path
		case p.cfg.traits.readsFirst:
			w.path = d.Path()
		default:
			return w, zoodefs.CodeBadArguments // the real server takes the whole frame for a path
		}
	}
	if d.Err != nil {
		return w, zoodefs.CodeMarshallingError
	}
	return w, zoodefs.CodeOK
}

// write validates one change and fills in the transaction x.
func (p *prepStage) write(r *request, x *txn, w write) zoodefs.Code {
	x.op = w.op
	if p.cfg.has(QuirkKeeperNodes) && inKeeperFolder(w.path) && w.op != zoodefs.OpCheck {
		return zoodefs.CodeBadArguments
	}
	switch w.op {
	case zoodefs.OpCreate, zoodefs.OpCreate2, zoodefs.OpCreateContainer, zoodefs.OpCreateTTL:
		return p.create(r, x, w)
	case zoodefs.OpDelete:
		return p.delete(r, x, w)
	case zoodefs.OpDeleteContainer:
		return p.deleteContainer(x, w)
	case zoodefs.OpSetData:
		return p.setData(r, x, w)
	case zoodefs.OpSetACL:
		return p.setACL(r, x, w)
	case zoodefs.OpCheck:
		return p.check(r, x, w)
	case zoodefs.OpCloseSession:
		p.closeSession(r, x)
		return zoodefs.CodeOK
	default:
		return zoodefs.CodeMarshallingError
	}
}

// bumpVersion checks the expected version, where -1 means any, and returns the next
// version.
func bumpVersion(now, want int32) (int32, zoodefs.Code) {
	if want != -1 && want != now {
		return 0, zoodefs.CodeBadVersion
	}
	return now + 1, zoodefs.CodeOK
}

func (p *prepStage) delete(r *request, x *txn, w write) zoodefs.Code {
	if code := r.checkSession(); code != zoodefs.CodeOK {
		return code
	}
	if w.null {
		return zoodefs.CodeMarshallingError
	}
	parentPath, ok := parentForWrite(w.path)
	if !ok || systemPath(w.path) {
		return zoodefs.CodeBadArguments
	}
	parent := p.record(parentPath)
	if parent == nil {
		return zoodefs.CodeNoNode
	}
	if !access.Permitted(parent.acl, zoodefs.PermDelete, r.ids) {
		return zoodefs.CodeNoAuth
	}
	n := p.record(w.path)
	if n == nil {
		return zoodefs.CodeNoNode
	}
	if _, code := bumpVersion(n.stat.version, w.version); code != zoodefs.CodeOK {
		return code
	}
	if n.children > 0 {
		return zoodefs.CodeNotEmpty
	}
	p.recordDelete(x, parent, w.path)
	return zoodefs.CodeOK
}

func (p *prepStage) recordDelete(x *txn, parent *changeRecord, path string) {
	x.path = path
	parent = parent.duplicate(x.zxid)
	parent.children--
	parent.stat.pzxid = x.zxid
	p.add(parent)
	p.add(&changeRecord{zxid: x.zxid, path: path})
}

// deleteContainer prepares a request of the container manager. It checks again that
// there are no children, because a create may be in flight.
func (p *prepStage) deleteContainer(x *txn, w write) zoodefs.Code {
	parentPath, ok := parentForWrite(w.path)
	if !ok || systemPath(w.path) {
		return zoodefs.CodeBadArguments
	}
	n := p.record(w.path)
	if n == nil {
		return zoodefs.CodeNoNode
	}
	if n.children > 0 {
		return zoodefs.CodeNotEmpty
	}
	if kindOf(n.stat.owner) == ownerSession {
		return zoodefs.CodeBadVersion
	}
	parent := p.record(parentPath)
	if parent == nil {
		return zoodefs.CodeNoNode
	}
	p.recordDelete(x, parent, w.path)
	return zoodefs.CodeOK
}

// permitted returns the node at path if r has the permission perm. Otherwise the
// code names the first fault, in the order of the real server.
func (p *prepStage) permitted(r *request, path string, perm int32) (*changeRecord, zoodefs.Code) {
	if code := r.checkSession(); code != zoodefs.CodeOK {
		return nil, code
	}
	if !validPath(path) {
		return nil, zoodefs.CodeBadArguments
	}
	n := p.record(path)
	if n == nil {
		return nil, zoodefs.CodeNoNode
	}
	if !access.Permitted(n.acl, perm, r.ids) {
		return nil, zoodefs.CodeNoAuth
	}
	return n, zoodefs.CodeOK
}

func (p *prepStage) setData(r *request, x *txn, w write) zoodefs.Code {
	n, code := p.permitted(r, w.path, zoodefs.PermWrite)
	if code != zoodefs.CodeOK {
		return code
	}
	if code := p.checkQuota(w.path, 0, len(w.data)-n.size); code != zoodefs.CodeOK {
		return code
	}
	version, code := bumpVersion(n.stat.version, w.version)
	if code != zoodefs.CodeOK {
		return code
	}
	x.path, x.data, x.version = w.path, w.data, version
	n = n.duplicate(x.zxid)
	n.stat.version, n.stat.mtime, n.stat.mzxid = version, x.time, x.zxid
	n.size = len(x.data)
	p.add(n)
	return zoodefs.CodeOK
}

func (p *prepStage) setACL(r *request, x *txn, w write) zoodefs.Code {
	if code := r.checkSession(); code != zoodefs.CodeOK {
		return code
	}
	if !validPath(w.path) {
		return zoodefs.CodeBadArguments
	}
	list, code := p.cfg.schemes().FixACL(w.acl, r.ids)
	if code != zoodefs.CodeOK {
		return code
	}
	n := p.record(w.path)
	if n == nil {
		return zoodefs.CodeNoNode
	}
	if !access.Permitted(n.acl, zoodefs.PermAdmin, r.ids) {
		return zoodefs.CodeNoAuth
	}
	version, code := bumpVersion(n.stat.aversion, w.version)
	if code != zoodefs.CodeOK {
		return code
	}
	x.path, x.acl, x.version = w.path, list, version
	n = n.duplicate(x.zxid)
	n.stat.aversion = version
	p.add(n)
	return zoodefs.CodeOK
}

func (p *prepStage) check(r *request, x *txn, w write) zoodefs.Code {
	n, code := p.permitted(r, w.path, zoodefs.PermRead)
	if code != zoodefs.CodeOK {
		return code
	}
	x.path = w.path
	_, code = bumpVersion(n.stat.version, w.version)
	return code
}

// closeSession collects the nodes that the session owns, now or by a transaction in
// flight.
func (p *prepStage) closeSession(r *request, x *txn) {
	x.paths = byAge(p.tree.ephemerals[r.session])
	for _, c := range p.inFlight {
		if c.stat == nil {
			x.paths = slices.DeleteFunc(x.paths, func(path string) bool { return path == c.path })
		} else if c.stat.owner == r.session && !slices.Contains(x.paths, c.path) {
			x.paths = append(x.paths, c.path)
		}
	}
	// The real server deletes in the order of a hash table. Any order is right, if
	// the same seed gives the same order.
	r.s.rng.Shuffle(len(x.paths), func(i, j int) { x.paths[i], x.paths[j] = x.paths[j], x.paths[i] })
	for _, path := range x.paths {
		p.add(&changeRecord{zxid: x.zxid, path: path})
	}
	if ses := r.tracked(); ses != nil {
		ses.closing = true
	}
}

// create checks in the order of the real server. If a request has several faults,
// that order decides which error the client gets.
func (p *prepStage) create(r *request, x *txn, w write) zoodefs.Code {
	c := w.create
	owner, code := p.createOwner(r, w)
	if code != zoodefs.CodeOK {
		return code
	}
	if w.null {
		return zoodefs.CodeMarshallingError
	}
	parentPath, ok := parentForWrite(c.Path)
	if !ok {
		return zoodefs.CodeBadArguments
	}
	list, code := p.cfg.schemes().FixACL(c.ACL, r.ids)
	if code != zoodefs.CodeOK {
		return code
	}
	parent := p.record(parentPath)
	if parent == nil {
		return zoodefs.CodeNoNode
	}
	if !access.Permitted(parent.acl, zoodefs.PermCreate, r.ids) {
		return zoodefs.CodeNoAuth
	}
	path := c.Path
	if sequential(c.Flags) {
		path += fmt.Sprintf("%010d", parent.stat.cversion)
	}
	if !validPath(path) {
		return zoodefs.CodeBadArguments
	}
	if p.record(path) != nil {
		return zoodefs.CodeNodeExists
	}
	if kindOf(parent.stat.owner) == ownerSession {
		return zoodefs.CodeNoChildrenForEphemerals
	}
	if code := p.checkQuota(path, 1, len(c.Data)); code != zoodefs.CodeOK {
		return code
	}
	x.path, x.data, x.acl = path, c.Data, list
	x.parentVersion = parent.stat.cversion + 1
	x.owner = storedOwner(r, w)

	parent = parent.duplicate(x.zxid)
	parent.children++
	parent.stat.cversion, parent.stat.pzxid = x.parentVersion, x.zxid
	p.add(parent)
	st := newStoredStat(x.zxid, x.time, owner)
	p.add(&changeRecord{zxid: x.zxid, path: path, stat: &st, size: len(x.data), acl: list})
	return zoodefs.CodeOK
}

// checkQuota refuses a change that a hard limit forbids. What is in flight does not count.
func (p *prepStage) checkQuota(path string, count, size int) zoodefs.Code {
	top, ok := p.tree.underQuota(path)
	if !ok || !p.cfg.EnforceQuota {
		return zoodefs.CodeOK
	}
	limits, ok := quota.Parse(p.tree.nodes[quota.LimitsPath(top)].data)
	if !ok {
		return zoodefs.CodeMarshallingError
	}
	n := p.tree.nodes[quota.StatsPath(top)]
	if n == nil {
		return zoodefs.CodeOK
	}
	usage, ok := quota.Parse(n.data)
	switch {
	case !ok:
		return zoodefs.CodeMarshallingError
	case quota.Exceeded(limits, usage, int64(count), int64(size)):
		return zoodefs.CodeQuotaExceeded
	default:
		return zoodefs.CodeOK
	}
}

func sequential(flags int32) bool {
	return flags == zoodefs.FlagPersistentSeq || flags == zoodefs.FlagEphemeralSeq || flags == zoodefs.FlagTTLSeq
}

// createOwner checks flags, ttl and session. It returns the owner that the flags
// ask for.
func (p *prepStage) createOwner(r *request, w write) (int64, zoodefs.Code) {
	c := w.create
	if c.Flags < zoodefs.FlagPersistent || c.Flags > zoodefs.FlagTTLSeq {
		return 0, zoodefs.CodeBadArguments
	}
	ttl := c.Flags == zoodefs.FlagTTL || c.Flags == zoodefs.FlagTTLSeq
	switch {
	case ttl && p.cfg.lacks(zoodefs.OpCreateTTL), c.Flags == zoodefs.FlagContainer && p.cfg.lacks(zoodefs.OpCreateContainer):
		return 0, zoodefs.CodeBadArguments
	case ttl && !p.cfg.ExtendedTypes:
		return 0, zoodefs.CodeUnimplemented
	case ttl && (c.TTL <= 0 || c.TTL > maxTTL):
		return 0, zoodefs.CodeBadArguments
	case !ttl && (c.TTL >= 0 || w.op == zoodefs.OpCreateTTL):
		// In ZooKeeper 3.8.0 a createTTL without a ttl flag and with ttl -1 passes
		// this check, and kills the server when it is applied.
		return 0, zoodefs.CodeBadArguments
	}
	if code := r.checkSession(); code != zoodefs.CodeOK {
		return 0, code
	}
	switch {
	case ttl:
		return ttlOwnerMask | c.TTL, zoodefs.CodeOK
	case c.Flags == zoodefs.FlagContainer:
		return containerOwner, zoodefs.CodeOK
	case c.Flags == zoodefs.FlagEphemeral || c.Flags == zoodefs.FlagEphemeralSeq:
		return r.session, zoodefs.CodeOK
	default:
		return 0, zoodefs.CodeOK
	}
}

// storedOwner returns the owner that the transaction stores. It follows from the
// request type and not from the flags: a plain create with the container flag makes
// an ordinary node.
func storedOwner(r *request, w write) int64 {
	switch {
	case w.op == zoodefs.OpCreateContainer:
		return containerOwner
	case w.op == zoodefs.OpCreateTTL:
		return ttlOwnerMask | w.create.TTL
	case w.create.Flags == zoodefs.FlagEphemeral || w.create.Flags == zoodefs.FlagEphemeralSeq:
		return r.session
	default:
		return 0
	}
}
