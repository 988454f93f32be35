package zkserver

import "fmt"

// create checks in the order of the real server. If a request has several faults,
// that order decides which error the client gets.
func (p *prepStage) create(r *request, x *txn, w write) Code {
	c := w.create
	owner, code := p.createOwner(r, w)
	if code != CodeOK {
		return code
	}
	if w.null {
		return CodeMarshallingError
	}
	parentPath, ok := parentForWrite(c.path)
	if !ok {
		return CodeBadArguments
	}
	list, code := fixACL(c.acl, r.ids, p.cfg.traits.ipv6)
	if code != CodeOK {
		return code
	}
	parent := p.record(parentPath)
	if parent == nil {
		return CodeNoNode
	}
	if !permitted(parent.acl, permCreate, r.ids) {
		return CodeNoAuth
	}
	path := c.path
	if sequential(c.flags) {
		path += fmt.Sprintf("%010d", parent.stat.cversion)
	}
	if !validPath(path) {
		return CodeBadArguments
	}
	if p.record(path) != nil {
		return CodeNodeExists
	}
	if kindOf(parent.stat.owner) == ownerSession {
		return CodeNoChildrenForEphemerals
	}
	x.path, x.data, x.acl = path, c.data, list
	x.parentVersion = parent.stat.cversion + 1
	x.owner = storedOwner(r, w)

	parent = parent.duplicate(x.zxid)
	parent.children++
	parent.stat.cversion, parent.stat.pzxid = x.parentVersion, x.zxid
	p.add(parent)
	st := newStoredStat(x.zxid, x.time, owner)
	p.add(&changeRecord{zxid: x.zxid, path: path, stat: &st, acl: list})
	return CodeOK
}

func sequential(flags int32) bool {
	return flags == flagPersistentSeq || flags == flagEphemeralSeq || flags == flagTTLSeq
}

// createOwner checks flags, ttl and session. It returns the owner that the flags
// ask for.
func (p *prepStage) createOwner(r *request, w write) (int64, Code) {
	c := w.create
	if c.flags < flagPersistent || c.flags > flagTTLSeq {
		return 0, CodeBadArguments
	}
	ttl := c.flags == flagTTL || c.flags == flagTTLSeq
	switch {
	case ttl && p.cfg.lacks(OpCreateTTL), c.flags == flagContainer && p.cfg.lacks(OpCreateContainer):
		return 0, CodeBadArguments
	case ttl && !p.cfg.ExtendedTypes:
		return 0, CodeUnimplemented
	case ttl && (c.ttl <= 0 || c.ttl > maxTTL):
		return 0, CodeBadArguments
	case !ttl && (c.ttl >= 0 || w.op == OpCreateTTL):
		// In ZooKeeper 3.8.0 a createTTL without a ttl flag and with ttl -1 passes
		// this check, and kills the server when it is applied.
		return 0, CodeBadArguments
	}
	if code := r.checkSession(); code != CodeOK {
		return 0, code
	}
	switch {
	case ttl:
		return ttlOwnerMask | c.ttl, CodeOK
	case c.flags == flagContainer:
		return containerOwner, CodeOK
	case c.flags == flagEphemeral || c.flags == flagEphemeralSeq:
		return r.session, CodeOK
	default:
		return 0, CodeOK
	}
}

// storedOwner returns the owner that the transaction stores. It follows from the
// request type and not from the flags: a plain create with the container flag makes
// an ordinary node.
func storedOwner(r *request, w write) int64 {
	switch {
	case w.op == OpCreateContainer:
		return containerOwner
	case w.op == OpCreateTTL:
		return ttlOwnerMask | w.create.ttl
	case w.create.flags == flagEphemeral || w.create.flags == flagEphemeralSeq:
		return r.session
	default:
		return 0
	}
}
