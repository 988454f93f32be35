package zkserver

import (
	"errors"
	"slices"
	"strings"

	"github.com/docent-go/docent/internal/zkserver/access"
	"github.com/docent-go/docent/internal/zkserver/jute"
	"github.com/docent-go/docent/internal/zkserver/roster"
	"github.com/docent-go/docent/internal/zoodefs"
)

// newPrep returns a stage for the server's tree with nothing in flight.
func (s *Server) newPrep() *prepStage {
	return &prepStage{
		tree: s.tree, latest: map[string]*changeRecord{}, clock: s.wallMillis, cfg: &s.cfg,
	}
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

// reconfig changes the configuration of an ensemble, if that is enabled. Unlike other
// writes a reconfig is read before it takes a zxid.
func (p *prepStage) reconfig(r *request) {
	d := jute.Decoder{B: r.body}
	var change roster.Change
	for _, text := range []**string{&change.Joining, &change.Leaving, &change.Members} {
		if v, ok := d.Text(); ok {
			*text = &v
		}
	}
	change.From = d.Long()
	if d.Err != nil {
		r.err = zoodefs.CodeMarshallingError
		return
	}
	x := p.begin(r)
	r.txn = x
	if r.err = p.changeRoster(r, x, change); r.err != zoodefs.CodeOK {
		x.fail(r.err)
	}
}

// changeRoster checks a reconfig in the order of the real server and fills in the
// transaction x.
func (p *prepStage) changeRoster(r *request, x *txn, change roster.Change) zoodefs.Code {
	if !p.cfg.Reconfig {
		return zoodefs.CodeReconfigDisabled
	}
	if code := r.checkSession(); code != zoodefs.CodeOK {
		return code
	}
	if p.tree.roster.Alone() {
		return zoodefs.CodeUnimplemented
	}
	next, code := p.tree.roster.Apply(change)
	if code != zoodefs.CodeOK {
		return code
	}
	if !r.leader.member.inSync(next.Voters()) {
		return zoodefs.CodeNewConfigNoQuorum
	}
	n := p.record(configNode)
	if !access.Permitted(n.acl, zoodefs.PermWrite, r.ids) {
		return zoodefs.CodeNoAuth
	}
	next.Version = x.zxid
	x.path, x.roster, x.data, x.version = configNode, next, []byte(next.String()), -1
	n = n.duplicate(x.zxid)
	n.stat.version, n.stat.mtime, n.stat.mzxid, n.size = -1, x.time, x.zxid, len(x.data)
	p.add(n)
	return zoodefs.CodeOK
}

// begin starts the transaction of a request.
func (p *prepStage) begin(r *request) *txn {
	return &txn{zxid: p.nextZxid(), time: p.clock(), session: r.session, op: r.op}
}

func (x *txn) fail(code zoodefs.Code) {
	*x = txn{zxid: x.zxid, time: x.time, session: x.session, op: zoodefs.OpError, err: code}
}

// prepareMulti prepares all parts under one zxid. If a part fails, everything that
// the earlier parts had put in flight is undone.
func (p *prepStage) prepareMulti(r *request) {
	d := jute.Decoder{B: r.body}
	parts := d.Multi(p.cfg.lacks, p.cfg.traits.typedMulti)
	if errors.Is(d.Err, jute.ErrNullACL) {
		r.err, r.keepBody = zoodefs.CodeMarshallingError, !p.cfg.traits.readsFirst
		return
	}
	x := p.begin(r)
	null := d.Err == nil && slices.ContainsFunc(parts, func(p jute.MultiPart) bool { return p.Null })
	if null && !p.cfg.traits.readsFirst {
		// The real server fails after it has taken the zxid and before it has made
		// the transaction: the number is lost.
		r.err, r.keepBody = zoodefs.CodeMarshallingError, true
		return
	}
	r.txn = x
	if null || d.Err != nil {
		x.fail(zoodefs.CodeMarshallingError)
		r.err = zoodefs.CodeMarshallingError
		return
	}
	before := p.pendingFor(parts)
	failed := false
	for _, part := range parts {
		sub := &txn{zxid: x.zxid, time: x.time, session: x.session, op: part.Op}
		x.parts = append(x.parts, sub)
		if failed {
			sub.fail(zoodefs.CodeRuntimeInconsistency)
			continue
		}
		code := p.writePart(r, sub, part)
		if code == zoodefs.CodeMarshallingError {
			// In the real server this is an exception. The whole request fails,
			// and the server does not undo what the earlier parts put in flight.
			// Later requests see that until this one is applied.
			x.fail(code)
			r.err = code
			return
		}
		if code != zoodefs.CodeOK {
			failed = true
			sub.fail(code)
			p.rollback(x.zxid, before)
		}
	}
}

func (p *prepStage) writePart(r *request, sub *txn, part jute.MultiPart) zoodefs.Code {
	switch part.Op {
	case zoodefs.OpCreate, zoodefs.OpCreate2, zoodefs.OpCreateContainer, zoodefs.OpCreateTTL, zoodefs.OpDelete, zoodefs.OpSetData, zoodefs.OpCheck:
		return p.write(r, sub, write{
			op: part.Op, create: part.Create, path: part.Path, data: part.Data, version: part.Ver,
		})
	default:
		return zoodefs.CodeMarshallingError
	}
}

// pendingFor returns the records in flight that the parts may replace, including
// those of the parents (ZOOKEEPER-1624).
func (p *prepStage) pendingFor(parts []jute.MultiPart) map[string]*changeRecord {
	before := map[string]*changeRecord{}
	for _, part := range parts {
		if rec := p.latest[part.Path]; rec != nil {
			before[part.Path] = rec
		}
		i := strings.LastIndexByte(part.Path, '/')
		if i < 0 || strings.IndexByte(part.Path, 0) >= 0 {
			continue
		}
		if rec := p.latest[part.Path[:i]]; rec != nil {
			before[part.Path[:i]] = rec
		}
	}
	return before
}

// rollback removes the records of a failed multi. It puts back the records that the
// multi had replaced, if they are still in flight.
func (p *prepStage) rollback(zxid int64, before map[string]*changeRecord) {
	n := len(p.inFlight)
	for n > 0 && p.inFlight[n-1].zxid == zxid {
		n--
		delete(p.latest, p.inFlight[n].path)
	}
	p.inFlight = p.inFlight[:n]
	if n == 0 {
		return
	}
	first := p.inFlight[0].zxid
	for path, rec := range before {
		if rec.zxid >= first {
			p.latest[path] = rec
		}
	}
}
