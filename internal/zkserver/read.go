package zkserver

import "strings"

// answerRead performs a request without a transaction and encodes its result.
func (r *request) answerRead(e *encoder) Code {
	d := decoder{b: r.body}
	switch r.op {
	case OpPing:
		return CodeOK
	case OpSync:
		return r.answerSync(&d, e)
	case OpExists:
		return r.exists(&d, e)
	case OpGetData:
		return r.getData(&d, e)
	case OpGetChildren:
		return r.getChildren(&d, e, false)
	case OpGetChildren2:
		return r.getChildren(&d, e, true)
	case OpGetACL:
		return r.getACL(&d, e)
	case OpMultiRead:
		return r.multiRead(&d, e)
	case OpSetWatches, OpSetWatches2:
		return r.setWatches(&d)
	case OpAddWatch:
		return r.addWatch(&d, e)
	case OpCheckWatches, OpRemoveWatches:
		return r.watchRemoval(&d)
	case OpGetEphemerals:
		return r.getEphemerals(&d, e)
	case OpGetAllChildrenNumber:
		return r.getAllChildrenNumber(&d, e)
	case OpWhoAmI:
		r.whoAmI(e)
		return CodeOK
	default:
		return CodeUnimplemented
	}
}

func (r *request) answerSync(d *decoder, e *encoder) Code {
	path, ok := d.text()
	if d.err != nil {
		return CodeMarshallingError
	}
	if !ok {
		e.int(-1)
		return CodeOK
	}
	e.text(path)
	return CodeOK
}

// lookup finds a node that the requester may read.
func (r *request) lookup(path string) (*dataNode, Code) {
	n := r.s.tree.nodes[path]
	if n == nil {
		return nil, CodeNoNode
	}
	if !permitted(n.acl, permRead, r.ids) {
		return nil, CodeNoAuth
	}
	return n, CodeOK
}

// addOneShot leaves a watch, unless the connection has been closed meanwhile.
func (r *request) addOneShot(k tableKind, path string) {
	if !r.c.dead {
		r.s.watches.add(k, path, r.c, watchOnce)
	}
}

// exists leaves its watch even if there is no node. Whether it takes READ on a node
// depends on the release.
func (r *request) exists(d *decoder, e *encoder) Code {
	w := d.watchedPath()
	if d.err != nil {
		return CodeMarshallingError
	}
	if strings.IndexByte(w.path, 0) >= 0 {
		return CodeBadArguments
	}
	n := r.s.tree.nodes[w.path]
	if r.s.cfg.traits.existsReads && n != nil && !permitted(n.acl, permRead, r.ids) {
		return CodeNoAuth
	}
	if w.watch {
		r.addOneShot(dataTable, w.path)
	}
	if n == nil {
		return CodeNoNode
	}
	e.stat(r.s.tree.stat(n))
	return CodeOK
}

func (r *request) getData(d *decoder, e *encoder) Code {
	w := d.watchedPath()
	if d.err != nil {
		return CodeMarshallingError
	}
	n, code := r.lookup(w.path)
	if code != CodeOK {
		return code
	}
	if w.watch {
		r.addOneShot(dataTable, w.path)
	}
	e.buffer(n.data)
	e.stat(r.s.tree.stat(n))
	return CodeOK
}

func (r *request) getChildren(d *decoder, e *encoder, stat bool) Code {
	w := d.watchedPath()
	if d.err != nil {
		return CodeMarshallingError
	}
	n, code := r.lookup(w.path)
	if code != CodeOK {
		return code
	}
	r.listChildren(w, n, e)
	if stat {
		e.stat(r.s.tree.stat(n))
	}
	return CodeOK
}

// listChildren encodes the children in an order drawn from the connection's
// generator, because the real server promises no order.
func (r *request) listChildren(w watchedPath, n *dataNode, e *encoder) {
	if w.watch {
		r.addOneShot(childTable, w.path)
	}
	names := byAge(n.children)
	r.c.rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	e.paths(names)
}

func (r *request) getACL(d *decoder, e *encoder) Code {
	path := d.path()
	if d.err != nil {
		return CodeMarshallingError
	}
	n := r.s.tree.nodes[path]
	if n == nil {
		return CodeNoNode
	}
	if !permitted(n.acl, permRead|permAdmin, r.ids) {
		return CodeNoAuth
	}
	list := n.acl
	if !permitted(n.acl, permAdmin, r.ids) {
		list = hideDigests(list)
	}
	e.acls(list)
	e.stat(r.s.tree.stat(n))
	return CodeOK
}

// multiRead answers each part on its own. If the real server fails half way, the
// answers so far are in the body of the error.
func (r *request) multiRead(d *decoder, e *encoder) Code {
	parts := d.multi(&r.s.cfg)
	if d.err != nil {
		return CodeMarshallingError
	}
	code := CodeOK
	for _, p := range parts {
		if !p.isRead() || p.null {
			code, r.keepBody = CodeMarshallingError, true
			break
		}
		n, code := r.lookup(p.path)
		switch {
		case code != CodeOK:
			e.multiHeader(opError, false, code)
			e.int(int32(code))
		case p.op == OpGetData:
			e.multiHeader(OpGetData, false, CodeOK)
			e.buffer(n.data)
			e.stat(r.s.tree.stat(n))
		default:
			e.multiHeader(OpGetChildren, false, CodeOK)
			r.listChildren(watchedPath{path: p.path}, n, e)
		}
	}
	e.multiHeader(opError, true, -1)
	return code
}

func (r *request) getEphemerals(d *decoder, e *encoder) Code {
	prefix, _ := d.text()
	if d.err != nil {
		return CodeMarshallingError
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
	e.paths(owned)
	return CodeOK
}

func (r *request) getAllChildrenNumber(d *decoder, e *encoder) Code {
	path := d.path()
	if d.err != nil {
		return CodeMarshallingError
	}
	if _, code := r.lookup(path); code != CodeOK {
		return code
	}
	e.int(r.s.tree.descendants(path))
	return CodeOK
}

// whoAmI lists the identities of the connection, without the secrets of digests.
func (r *request) whoAmI(e *encoder) {
	e.int(int32(len(r.ids)))
	for _, id := range r.ids {
		e.text(id.scheme)
		user := id.id
		if id.scheme == "digest" {
			user, _, _ = strings.Cut(user, ":")
		}
		e.text(user)
	}
}
