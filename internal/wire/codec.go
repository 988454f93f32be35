package wire

import (
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/zoodefs"
)

// Op is the type of a request, as ZooKeeper numbers it.
type Op = zoodefs.Op

// The operations that an [Exchange] can ask for. OpCheck is a part of a
// transaction only, and OpGetNames of an OpMultiRead.
const (
	OpCreate          = zoodefs.OpCreate
	OpDelete          = zoodefs.OpDelete
	OpExists          = zoodefs.OpExists
	OpGetData         = zoodefs.OpGetData
	OpSetData         = zoodefs.OpSetData
	OpGetACL          = zoodefs.OpGetACL
	OpSetACL          = zoodefs.OpSetACL
	OpGetNames        = zoodefs.OpGetChildren // it answers without a Stat
	OpSync            = zoodefs.OpSync
	OpGetChildren     = zoodefs.OpGetChildren2 // it answers with a Stat
	OpCheck           = zoodefs.OpCheck
	OpMulti           = zoodefs.OpMulti
	OpCreate2         = zoodefs.OpCreate2 // it answers with a Stat
	OpReconfig        = zoodefs.OpReconfig
	OpRemoveWatches   = zoodefs.OpRemoveWatches
	OpCreateContainer = zoodefs.OpCreateContainer
	OpCreateTTL       = zoodefs.OpCreateTTL
	OpMultiRead       = zoodefs.OpMultiRead // its parts are OpGetData and OpGetNames
	OpGetEphemerals   = zoodefs.OpGetEphemerals
	OpCountNodes      = zoodefs.OpGetAllChildrenNumber
	OpAddWatch        = zoodefs.OpAddWatch
	OpAuth            = zoodefs.OpAuth // its answer is no sign of life
	OpWhoAmI          = zoodefs.OpWhoAmI
)

// Request is one operation with its arguments; each operation reads those that
// it has. A nil Data is sent as no bytes, not as null: Java's getData would
// return null for the latter.
type Request struct {
	Op      Op
	Path    string
	Data    []byte
	ACL     []zk.ACL
	Flags   int32 // of a create; the mode of an OpAddWatch, the kind of an OpRemoveWatches
	TTL     int64 // milliseconds
	Version int32
	Watch   bool
	Parts   []Request // of an OpMulti or OpMultiRead
	Auth    *Auth     // of an OpAuth
	Change  *Reconfig // of an OpReconfig
}

// Reconfig are the arguments of an OpReconfig. An empty text is sent as null: servers refuse
// one that is empty.
type Reconfig struct {
	Joining, Leaving, Members string
	Version                   int64 // that the configuration must have, or -1
}

// Reply is what a server answered; each operation sets what it has. Strings and
// bytes are copies.
type Reply struct {
	Zxid  int64 // of the header: of a write, its transaction
	Code  int32 // 0, or why the request was refused; see CodeReplyTooLarge
	Path  string
	Data  []byte
	Stat  zk.Stat  // of an OpCountNodes its NumChildren alone
	Names []string // of an OpGetEphemerals whole paths
	ACL   []zk.ACL // of an OpWhoAmI schemes and ids alone
	Parts []Result // of an OpMulti, also of one that was refused, or of an OpMultiRead
}

// Result is the result of one part of a transaction, or of an OpMultiRead.
type Result struct {
	Code  int32  // 0, why this part was refused, or codeRuntimeInconsistency
	Path  string // of a created node
	Stat  *zk.Stat
	Data  []byte
	Names []string
}

// append appends the body of r.
func (r *Request) append(b []byte) []byte {
	switch r.Op {
	case OpMulti, OpMultiRead:
		for i := range r.Parts {
			b = r.Parts[i].append(putPart(b, int32(r.Parts[i].Op), false))
		}
		return putPart(b, int32(zoodefs.OpError), true)
	case OpReconfig:
		c := r.Change
		return put64(putText(putText(putText(b, c.Joining), c.Leaving), c.Members), c.Version)
	case zoodefs.OpCloseSession, OpWhoAmI:
		return b
	case OpAuth:
		return r.Auth.append(b)
	}
	b = putBytes(b, r.Path)
	switch r.Op {
	case OpExists, OpGetData, OpGetChildren, OpGetNames:
		return putBool(b, r.Watch)
	case OpAddWatch, OpRemoveWatches:
		return put32(b, r.Flags)
	case OpDelete, OpCheck:
		return put32(b, r.Version)
	case OpSetData:
		return put32(putBytes(b, r.Data), r.Version)
	case OpSetACL:
		return put32(putACL(b, r.ACL), r.Version)
	case OpCreate, OpCreate2, OpCreateContainer:
		return put32(putACL(putBytes(b, r.Data), r.ACL), r.Flags)
	case OpCreateTTL:
		return put64(put32(putACL(putBytes(b, r.Data), r.ACL), r.Flags), r.TTL)
	default: // OpGetACL, OpSync, OpGetEphemerals, OpCountNodes
		return b
	}
}

// putText appends text, null if it is empty.
func putText(b []byte, text string) []byte {
	if text == "" {
		return put32(b, -1)
	}
	return putBytes(b, text)
}

func putACL(b []byte, acl []zk.ACL) []byte {
	b = put32(b, int32(len(acl)))
	for _, a := range acl {
		b = putBytes(putBytes(put32(b, a.Perms), a.Scheme), a.ID)
	}
	return b
}

// putPart appends the header of one part of a transaction.
func putPart(b []byte, op int32, done bool) []byte {
	return put32(putBool(put32(b, op), done), -1)
}

// decode reads the body of a successful reply to op. The body may have any bytes. If
// it does not fit, the error matches [ErrProtocol]. Nothing is allocated that is
// larger than a small multiple of the body.
func (r *Reply) decode(op Op, body []byte) error {
	d := decoder{b: body}
	switch op {
	case OpCreate, OpSync:
		r.Path = d.text()
	case OpCreate2, OpCreateContainer, OpCreateTTL:
		r.Path = d.text()
		if len(d.b) > 0 { // not every server tells the Stat of every kind
			d.stat(&r.Stat)
		}
	case OpExists, OpSetData, OpSetACL:
		d.stat(&r.Stat)
	case OpGetData, OpReconfig:
		r.Data = d.bytes()
		d.stat(&r.Stat)
	case OpGetACL:
		r.ACL = d.acl()
		d.stat(&r.Stat)
	case OpGetChildren:
		r.Names = d.names()
		d.stat(&r.Stat)
	case OpGetEphemerals:
		r.Names = d.names()
	case OpCountNodes:
		r.Stat.NumChildren = d.int32()
	case OpWhoAmI:
		r.ACL = d.identities()
	case OpMulti:
		r.Parts = d.parts(nil, d.result)
	case OpMultiRead:
		r.Parts = d.parts(make([]Result, 0, len(body)/leastReading), d.reading)
	case OpAddWatch: // ErrorResponse, which says 0; a server without it may leave it out
		if len(body) > 0 {
			r.Code = d.int32()
		}
	}
	if d.bad {
		return fmt.Errorf("%w: answer of %d bytes to a request of type %d", ErrProtocol, len(body), op)
	}
	return nil
}

// decoder takes values off b. If a value does not fit, decoder sets bad and returns
// zero.
type decoder struct {
	b   []byte
	bad bool
}

// take returns the next n bytes, which alias the body.
func (d *decoder) take(n int) []byte {
	if d.bad || n < 0 || n > len(d.b) {
		d.bad = true
		return nil
	}
	taken := d.b[:n]
	d.b = d.b[n:]
	return taken
}

func (d *decoder) int32() int32 {
	if b := d.take(4); b != nil {
		return be32(b)
	}
	return 0
}

func (d *decoder) int64() int64 {
	if b := d.take(8); b != nil {
		return be64(b)
	}
	return 0
}

// bytes returns a copy of the next bytes; null is nil.
func (d *decoder) bytes() []byte {
	n := d.int32()
	if n == -1 {
		return nil
	}
	taken := d.take(int(n))
	if d.bad {
		return nil
	}
	return append(make([]byte, 0, len(taken)), taken...)
}

func (d *decoder) text() string {
	n := d.int32()
	if n == -1 {
		return ""
	}
	return string(d.take(int(n)))
}

// count returns how many elements of at least least bytes follow.
func (d *decoder) count(least int) int {
	n := int(d.int32())
	if n == -1 { // null
		return 0
	}
	if n < 0 || n > len(d.b)/least {
		d.bad = true
		return 0
	}
	return n
}

// names returns the names of a directory. They share one copy of their bytes: what stands behind
// them belongs to other parts of the answer.
func (d *decoder) names() []string {
	all := make([]string, d.count(4))
	behind := *d
	for range all {
		behind.take(int(behind.int32()))
	}
	if d.bad = behind.bad; d.bad {
		return nil
	}
	bytes := string(d.b[:len(d.b)-len(behind.b)])
	for i := range all {
		at := len(bytes) - (len(d.b) - len(behind.b)) + 4
		size := int(d.int32())
		d.take(size)
		all[i] = bytes[at : at+size]
	}
	return all
}

func (d *decoder) acl() []zk.ACL {
	all := make([]zk.ACL, d.count(12))
	for i := range all {
		all[i] = zk.ACL{Perms: d.int32(), Scheme: d.text(), ID: d.text()}
	}
	return all
}

func (d *decoder) identities() []zk.ACL {
	all := make([]zk.ACL, d.count(8))
	for i := range all {
		all[i] = zk.ACL{Scheme: d.text(), ID: d.text()}
	}
	return all
}

func (d *decoder) stat(s *zk.Stat) {
	*s = zk.Stat{
		Czxid: d.int64(), Mzxid: d.int64(), Ctime: d.int64(), Mtime: d.int64(),
		Version: d.int32(), Cversion: d.int32(), Aversion: d.int32(),
		EphemeralOwner: d.int64(), DataLength: d.int32(), NumChildren: d.int32(), Pzxid: d.int64(),
	}
}

// leastReading is less than what the data of a node takes in an answer.
const leastReading = multiHeader + lengthSize + 68

// parts appends the results of the parts of a request to all. read takes that of one part, which did
// not fail, and reports whether the part may be in such a request.
func (d *decoder) parts(all []Result, read func(op Op, r *Result) bool) []Result {
	for {
		op, head := d.int32(), d.take(multiHeader-4) // done, error
		if d.bad || head[0] != 0 {
			return all
		}
		var r Result
		if Op(op) == zoodefs.OpError {
			r.Code = d.int32()
		} else if !read(Op(op), &r) {
			d.bad = true
		}
		all = append(all, r)
	}
}

// result takes the result of one part of a transaction. If the transaction was refused, the
// parts before the refused one say 0, and the parts behind it codeRuntimeInconsistency.
func (d *decoder) result(op Op, r *Result) bool {
	switch op {
	case OpCreate:
		r.Path = d.text()
	case OpCreate2, OpCreateContainer, OpCreateTTL: // servers say the first for all three
		r.Path, r.Stat = d.text(), new(zk.Stat)
		d.stat(r.Stat)
	case OpSetData:
		r.Stat = new(zk.Stat)
		d.stat(r.Stat)
	case OpCheck, OpDelete:
	default:
		return false
	}
	return true
}

// reading takes the answer to one part of an OpMultiRead. Each part has its own code.
func (d *decoder) reading(op Op, r *Result) bool {
	switch op {
	case OpGetData:
		r.Data, r.Stat = d.bytes(), new(zk.Stat)
		d.stat(r.Stat)
	case OpGetNames:
		r.Names = d.names()
	default:
		return false
	}
	return true
}
