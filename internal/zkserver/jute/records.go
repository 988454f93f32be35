package jute

import "github.com/docent-go/docent/internal/zoodefs"

// ACL is one entry of an access control list. The flags distinguish null strings
// from empty ones, which the real server treats differently.
type ACL struct {
	Perms            int32
	Scheme, ID       string
	HasScheme, HasID bool
}

// OpenACL grants everything to everybody.
func OpenACL() []ACL {
	return []ACL{{Perms: zoodefs.PermAll, Scheme: "world", ID: "anyone", HasScheme: true, HasID: true}}
}

// ACLs returns a vector of ACL entries. It is nil for a null vector only.
func (d *Decoder) ACLs() []ACL {
	n := d.Int()
	if d.Err != nil || n == -1 {
		return nil
	}
	out := make([]ACL, 0, max(0, min(int(n), len(d.B)/12+1)))
	for ; n > 0 && d.Err == nil; n-- {
		var a ACL
		a.Perms = d.Int()
		a.Scheme, a.HasScheme = d.Text()
		a.ID, a.HasID = d.Text()
		out = append(out, a)
	}
	return out
}

// ACLs writes a vector of ACL entries.
func (e *Encoder) ACLs(v []ACL) {
	e.Int(int32(len(v)))
	for _, a := range v {
		e.Int(a.Perms)
		e.Text(a.Scheme)
		if !a.HasID {
			e.Int(-1)
			continue
		}
		e.Text(a.ID)
	}
}

// CreateRequest is the body of create, create2, createContainer and, with a
// ttl, createTTL.
type CreateRequest struct {
	Path  string
	Data  []byte
	ACL   []ACL
	Flags int32
	TTL   int64
	Null  bool // the path was null
}

// Create reads the body of a create of any type.
func (d *Decoder) Create(op zoodefs.Op) CreateRequest {
	path, null := d.NullablePath()
	r := d.createRest(op, path)
	r.Null = null
	return r
}

// createRest reads everything after the path of a create.
func (d *Decoder) createRest(op zoodefs.Op, path string) CreateRequest {
	r := CreateRequest{Path: path, TTL: -1}
	r.Data = d.Buffer()
	r.ACL = d.ACLs()
	r.Flags = d.Int()
	if op == zoodefs.OpCreateTTL {
		r.TTL = d.Long()
	}
	return r
}

// NullablePath reads a path that may be null, which is no error when a transaction is
// read.
func (d *Decoder) NullablePath() (path string, null bool) {
	path, ok := d.Text()
	return path, !ok && d.Err == nil
}

// WatchedPath is the body of the reads that may leave a watch.
type WatchedPath struct {
	Path  string
	Watch bool
}

// WatchedPath reads the body of a read that may leave a watch.
func (d *Decoder) WatchedPath() WatchedPath {
	return WatchedPath{Path: d.Path(), Watch: d.bool()}
}

// ConnectRequest is the first frame of a connection.
type ConnectRequest struct {
	protocol  int32
	LastZxid  int64
	TimeoutMS int32
	Session   int64
	Password  []byte
	ReadOnly  bool
	// oldClient is set if the frame ends before the readOnly byte. The answer then
	// lacks that byte too.
	OldClient bool
}

// Connect reads the first frame of a connection.
func (d *Decoder) Connect() ConnectRequest {
	r := ConnectRequest{
		protocol:  d.Int(),
		LastZxid:  d.Long(),
		TimeoutMS: d.Int(),
		Session:   d.Long(),
	}
	r.Password = d.Buffer()
	if d.Err == nil && len(d.B) > 0 {
		r.ReadOnly = d.bool()
	} else {
		r.OldClient = true
	}
	return r
}

// MultiPart is one operation of a multi or multiRead.
type MultiPart struct {
	Op     zoodefs.Op
	Create CreateRequest
	Path   string
	Data   []byte
	Ver    int32
	// null marks a path that was null. The real server fails only when it gets to
	// this part.
	Null bool
}

// IsRead reports whether the part belongs to a multiRead.
func (p MultiPart) IsRead() bool { return p.Op == zoodefs.OpGetData || p.Op == zoodefs.OpGetChildren }

// Multi reads the operations of a transaction, or of a multiRead, up to the header
// that ends it. Reads and writes do not mix. An operation that the server lacks makes
// the transaction malformed. typed is set if creates keep their types.
func (d *Decoder) Multi(lacks func(zoodefs.Op) bool, typed bool) []MultiPart {
	var parts []MultiPart
	for d.Err == nil {
		op, done := zoodefs.Op(d.Int()), d.bool()
		d.Int() // the error field means nothing in a request
		if done || d.Err != nil {
			break
		}
		p := MultiPart{Op: op}
		if lacks(op) {
			d.Err = ErrUnknownPart
			break
		}
		switch op {
		case zoodefs.OpCreate, zoodefs.OpCreate2, zoodefs.OpCreateContainer, zoodefs.OpCreateTTL:
			p.Path, p.Null = d.NullablePath()
			p.Create = d.createRest(op, p.Path)
			if typed && op != zoodefs.OpCreateTTL {
				p.Op = d.typedCreateOp(op, p.Create)
			} else {
				p.Op = multiCreateOp(op, p.Create.Flags)
			}
			if p.Op != zoodefs.OpCreateTTL {
				p.Create.TTL = -1
			}
		case zoodefs.OpDelete, zoodefs.OpCheck:
			p.Path, p.Null = d.NullablePath()
			p.Ver = d.Int()
		case zoodefs.OpSetData:
			p.Path, p.Null = d.NullablePath()
			p.Data, p.Ver = d.Buffer(), d.Int()
		case zoodefs.OpGetData, zoodefs.OpGetChildren:
			p.Path, p.Null = d.NullablePath()
			d.bool() // a watch cannot be left this way
		default:
			d.Err = ErrUnknownPart
		}
		if len(parts) > 0 && parts[0].IsRead() != p.IsRead() {
			d.Err = errShort
		}
		parts = append(parts, p)
	}
	return parts
}

// typedCreateOp returns the operation that the server makes of a create inside a
// transaction, if it is not a createTTL. Flags that no such create has make the
// transaction malformed.
func (d *Decoder) typedCreateOp(op zoodefs.Op, c CreateRequest) zoodefs.Op {
	switch {
	case d.Err != nil:
	case c.Flags < zoodefs.FlagPersistent || c.Flags > zoodefs.FlagTTLSeq:
		d.Err = errShort
	case c.ACL == nil:
		d.Err = ErrNullACL
	case c.Flags == zoodefs.FlagTTL || c.Flags == zoodefs.FlagTTLSeq:
		d.Err = errShort
	case c.Flags == zoodefs.FlagContainer:
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

// Stat is the metadata of a node as a client sees it. Times are milliseconds since
// the Unix epoch by the server's wall clock.
type Stat struct {
	Czxid          int64
	Mzxid          int64
	Ctime          int64
	Mtime          int64
	Version        int32
	Cversion       int32
	Aversion       int32
	EphemeralOwner int64
	DataLength     int32
	NumChildren    int32
	Pzxid          int64
}

// Stat writes the metadata of a node.
func (e *Encoder) Stat(s Stat) {
	e.Long(s.Czxid)
	e.Long(s.Mzxid)
	e.Long(s.Ctime)
	e.Long(s.Mtime)
	e.Int(s.Version)
	e.Int(s.Cversion)
	e.Int(s.Aversion)
	e.Long(s.EphemeralOwner)
	e.Int(s.DataLength)
	e.Int(s.NumChildren)
	e.Long(s.Pzxid)
}
