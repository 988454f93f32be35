package barrier

func (m *model) leaveStep(w *world, i int, answered bool) error {
	p := &w.p[i]
	rule := leaving{own: names[i], opened: p.round, gone: p.gone, begin: p.begin, wait: p.wait.names()}
	switch p.at {
	case leaveReads, leaveAwaits:
		p.unwatch()
		p.ready, p.at = w.ready, leaveLists
	case leaveLists:
		next, whom := rule.next(p.ready.round(), w.standing().names(), w.newest())
		p.gone, p.begin, p.wait = rule.gone, rule.begin, 0
		for j, name := range names {
			for _, other := range rule.wait {
				if name == other {
					p.wait |= of(j)
				}
			}
			if name == whom {
				p.whom = int8(j)
			}
		}
		if m.bug == "remove the ready node of others" && next == removeOwn && p.ready.opened != 0 {
			next = removeBoth
		}
		if next == removeAndAwait {
			p.listed = of(i) // to be removed
		}
		switch next {
		case deleted:
			w.fails(i)
			return nil
		case leftAll:
			return w.leaves(i)
		}
		p.at = map[deed]phase{
			awaitOther: leaveWatches, removeAndAwait: leaveWatches, removeBoth: leaveBoth, removeOwn: leaveOwn, tidy: tidySet,
		}[next]
	case leaveWatches:
		p.seen = w.node[p.whom]
		p.watch(int(p.whom))
		switch {
		case p.seen == 0:
			p.forgets()
		case m.bug == "wait for all" || rule.awaits(m.other(p), 0):
			p.settles()
		default:
			p.at = leaveWatchesReady
		}
	case leaveWatchesReady:
		switch {
		case m.bug == "do not wait for late members":
			p.forgets()
		case w.ready.opened == 0 || w.ready.opened != p.round:
			p.at = leaveReadsOther
		case rule.awaits(m.other(p), w.ready.opened):
			p.watch(readyPlace)
			p.settles()
		default:
			p.forgets()
		}
	case leaveReadsOther:
		other := m.other(p)
		other.late = w.late.has(int(p.whom))
		if w.node[p.whom] == 0 || !rule.awaits(other, 0) {
			p.forgets()
			break
		}
		p.settles()
	case leaveRemoves:
		w.remove(i)
		p.gone, p.at = true, leaveAwaits
	case leaveBoth:
		switch {
		case w.node[i] == 0:
			p.gone = true
		case w.ready.opened != 0 && (w.ready.version == p.ready.version || m.bug == "remove ready in any version"):
			w.remove(i)
			if w.close(); w.forced { // it may be the ready node of a later round, in the same version
				for j := range w.p {
					w.p[j].counted = false
				}
			}
			if p.gone = true; answered {
				return w.leaves(i)
			}
		}
		p.at = leaveReads
	case leaveOwn:
		w.remove(i)
		p.gone, p.at = true, leaveReads
	case tidySet:
		if p.at = leaveReads; m.set(w, i, answered) {
			p.at = tidyDelete
		}
	case tidyDelete:
		w.closeAt(p.ready.version)
		p.at = leaveReads
	}
	return nil
}

// other is the member that a Leave looks at.
func (m *model) other(p *party) standing {
	return standing{name: names[p.whom], czxid: p.seen, curator: m.java(int(p.whom) % three)}
}

// forgets is what a Leave does that does not wait for the other.
func (p *party) forgets() {
	p.wait &^= of(int(p.whom))
	p.at = leaveReads
}

// settles is what a Leave does once it has its watches.
func (p *party) settles() {
	if p.at = leaveAwaits; p.listed != 0 {
		p.at = leaveRemoves
	}
}

// javaStep is a member of Curator's. Its two deletes at the end are one step here: between
// them Curator removes the ready node of a later round.
func (m *model) javaStep(w *world, i int) error {
	p := &w.p[i]
	switch p.at {
	case javaReady:
		p.watch(readyPlace)
		p.ready = w.ready
		p.at = javaCreate
	case javaCreate:
		w.make(i)
		if p.at = javaList; p.ready.opened != 0 {
			p.at = javaInside
		}
	case javaList:
		if p.at = javaAwait; w.standing().count() >= m.members {
			p.at, p.listed = javaOpen, w.standing()
		}
	case javaOpen:
		if w.ready.opened == 0 {
			w.stood = p.listed // its members are those that stood then
			w.open(0)
		}
		p.at = javaInside
	case javaAwait:
		p.at = javaInside
	case javaInside:
		p.unwatch()
		p.at = javaLeave
	case javaLeave, javaAwaitLeft:
		m.javaLeaves(w, i)
	case javaRemove:
		w.remove(i)
		p.at = javaAwaitLeft
	case javaOnly:
		w.remove(i)
		if w.ready.opened != 0 {
			w.close()
		}
		*p = party{at: over, enters: p.enters}
	}
	return nil
}

func (m *model) javaLeaves(w *world, i int) {
	p := &w.p[i]
	p.unwatch()
	now := w.standing()
	others := now &^ of(i)
	switch {
	case others == 0:
		if p.at = javaOnly; !now.has(i) {
			p.at = over
		}
	case now.has(i) && i < others.lowest():
		all := others.each()
		p.watch(all[len(all)-1])
		p.at = javaAwaitLeft
	default:
		p.watch(others.lowest())
		if p.at = javaAwaitLeft; now.has(i) {
			p.at = javaRemove
		}
	}
}
