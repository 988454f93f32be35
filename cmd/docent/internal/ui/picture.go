package ui

import (
	"cmp"
	"encoding/base64"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Bounds of a picture.
const (
	mostRows  = 200
	mostQueue = 200
	mostEdges = 80
	mostPath  = 400 // bytes of a path or a name that a page shows
)

// query is what a page wants to see.
type query struct {
	view   string
	at     string // a path or a session
	search string // in lower case
}

// Names of the JSON fields are short words, and times are milliseconds since 1970, 0 for unknown.

type spanJSON struct {
	From int64 `json:"from"`
	By   int64 `json:"by"`
}

type contenderJSON struct {
	Path     string   `json:"path"` // whole: what an action names
	Node     string   `json:"node"`
	State    string   `json:"state"`
	Mode     string   `json:"mode"`
	ID       string   `json:"id"`
	Client   string   `json:"client"`
	Host     string   `json:"host"`
	Hostname string   `json:"hostname"`
	PID      string   `json:"pid"`
	Library  string   `json:"library"`
	Session  string   `json:"session"`
	Token    int64    `json:"token,string"`
	Since    int64    `json:"since"`
	Held     spanJSON `json:"held"`
	Asked    bool     `json:"asked"`
	Hidden   bool     `json:"hidden"`
	Unread   bool     `json:"unread"`
}

type lockJSON struct {
	Path    string         `json:"path"`
	Show    string         `json:"show"`
	Kind    string         `json:"kind"`
	Holders int            `json:"holders"`
	Waiters int            `json:"waiters"`
	Wait    int64          `json:"wait"` // the oldest, since
	Holder  *contenderJSON `json:"holder"`
}

type happeningJSON struct {
	From    int64    `json:"from"`
	By      int64    `json:"by"`
	What    string   `json:"what"`
	Who     string   `json:"who"`
	Node    string   `json:"node"`
	Session string   `json:"session"`
	Token   int64    `json:"token,string"`
	N       int      `json:"n"`
	Held    spanJSON `json:"held"`
}

type nodeJSON struct {
	Path     string `json:"path"`
	Show     string `json:"show"`
	Name     string `json:"name"`
	Children int    `json:"children"`
	Session  string `json:"session"`
	Size     int    `json:"size"`
	Modified int64  `json:"modified"`
	Hidden   bool   `json:"hidden"`
	Kind     string `json:"kind"` // of the lock there
}

type groupJSON struct {
	Path    string   `json:"path"`
	Show    string   `json:"show"`
	Members int      `json:"members"`
	Names   []string `json:"names"`
}

type waitJSON struct {
	Waiter string `json:"waiter"`
	Holder string `json:"holder"`
	Lock   string `json:"lock"`
	Show   string `json:"show"`
	Since  int64  `json:"since"`
	Circle bool   `json:"circle"`
}

type partyJSON struct {
	ID    string `json:"id"`
	Label string `json:"label"`
	Nodes int    `json:"nodes"`
	Holds int    `json:"holds"`
	Waits int    `json:"waits"`
	Wait  int64  `json:"wait"`
}

// picture is what a page shows: the part of it that its view has.
type picture struct {
	View    string          `json:"view"`
	At      string          `json:"at"`
	Show    string          `json:"show"`
	Total   int             `json:"total"`
	More    int             `json:"more"` // rows that are left out
	Kind    string          `json:"kind,omitempty"`
	Exists  bool            `json:"exists"`
	Locks   []lockJSON      `json:"locks,omitempty"`
	Queue   []contenderJSON `json:"queue,omitempty"`
	Holders int             `json:"holders"`
	Past    []happeningJSON `json:"past,omitempty"`
	Waits   []waitJSON      `json:"waits,omitempty"`
	Parties []partyJSON     `json:"parties,omitempty"`
	Circles int             `json:"circles"`
	Groups  []groupJSON     `json:"groups,omitempty"`
	Nodes   []nodeJSON      `json:"nodes,omitempty"`
	Node    *nodeJSON       `json:"node,omitempty"`
	Data    string          `json:"data"`
	Base64  bool            `json:"base64"`
	Cut     bool            `json:"cut"`
	Servers []Server        `json:"servers,omitempty"`
}

func ms(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func (s span) json() spanJSON { return spanJSON{ms(s.from), ms(s.by)} }

// picture draws a view.
func (m *model) picture(q query, now time.Time) *picture {
	p := &picture{View: q.view, At: q.at, Show: shown(q.at, mostPath)}
	switch q.view {
	case "locks", "elections":
		m.drawLocks(p, q)
	case "lock":
		m.drawLock(p, q)
	case "waits":
		m.drawWaits(p, q, now)
	case "groups":
		m.drawGroups(p, q)
	case "tree":
		m.drawTree(p, q)
	case "sessions":
		m.drawSessions(p, q)
	case "session":
		m.drawSession(p, q)
	}
	return p
}

// has reports whether one of the texts has what is searched for.
func (q query) has(texts ...string) bool {
	return q.search == "" || slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(strings.ToLower(s), q.search) })
}

// finds reports whether a lock, or somebody in its line, has what is searched for.
func (q query) finds(l *lock) bool {
	return q.has(l.path, l.kind) || slices.ContainsFunc(l.queue, func(c contender) bool {
		return q.has(c.owner.client, c.owner.host, c.owner.hostname, c.owner.pid, c.name, hex(c.session))
	})
}

// drawLocks draws the locks that are elections, or the others. The longest waits come first,
// then the longest holds.
func (m *model) drawLocks(p *picture, q query) {
	var found []*lock
	for _, l := range m.locks {
		if (l.kind == kindLatch) == (q.view == "elections") {
			p.Total++
			if q.finds(l) {
				found = append(found, l)
			}
		}
	}
	slices.SortFunc(found, byTrouble)
	found = cutTo(p, found, mostRows)
	for _, l := range found {
		p.Locks = append(p.Locks, l.json())
	}
}

func cutTo[T any](p *picture, all []T, most int) []T {
	p.More = max(0, len(all)-most)
	return all[:len(all)-p.More]
}

func byTrouble(a, b *lock) int {
	if a.kind != kindLatch { // an election's candidates wait by design
		wa, wb := a.oldestWait(), b.oldestWait()
		switch {
		case wa != nil && wb != nil && !wa.since.Equal(wb.since):
			return wa.since.Compare(wb.since)
		case (wa == nil) != (wb == nil):
			return cmp.Compare(b.waiters(), a.waiters())
		}
	}
	ha, hb := a.holder(), b.holder()
	if ha != nil && hb != nil && !ha.held.by.Equal(hb.held.by) && !ha.held.by.IsZero() && !hb.held.by.IsZero() {
		return ha.held.by.Compare(hb.held.by)
	}
	return cmp.Or(cmp.Compare(b.holds, a.holds), cmp.Compare(a.path, b.path))
}

func (l *lock) json() lockJSON {
	j := lockJSON{Path: l.path, Show: shown(l.path, mostPath), Kind: l.kind, Holders: l.holds, Waiters: l.waiters()}
	if w := l.oldestWait(); w != nil {
		j.Wait = ms(w.since)
	}
	if h := l.holder(); h != nil {
		c := h.json(l.kind)
		j.Holder = &c
	}
	return j
}

func (c *contender) json(kind string) contenderJSON {
	j := contenderJSON{
		Path: c.path, Node: shown(c.name, mostPath), State: "waits", Mode: c.mode,
		Client: shown(c.owner.client, mostName), Host: shown(c.owner.host, mostName), Hostname: shown(c.owner.hostname, mostName), PID: c.owner.pid,
		Library: libraryOf(c.name), Token: c.token, Since: ms(c.since), Held: c.held.json(),
		Asked: c.asked, Hidden: c.hidden, Unread: !c.read && !c.hidden,
	}
	if c.session != 0 {
		j.Session = hex(c.session)
	}
	if c.holds {
		j.State = "holds"
	}
	if kind == kindLatch {
		j.ID, j.Client = j.Client, ""
	}
	return j
}

// drawLock draws the line of one lock, and what has happened to it.
func (m *model) drawLock(p *picture, q query) {
	if l := m.locks[q.at]; l != nil {
		p.Exists, p.Kind, p.Total, p.Holders = true, l.kind, len(l.queue), l.holds
		for i := range cutTo(p, l.queue, mostQueue) {
			p.Queue = append(p.Queue, l.queue[i].json(l.kind))
		}
	}
	past := m.past.of[q.at]
	for _, h := range slices.Backward(past) {
		j := happeningJSON{
			From: ms(h.from), By: ms(h.by), What: h.what, Who: h.who, Node: shown(h.node, mostPath),
			Token: h.token, N: h.n, Held: h.held.json(),
		}
		if h.session != 0 {
			j.Session = hex(h.session)
		}
		p.Past = append(p.Past, j)
	}
}

// drawWaits draws who waits for whom over several locks.
func (m *model) drawWaits(p *picture, q query, now time.Time) {
	all, whole := waitsOf(m.locks, now)
	p.Total = len(all)
	labels := m.labels()
	kept := all[:0]
	for _, w := range all {
		if w.circle {
			p.Circles++
		}
		if q.has(w.lock, labels[w.waiter], labels[w.holder], w.waiter, w.holder) {
			kept = append(kept, w)
		}
	}
	kept = cutTo(p, kept, mostEdges)
	p.Cut = !whole
	named := map[string]bool{}
	for _, w := range kept {
		p.Waits = append(p.Waits, waitJSON{w.waiter, w.holder, w.lock, shown(w.lock, mostPath), ms(w.since), w.circle})
		for _, id := range []string{w.waiter, w.holder} {
			if !named[id] {
				named[id] = true
				p.Parties = append(p.Parties, partyJSON{ID: id, Label: cmp.Or(labels[id], shown(id, mostName))})
			}
		}
	}
}

// labels name the parties, by the node that tells most of each.
func (m *model) labels() map[string]string {
	labels := map[string]string{}
	for _, l := range m.locks {
		for i := range l.queue {
			c := &l.queue[i]
			if who := c.who(); len(who) > len(labels[c.party()]) && (c.owner.client != "" || c.owner.host != "") {
				labels[c.party()] = who
			}
		}
	}
	return labels
}

// drawGroups draws the directories with nodes that go with their sessions and contend for
// nothing: groups, services.
func (m *model) drawGroups(p *picture, q query) {
	var found []groupJSON
	m.walk(func(at string, n *node) {
		g := groupJSON{Path: at, Show: shown(at, mostPath)}
		for name, c := range n.children {
			if c.session() != 0 && !contends(name) {
				g.Members++
				g.Names = append(g.Names, name)
			}
		}
		if g.Members == 0 || kindOf(n) != "" {
			return
		}
		p.Total++
		if q.has(append([]string{at}, g.Names...)...) {
			slices.Sort(g.Names)
			g.Names = g.Names[:min(len(g.Names), 8)]
			for i, name := range g.Names {
				g.Names[i] = shown(name, mostName)
			}
			found = append(found, g)
		}
	})
	slices.SortFunc(found, func(a, b groupJSON) int { return strings.Compare(a.Path, b.Path) })
	p.Groups = cutTo(p, found, mostRows)
}

// walk calls f for every node that has children.
func (m *model) walk(f func(at string, n *node)) {
	var down func(at string, n *node)
	down = func(at string, n *node) {
		if len(n.children) == 0 {
			return
		}
		f(at, n)
		for name, c := range n.children {
			if len(c.children) > 0 {
				down(join(at, name), c)
			}
		}
	}
	if m.tree.root != nil {
		down(m.tree.top, m.tree.root)
	}
}

// drawTree draws one node and those right below it.
func (m *model) drawTree(p *picture, q query) {
	n := m.tree.find(q.at)
	if n == nil {
		return
	}
	p.Exists = true
	own := n.json(q.at)
	p.Node, p.Total = &own, len(n.children)
	p.Data, p.Base64 = n.data, false
	if !utf8.ValidString(n.data) && n.size <= mostData || strings.ContainsRune(n.data, 0) {
		p.Data, p.Base64 = base64.StdEncoding.EncodeToString([]byte(n.data)), true
	}
	p.Cut = n.size > len(n.data)
	var names []string
	for name := range n.children {
		if q.has(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range cutTo(p, names, mostRows) {
		p.Nodes = append(p.Nodes, n.children[name].json(join(q.at, name)))
	}
}

func (n *node) json(at string) nodeJSON {
	j := nodeJSON{
		Path: at, Show: shown(at, mostPath), Name: shown(n.name, mostPath), Children: len(n.children),
		Size: n.size, Modified: n.stat.Mtime, Hidden: n.hidden, Kind: kindOf(n),
	}
	if s := n.session(); s != 0 {
		j.Session = hex(s)
	}
	return j
}

// drawSessions draws the sessions that have nodes.
func (m *model) drawSessions(p *picture, q query) {
	parties := map[string]*partyJSON{}
	for session, n := range m.stands {
		id := hex(session)
		parties[id] = &partyJSON{ID: id, Nodes: n}
	}
	labels := m.labels()
	for _, l := range m.locks {
		for i := range l.queue {
			c := &l.queue[i]
			one := parties[c.party()]
			switch {
			case one == nil:
			case c.holds:
				one.Holds++
			default:
				one.Waits++
				if since := ms(c.since); one.Wait == 0 || since < one.Wait {
					one.Wait = since
				}
			}
		}
	}
	p.Total = len(parties)
	var found []partyJSON
	for id, one := range parties {
		one.Label = labels[id]
		if q.has(id, one.Label) {
			found = append(found, *one)
		}
	}
	slices.SortFunc(found, func(a, b partyJSON) int {
		return cmp.Or(cmp.Compare(b.Holds+b.Waits, a.Holds+a.Waits), cmp.Compare(a.ID, b.ID))
	})
	p.Parties = cutTo(p, found, mostRows)
}

// drawSession draws the nodes of a session: where it holds, where it waits, and others.
func (m *model) drawSession(p *picture, q query) {
	for _, l := range m.locks {
		for i := range l.queue {
			if c := &l.queue[i]; c.session != 0 && hex(c.session) == q.at {
				j := l.json()
				own := c.json(l.kind)
				j.Holder = &own
				p.Locks = append(p.Locks, j)
				p.Show = q.at + " " + c.who()
			}
		}
	}
	slices.SortFunc(p.Locks, func(a, b lockJSON) int {
		return cmp.Or(cmp.Compare(a.Holder.State, b.Holder.State), cmp.Compare(a.Path, b.Path))
	})
	m.walk(func(at string, n *node) {
		for name, c := range n.children {
			if c.session() != 0 && hex(c.session()) == q.at && !contends(name) {
				p.Nodes = append(p.Nodes, c.json(join(at, name)))
			}
		}
	})
	slices.SortFunc(p.Nodes, func(a, b nodeJSON) int { return strings.Compare(a.Path, b.Path) })
	p.Exists = len(p.Locks)+len(p.Nodes) > 0
	p.Total = len(p.Locks) + len(p.Nodes)
	p.Locks = p.Locks[:min(len(p.Locks), mostRows)]
	p.Nodes = p.Nodes[:min(len(p.Nodes), mostRows)]
	p.More = p.Total - len(p.Locks) - len(p.Nodes)
}
