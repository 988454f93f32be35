package zkserver

import (
	"strings"

	"github.com/docent-go/docent/internal/zkserver/access"
	"github.com/docent-go/docent/internal/zkserver/jute"
	"github.com/docent-go/docent/internal/zkserver/watch"
	"github.com/docent-go/docent/internal/zoodefs"
)

// answerRead performs a request without a transaction and encodes its result.
func (r *request) answerRead(e *jute.Encoder) zoodefs.Code {
	d := jute.Decoder{B: r.body}
	switch r.op {
	case zoodefs.OpPing, zoodefs.OpCloseSession: // of a local session
		return zoodefs.CodeOK
	case zoodefs.OpSync:
		return r.answerSync(&d, e)
	case zoodefs.OpExists:
		return r.exists(&d, e)
	case zoodefs.OpGetData:
		return r.getData(&d, e)
	case zoodefs.OpGetChildren:
		return r.getChildren(&d, e, false)
	case zoodefs.OpGetChildren2:
		return r.getChildren(&d, e, true)
	case zoodefs.OpGetACL:
		return r.getACL(&d, e)
	case zoodefs.OpMultiRead:
		return r.multiRead(&d, e)
	case zoodefs.OpSetWatches, zoodefs.OpSetWatches2:
		return r.setWatches(&d)
	case zoodefs.OpAddWatch:
		return r.addWatch(&d, e)
	case zoodefs.OpCheckWatches, zoodefs.OpRemoveWatches:
		return r.watchRemoval(&d)
	case zoodefs.OpGetEphemerals:
		return r.getEphemerals(&d, e)
	case zoodefs.OpGetAllChildrenNumber:
		return r.getAllChildrenNumber(&d, e)
	case zoodefs.OpWhoAmI:
		r.whoAmI(e)
		return zoodefs.CodeOK
	default:
		return zoodefs.CodeUnimplemented
	}
}

func (r *request) answerSync(d *jute.Decoder, e *jute.Encoder) zoodefs.Code {
	path, ok := d.Text()
	if d.Err != nil {
		return zoodefs.CodeMarshallingError
	}
	if !ok {
		e.Int(-1)
		return zoodefs.CodeOK
	}
	e.Text(path)
	return zoodefs.CodeOK
}

// lookup finds a node that the requester may read.
func (r *request) lookup(path string) (*dataNode, zoodefs.Code) {
	n := r.s.tree.nodes[path]
	if n == nil {
		return nil, zoodefs.CodeNoNode
	}
	if !access.Permitted(n.acl, zoodefs.PermRead, r.ids) {
		return nil, zoodefs.CodeNoAuth
	}
	return n, zoodefs.CodeOK
}

// addOneShot leaves a watch, unless the connection has been closed meanwhile.
func (r *request) addOneShot(k watch.TableKind, path string) {
	if !r.c.dead {
		r.s.watches.Add(k, path, r.c, watch.Once)
	}
}

// exists leaves its watch even if there is no node. Whether it takes READ on a node
// depends on the release.
func (r *request) exists(d *jute.Decoder, e *jute.Encoder) zoodefs.Code {
	w := d.WatchedPath()
	if d.Err != nil {
		return zoodefs.CodeMarshallingError
	}
	if strings.IndexByte(w.Path, 0) >= 0 {
		return zoodefs.CodeBadArguments
	}
	n := r.s.tree.nodes[w.Path]
	if r.s.cfg.traits.existsReads && n != nil && !access.Permitted(n.acl, zoodefs.PermRead, r.ids) {
		return zoodefs.CodeNoAuth
	}
	if w.Watch {
		r.addOneShot(watch.DataTable, w.Path)
	}
	if n == nil {
		return zoodefs.CodeNoNode
	}
	e.Stat(r.s.tree.stat(n))
	return zoodefs.CodeOK
}

func (r *request) getData(d *jute.Decoder, e *jute.Encoder) zoodefs.Code {
	w := d.WatchedPath()
	if d.Err != nil {
		return zoodefs.CodeMarshallingError
	}
	n, code := r.lookup(w.Path)
	if code != zoodefs.CodeOK {
		return code
	}
	if w.Watch {
		r.addOneShot(watch.DataTable, w.Path)
	}
	e.Buffer(n.data)
	e.Stat(r.s.tree.stat(n))
	return zoodefs.CodeOK
}

func (r *request) getChildren(d *jute.Decoder, e *jute.Encoder, stat bool) zoodefs.Code {
	w := d.WatchedPath()
	if d.Err != nil {
		return zoodefs.CodeMarshallingError
	}
	n, code := r.lookup(w.Path)
	if code != zoodefs.CodeOK {
		return code
	}
	r.listChildren(w, n, e)
	if stat {
		e.Stat(r.s.tree.stat(n))
	}
	return zoodefs.CodeOK
}

// listChildren encodes the children in an order drawn from the connection's
// generator, because the real server promises no order.
func (r *request) listChildren(w jute.WatchedPath, n *dataNode, e *jute.Encoder) {
	if w.Watch {
		r.addOneShot(watch.ChildTable, w.Path)
	}
	names := byAge(n.children)
	r.c.rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	e.Paths(names)
}

func (r *request) getACL(d *jute.Decoder, e *jute.Encoder) zoodefs.Code {
	path := d.Path()
	if d.Err != nil {
		return zoodefs.CodeMarshallingError
	}
	n := r.s.tree.nodes[path]
	if n == nil {
		return zoodefs.CodeNoNode
	}
	if !access.Permitted(n.acl, zoodefs.PermRead|zoodefs.PermAdmin, r.ids) {
		return zoodefs.CodeNoAuth
	}
	list := n.acl
	if !access.Permitted(n.acl, zoodefs.PermAdmin, r.ids) {
		list = access.HideDigests(list)
	}
	e.ACLs(list)
	e.Stat(r.s.tree.stat(n))
	return zoodefs.CodeOK
}

// multiRead answers each part on its own. If the real server fails half way, the
// answers so far are in the body of the error.
func (r *request) multiRead(d *jute.Decoder, e *jute.Encoder) zoodefs.Code {
	parts := d.Multi(r.s.cfg.lacks, r.s.cfg.traits.typedMulti)
	if d.Err != nil {
		return zoodefs.CodeMarshallingError
	}
	code := zoodefs.CodeOK
	for _, p := range parts {
		if !p.IsRead() || p.Null {
			code, r.keepBody = zoodefs.CodeMarshallingError, true
			break
		}
		n, code := r.lookup(p.Path)
		switch {
		case code != zoodefs.CodeOK:
			e.MultiHeader(zoodefs.OpError, false, code)
			e.Int(int32(code))
		case p.Op == zoodefs.OpGetData:
			e.MultiHeader(zoodefs.OpGetData, false, zoodefs.CodeOK)
			e.Buffer(n.data)
			e.Stat(r.s.tree.stat(n))
		default:
			e.MultiHeader(zoodefs.OpGetChildren, false, zoodefs.CodeOK)
			r.listChildren(jute.WatchedPath{Path: p.Path}, n, e)
		}
	}
	e.MultiHeader(zoodefs.OpError, true, -1)
	return code
}

func (r *request) getEphemerals(d *jute.Decoder, e *jute.Encoder) zoodefs.Code {
	prefix, _ := d.Text()
	if d.Err != nil {
		return zoodefs.CodeMarshallingError
	}
	owned := byAge(r.s.tree.ephemerals[r.session])
	if p := strings.TrimSpace(prefix); p != "" && p != "/" {
		kept := owned[:0]
		for _, path := range owned {
			if strings.HasPrefix(path, prefix) {
				kept = append(kept, path)
			}
		}
		owned = kept
	}
	r.c.rng.Shuffle(len(owned), func(i, j int) { owned[i], owned[j] = owned[j], owned[i] })
	e.Paths(owned)
	return zoodefs.CodeOK
}

func (r *request) getAllChildrenNumber(d *jute.Decoder, e *jute.Encoder) zoodefs.Code {
	path := d.Path()
	if d.Err != nil {
		return zoodefs.CodeMarshallingError
	}
	if _, code := r.lookup(path); code != zoodefs.CodeOK {
		return code
	}
	e.Int(r.s.tree.descendants(path))
	return zoodefs.CodeOK
}

// whoAmI lists the identities of the connection, without the secrets of digests.
func (r *request) whoAmI(e *jute.Encoder) {
	e.Int(int32(len(r.ids)))
	for _, id := range r.ids {
		e.Text(id.Scheme)
		user := id.Name
		switch {
		case id.Scheme == "digest":
			user, _, _ = strings.Cut(user, ":")
		case id.Scheme == "sasl" && !r.s.cfg.SASL.Scheme:
			user = "" // the real server asks the scheme for it
		}
		e.Text(user)
	}
}
