package zkserver

import (
	"fmt"

	"github.com/docent-go/docent/internal/zkserver/access"
	"github.com/docent-go/docent/internal/zkserver/quota"
	"github.com/docent-go/docent/internal/zoodefs"
)

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
