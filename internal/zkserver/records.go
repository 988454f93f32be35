package zkserver

import "github.com/docent-go/docent/internal/zoodefs"

// acl is one entry of an access control list. The flags distinguish null strings
// from empty ones, which the real server treats differently.
type acl struct {
	perms            int32
	scheme, id       string
	hasScheme, hasID bool
}

func openACL() []acl {
	return []acl{{perms: zoodefs.PermAll, scheme: "world", id: "anyone", hasScheme: true, hasID: true}}
}

// createRequest is the body of create, create2, createContainer and, with a
// ttl, createTTL.
type createRequest struct {
	path  string
	data  []byte
	acl   []acl
	flags int32
	ttl   int64
	null  bool // the path was null
}

func (d *decoder) create(op zoodefs.Op) createRequest {
	path, null := d.nullablePath()
	r := d.createRest(op, path)
	r.null = null
	return r
}

// createRest reads everything after the path of a create.
func (d *decoder) createRest(op zoodefs.Op, path string) createRequest {
	r := createRequest{path: path, ttl: -1}
	r.data = d.buffer()
	r.acl = d.acls()
	r.flags = d.int()
	if op == zoodefs.OpCreateTTL {
		r.ttl = d.long()
	}
	return r
}

// nullablePath reads a path that may be null, which is no error when a transaction is
// read.
func (d *decoder) nullablePath() (path string, null bool) {
	path, ok := d.text()
	return path, !ok && d.err == nil
}

// watchedPath is the body of the reads that may leave a watch.
type watchedPath struct {
	path  string
	watch bool
}

func (d *decoder) watchedPath() watchedPath {
	return watchedPath{path: d.path(), watch: d.bool()}
}

// connectRequest is the first frame of a connection.
type connectRequest struct {
	protocol  int32
	lastZxid  int64
	timeoutMS int32
	session   int64
	password  []byte
	readOnly  bool
	// oldClient is set if the frame ends before the readOnly byte. The answer then
	// lacks that byte too.
	oldClient bool
}

func (d *decoder) connect() connectRequest {
	r := connectRequest{
		protocol:  d.int(),
		lastZxid:  d.long(),
		timeoutMS: d.int(),
		session:   d.long(),
	}
	r.password = d.buffer()
	if d.err == nil && len(d.b) > 0 {
		r.readOnly = d.bool()
	} else {
		r.oldClient = true
	}
	return r
}

// multiPart is one operation of a multi or multiRead.
type multiPart struct {
	op     zoodefs.Op
	create createRequest
	path   string
	data   []byte
	ver    int32
	// null marks a path that was null. The real server fails only when it gets to
	// this part.
	null bool
}

func (p multiPart) isRead() bool { return p.op == zoodefs.OpGetData || p.op == zoodefs.OpGetChildren }

// multi reads the operations of a transaction, or of a multiRead, up to the header
// that ends it. Reads and writes do not mix. The configuration decides which
// operations are known.
func (d *decoder) multi(cfg *config) []multiPart {
	var parts []multiPart
	for d.err == nil {
		op, done := zoodefs.Op(d.int()), d.bool()
		d.int() // the error field means nothing in a request
		if done || d.err != nil {
			break
		}
		p := multiPart{op: op}
		if cfg.lacks(op) {
			d.err = errUnknownPart
			break
		}
		switch op {
		case zoodefs.OpCreate, zoodefs.OpCreate2, zoodefs.OpCreateContainer, zoodefs.OpCreateTTL:
			p.path, p.null = d.nullablePath()
			p.create = d.createRest(op, p.path)
			if cfg.traits.typedMulti && op != zoodefs.OpCreateTTL {
				p.op = d.typedCreateOp(op, p.create)
			} else {
				p.op = multiCreateOp(op, p.create.flags)
			}
			if p.op != zoodefs.OpCreateTTL {
				p.create.ttl = -1
			}
		case zoodefs.OpDelete, zoodefs.OpCheck:
			p.path, p.null = d.nullablePath()
			p.ver = d.int()
		case zoodefs.OpSetData:
			p.path, p.null = d.nullablePath()
			p.data, p.ver = d.buffer(), d.int()
		case zoodefs.OpGetData, zoodefs.OpGetChildren:
			p.path, p.null = d.nullablePath()
			d.bool() // a watch cannot be left this way
		default:
			d.err = errUnknownPart
		}
		if len(parts) > 0 && parts[0].isRead() != p.isRead() {
			d.err = errShort
		}
		parts = append(parts, p)
	}
	return parts
}

// typedCreateOp returns the operation that the server makes of a create inside a
// transaction, if it is not a createTTL. Flags that no such create has make the
// transaction malformed.
func (d *decoder) typedCreateOp(op zoodefs.Op, c createRequest) zoodefs.Op {
	switch {
	case d.err != nil:
	case c.flags < zoodefs.FlagPersistent || c.flags > zoodefs.FlagTTLSeq:
		d.err = errShort
	case c.acl == nil:
		d.err = errNullACL
	case c.flags == zoodefs.FlagTTL || c.flags == zoodefs.FlagTTLSeq:
		d.err = errShort
	case c.flags == zoodefs.FlagContainer:
		return zoodefs.OpCreateContainer
	}
	return op
}

// multiCreateOp returns the operation that releases before 3.8.2 make of a create
// inside a transaction, and later ones of a createTTL. There the flags decide, and
// not the type on the wire.
func multiCreateOp(op zoodefs.Op, flags int32) zoodefs.Op {
	ttl := flags == zoodefs.FlagTTL || flags == zoodefs.FlagTTLSeq
	switch {
	case op == zoodefs.OpCreateTTL && ttl:
		return op
	case flags == zoodefs.FlagContainer:
		return zoodefs.OpCreateContainer
	case ttl:
		return zoodefs.OpError // the real server casts to the wrong record: marshalling error
	default:
		return zoodefs.OpCreate
	}
}
