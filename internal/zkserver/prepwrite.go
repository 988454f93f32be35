package zkserver

import "slices"

// write is one change with its arguments read: a request of its own or a part of a
// multi.
type write struct {
	op      Op
	create  createRequest
	path    string
	data    []byte
	acl     []acl
	version int32
	null    bool // the path was null, which makes the real server fail in some writes
}

// parse reads the arguments of a request that is one change.
func (p *prepStage) parse(r *request) (write, Code) {
	w := write{op: r.op}
	d := decoder{b: r.body}
	switch r.op {
	case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL:
		w.create = d.create(r.op)
		w.path, w.null = w.create.path, w.create.null
	case OpDelete, OpCheck:
		w.path, w.null = d.nullablePath()
		w.version = d.int()
	case OpSetData:
		w.path, w.null = d.nullablePath()
		w.data, w.version = d.buffer(), d.int()
	case OpSetACL:
		w.path, w.null = d.nullablePath()
		w.acl, w.version = d.acls(), d.int()
	case OpDeleteContainer:
		switch {
		case r.internal:
			w.path = r.path
		case p.cfg.traits.readsFirst:
			w.path = d.path()
		default:
			return w, CodeBadArguments // the real server takes the whole frame for a path
		}
	}
	if d.err != nil {
		return w, CodeMarshallingError
	}
	return w, CodeOK
}

// write validates one change and fills in the transaction x.
func (p *prepStage) write(r *request, x *txn, w write) Code {
	x.op = w.op
	if p.cfg.has(QuirkKeeperNodes) && inKeeperFolder(w.path) && w.op != OpCheck {
		return CodeBadArguments
	}
	switch w.op {
	case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL:
		return p.create(r, x, w)
	case OpDelete:
		return p.delete(r, x, w)
	case OpDeleteContainer:
		return p.deleteContainer(x, w)
	case OpSetData:
		return p.setData(r, x, w)
	case OpSetACL:
		return p.setACL(r, x, w)
	case OpCheck:
		return p.check(r, x, w)
	case OpCloseSession:
		p.closeSession(r, x)
		return CodeOK
	default:
		return CodeMarshallingError
	}
}

// bumpVersion checks the expected version, where -1 means any, and returns the next
// version.
func bumpVersion(now, want int32) (int32, Code) {
	if want != -1 && want != now {
		return 0, CodeBadVersion
	}
	return now + 1, CodeOK
}

func (p *prepStage) delete(r *request, x *txn, w write) Code {
	if code := r.checkSession(); code != CodeOK {
		return code
	}
	if w.null {
		return CodeMarshallingError
	}
	parentPath, ok := parentForWrite(w.path)
	if !ok || systemPath(w.path) {
		return CodeBadArguments
	}
	parent := p.record(parentPath)
	if parent == nil {
		return CodeNoNode
	}
	if !permitted(parent.acl, permDelete, r.ids) {
		return CodeNoAuth
	}
	n := p.record(w.path)
	if n == nil {
		return CodeNoNode
	}
	if _, code := bumpVersion(n.stat.version, w.version); code != CodeOK {
		return code
	}
	if n.children > 0 {
		return CodeNotEmpty
	}
	p.recordDelete(x, parent, w.path)
	return CodeOK
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
func (p *prepStage) deleteContainer(x *txn, w write) Code {
	parentPath, ok := parentForWrite(w.path)
	if !ok || systemPath(w.path) {
		return CodeBadArguments
	}
	n := p.record(w.path)
	if n == nil {
		return CodeNoNode
	}
	if n.children > 0 {
		return CodeNotEmpty
	}
	if kindOf(n.stat.owner) == ownerSession {
		return CodeBadVersion
	}
	parent := p.record(parentPath)
	if parent == nil {
		return CodeNoNode
	}
	p.recordDelete(x, parent, w.path)
	return CodeOK
}

// permitted returns the node at path if r has the permission perm. Otherwise the
// code names the first fault, in the order of the real server.
func (p *prepStage) permitted(r *request, path string, perm int32) (*changeRecord, Code) {
	if code := r.checkSession(); code != CodeOK {
		return nil, code
	}
	if !validPath(path) {
		return nil, CodeBadArguments
	}
	n := p.record(path)
	if n == nil {
		return nil, CodeNoNode
	}
	if !permitted(n.acl, perm, r.ids) {
		return nil, CodeNoAuth
	}
	return n, CodeOK
}

func (p *prepStage) setData(r *request, x *txn, w write) Code {
	n, code := p.permitted(r, w.path, permWrite)
	if code != CodeOK {
		return code
	}
	version, code := bumpVersion(n.stat.version, w.version)
	if code != CodeOK {
		return code
	}
	x.path, x.data, x.version = w.path, w.data, version
	n = n.duplicate(x.zxid)
	n.stat.version, n.stat.mtime, n.stat.mzxid = version, x.time, x.zxid
	p.add(n)
	return CodeOK
}

func (p *prepStage) setACL(r *request, x *txn, w write) Code {
	if code := r.checkSession(); code != CodeOK {
		return code
	}
	if !validPath(w.path) {
		return CodeBadArguments
	}
	list, code := fixACL(w.acl, r.ids, p.cfg.traits.ipv6)
	if code != CodeOK {
		return code
	}
	n := p.record(w.path)
	if n == nil {
		return CodeNoNode
	}
	if !permitted(n.acl, permAdmin, r.ids) {
		return CodeNoAuth
	}
	version, code := bumpVersion(n.stat.aversion, w.version)
	if code != CodeOK {
		return code
	}
	x.path, x.acl, x.version = w.path, list, version
	n = n.duplicate(x.zxid)
	n.stat.aversion = version
	p.add(n)
	return CodeOK
}

func (p *prepStage) check(r *request, x *txn, w write) Code {
	n, code := p.permitted(r, w.path, permRead)
	if code != CodeOK {
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
