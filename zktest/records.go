package zktest

// acl is one entry of an access control list. The flags tell null strings from
// empty ones, which the server treats differently.
type acl struct {
	perms            int32
	scheme, id       string
	hasScheme, hasID bool
}

func openACL() []acl {
	return []acl{{perms: permAll, scheme: "world", id: "anyone", hasScheme: true, hasID: true}}
}

// createRequest is the body of create, create2, createContainer and, with a
// ttl, createTTL.
type createRequest struct {
	path  string
	data  []byte
	acl   []acl
	flags int32
	ttl   int64
}

func (d *decoder) create(op Op) createRequest {
	r := createRequest{ttl: -1}
	r.path = d.path()
	r.data = d.buffer()
	r.acl = d.acls()
	r.flags = d.int()
	if op == OpCreateTTL {
		r.ttl = d.long()
	}
	return r
}

// versionedPath is the body of delete and check.
type versionedPath struct {
	path    string
	version int32
}

func (d *decoder) versionedPath() versionedPath {
	return versionedPath{path: d.path(), version: d.int()}
}

// setDataRequest is the body of setData.
type setDataRequest struct {
	path    string
	data    []byte
	version int32
}

func (d *decoder) setData() setDataRequest {
	return setDataRequest{path: d.path(), data: d.buffer(), version: d.int()}
}

// setACLRequest is the body of setACL.
type setACLRequest struct {
	path    string
	acl     []acl
	version int32
}

func (d *decoder) setACL() setACLRequest {
	return setACLRequest{path: d.path(), acl: d.acls(), version: d.int()}
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
	// oldClient is set when the frame ends before the readOnly byte; the
	// answer then lacks it too.
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
	op     Op
	create createRequest
	path   string
	data   []byte
	ver    int32
	// null marks a path that was null: the server trips over it only when
	// it gets there.
	null bool
}

func (p multiPart) isRead() bool { return p.op == OpGetData || p.op == OpGetChildren }

// multi reads the operations of a transaction, or of a multiRead, up to the
// header that ends it. The two kinds do not mix.
func (d *decoder) multi() []multiPart {
	var parts []multiPart
	for d.err == nil {
		op, done := Op(d.int()), d.bool()
		d.int() // the error field means nothing in a request
		if done || d.err != nil {
			break
		}
		p := multiPart{op: op}
		switch op {
		case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL:
			p.create = d.create(op)
			p.path = p.create.path
			p.op = multiCreateOp(op, p.create.flags)
			if p.op != OpCreateTTL {
				p.create.ttl = -1
			}
		case OpDelete, OpCheck:
			v := d.versionedPath()
			p.path, p.ver = v.path, v.version
		case OpSetData:
			v := d.setData()
			p.path, p.data, p.ver = v.path, v.data, v.version
		case OpGetData, OpGetChildren:
			var ok bool
			p.path, ok = d.text()
			p.null = !ok
			d.bool() // a watch cannot be left this way
		default:
			d.err = errShort
		}
		if len(parts) > 0 && parts[0].isRead() != p.isRead() {
			d.err = errShort
		}
		parts = append(parts, p)
	}
	return parts
}

// multiCreateOp returns the operation the server makes of a create inside a
// transaction: the flags decide there, not the type on the wire.
func multiCreateOp(op Op, flags int32) Op {
	ttl := flags == flagTTL || flags == flagTTLSeq
	switch {
	case op == OpCreateTTL && ttl:
		return op
	case flags == flagContainer:
		return OpCreateContainer
	case ttl:
		return opError // the server casts to the wrong record here: marshalling error
	default:
		return OpCreate
	}
}
