package zkserver

import (
	"slices"

	"github.com/docent-go/docent/internal/zoodefs"
)

// changeRecord is the state that a node will have when the transactions in flight
// have been applied. stat is nil for a node that will be deleted.
type changeRecord struct {
	zxid     int64
	path     string
	stat     *storedStat
	children int
	acl      []acl
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

// newPrep returns a stage for the server's tree with nothing in flight.
func (s *Server) newPrep() *prepStage {
	return &prepStage{
		tree: s.tree, latest: map[string]*changeRecord{}, clock: s.wallMillis, cfg: &s.cfg,
	}
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
	return &changeRecord{zxid: -1, path: path, stat: &st, children: len(n.children), acl: n.acl}
}

// duplicate returns a copy that a transaction may change.
func (r *changeRecord) duplicate(zxid int64) *changeRecord {
	st := *r.stat
	return &changeRecord{zxid: zxid, path: r.path, stat: &st, children: r.children, acl: r.acl}
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

// prepare checks r and makes the transaction of a write. A write that fails makes a
// transaction and takes a zxid too, unless the release reads requests first and
// cannot read this one.
func (p *prepStage) prepare(r *request) {
	switch r.op {
	case zoodefs.OpCreate, zoodefs.OpCreate2, zoodefs.OpCreateContainer, zoodefs.OpCreateTTL,
		zoodefs.OpDelete, zoodefs.OpDeleteContainer, zoodefs.OpSetData, zoodefs.OpSetACL, zoodefs.OpCheck, zoodefs.OpCloseSession:
		part, code := p.parse(r)
		if code == zoodefs.CodeMarshallingError && p.cfg.traits.readsFirst {
			r.err = code // before it has taken a zxid
			return
		}
		x := p.begin(r)
		if code == zoodefs.CodeOK {
			code = p.write(r, x, part)
		}
		if code != zoodefs.CodeOK {
			x.fail(code)
			r.err = code
		}
		r.txn = x
	case zoodefs.OpReconfig:
		p.reconfig(r)
	case zoodefs.OpMulti:
		p.prepareMulti(r)
	case zoodefs.OpConnect:
		x := p.begin(r)
		r.txn = x
	default:
		r.err = r.checkSession()
	}
}

// reconfig refuses every request, as a server does whose configuration does not
// allow reconfig. Unlike other writes a reconfig is read before it takes a zxid.
func (p *prepStage) reconfig(r *request) {
	d := decoder{b: r.body}
	for range 3 { // joining, leaving, new members
		d.text()
	}
	d.long()
	if d.err != nil {
		r.err = zoodefs.CodeMarshallingError
		return
	}
	x := p.begin(r)
	x.fail(zoodefs.CodeReconfigDisabled)
	r.txn, r.err = x, zoodefs.CodeReconfigDisabled
}

// begin starts the transaction of a request.
func (p *prepStage) begin(r *request) *txn {
	return &txn{zxid: p.nextZxid(), time: p.clock(), session: r.session, op: r.op}
}

func (x *txn) fail(code zoodefs.Code) {
	*x = txn{zxid: x.zxid, time: x.time, session: x.session, op: zoodefs.OpError, err: code}
}
