package zkserver

import (
	"errors"
	"slices"
	"strings"

	"github.com/docent-go/docent/internal/zoodefs"
)

// prepareMulti prepares all parts under one zxid. If a part fails, everything that
// the earlier parts had put in flight is undone.
func (p *prepStage) prepareMulti(r *request) {
	d := decoder{b: r.body}
	parts := d.multi(p.cfg)
	if errors.Is(d.err, errNullACL) {
		r.err, r.keepBody = zoodefs.CodeMarshallingError, !p.cfg.traits.readsFirst
		return
	}
	x := p.begin(r)
	null := d.err == nil && slices.ContainsFunc(parts, func(p multiPart) bool { return p.null })
	if null && !p.cfg.traits.readsFirst {
		// The real server fails after it has taken the zxid and before it has made
		// the transaction: the number is lost.
		r.err, r.keepBody = zoodefs.CodeMarshallingError, true
		return
	}
	r.txn = x
	if null || d.err != nil {
		x.fail(zoodefs.CodeMarshallingError)
		r.err = zoodefs.CodeMarshallingError
		return
	}
	before := p.pendingFor(parts)
	failed := false
	for _, part := range parts {
		sub := &txn{zxid: x.zxid, time: x.time, session: x.session, op: part.op}
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

func (p *prepStage) writePart(r *request, sub *txn, part multiPart) zoodefs.Code {
	switch part.op {
	case zoodefs.OpCreate, zoodefs.OpCreate2, zoodefs.OpCreateContainer, zoodefs.OpCreateTTL, zoodefs.OpDelete, zoodefs.OpSetData, zoodefs.OpCheck:
		return p.write(r, sub, write{
			op: part.op, create: part.create, path: part.path, data: part.data, version: part.ver,
		})
	default:
		return zoodefs.CodeMarshallingError
	}
}

// pendingFor returns the records in flight that the parts may replace, including
// those of the parents (ZOOKEEPER-1624).
func (p *prepStage) pendingFor(parts []multiPart) map[string]*changeRecord {
	before := map[string]*changeRecord{}
	for _, part := range parts {
		if rec := p.latest[part.path]; rec != nil {
			before[part.path] = rec
		}
		i := strings.LastIndexByte(part.path, '/')
		if i < 0 || strings.IndexByte(part.path, 0) >= 0 {
			continue
		}
		if rec := p.latest[part.path[:i]]; rec != nil {
			before[part.path[:i]] = rec
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
