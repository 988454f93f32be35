package zkserver_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// step is one thing done to both servers.
type step struct {
	who     int    // which client
	op      int32  // request type, or a pseudo type below
	payload []byte // without the header
	batch   []step // sent in one write
	login   response
	first   any    // token of a login
	text    string // what it is, for the report
}

// Pseudo types of steps that are no requests.
const (
	stepReconnect     = -1001 // re-attach after cutting the connection
	stepBadPassword   = -1002 // re-attach with a wrong password, then open a new session
	stepCloseAndNew   = -1003
	stepFuture        = -1004 // connect with a zxid from the future
	stepReattachAlive = -1005 // re-attach while the old connection still stands
	stepBatch         = -1006 // several requests before the first answer
	stepLogin         = -1007 // both tokens of a login
)

// gen draws steps. Paths are few, so that they collide.
type gen struct {
	r    *rand.Rand
	odd  *rand.Rand // draws what recorded runs lack; may be nil
	base string
	// quotas is set for runs in which trees have quotas. What those refuse depends on what
	// the server has applied, so nothing overlaps there.
	quotas bool
	// calm leaves out what makes the real server stumble within a
	// transaction. What it had put in flight by then is seen, or not, by the
	// requests behind it, depending on how fast it is.
	calm bool
}

func (g *gen) pick(n int) int { return g.r.IntN(n) }

// oddly reports whether something rare is to be done, one time in n.
func (g *gen) oddly(n int) bool { return g.odd != nil && !g.calm && g.odd.IntN(n) == 0 }

func (g *gen) path() string {
	good := []string{"/a", "/b", "/a/x", "/a/y", "/b/x", "/a/x/1", "/a/x/2", "/c", "/c/x", "/d", "/a/x/1/z", ""}
	bad := []string{
		"/", "//", "/a/", "/a//x", "/.", "/a/..", "/a/./x", "/a/\x00", "/a/\x01", "/a/\x7f", "/a/\u0085",
		"/a/\ufff0", "/a/\ue000", "/a/\U0001F600", "/ä", "/a/…", "/a/x.", "/a/..x", "/a/\xff",
	}
	// Nothing here can be written: the real server outlives the run.
	odd := []string{"", "x", "a/b", "//"}
	switch n := g.pick(100); {
	case n < 86:
		return g.base + good[g.pick(len(good))]
	case n < 95:
		return g.base + bad[g.pick(len(bad))]
	default:
		return odd[g.pick(len(odd))]
	}
}

// cleanPath is a path that reads may find.
func (g *gen) cleanPath() string {
	switch g.pick(40) {
	case 0:
		return g.path()
	case 1:
		return g.systemPath()
	}
	good := []string{"/a", "/b", "/a/x", "/a/y", "/b/x", "/a/x/1", "/a/x/2", "/c", "/c/x", "/d", ""}
	return g.base + good[g.pick(len(good))]
}

func (g *gen) pathOrNull() any {
	if g.pick(80) == 0 && !g.calm {
		return null{}
	}
	return g.path()
}

// systemPath is a path that every server has, or never has.
func (g *gen) systemPath() string {
	return []string{"/zookeeper", "/zookeeper/quota", "/zookeeper/config", "/zookeeper/nope", "/"}[g.pick(5)]
}

func (g *gen) data() any {
	if g.pick(12) == 0 {
		return null{}
	}
	return []byte("datadata"[:g.pick(9)])
}

var openACL = []rawACL{{31, "world", "anyone"}}

func (g *gen) acl() any {
	if g.pick(5) > 0 {
		return openACL
	}
	all := []any{
		[]rawACL{{31, "auth", ""}},
		[]rawACL{{31, "digest", "u:" + digestOf("u:p")}},
		[]rawACL{{1, "world", "anyone"}, {31, "digest", "u:" + digestOf("u:p")}},
		[]rawACL{{30, "world", "anyone"}},
		[]rawACL{{15, "world", "anyone"}},
		[]rawACL{{16, "world", "anyone"}, {31, "digest", "v:" + digestOf("v:q")}},
		[]rawACL{{31, "ip", "127.0.0.1"}},
		[]rawACL{{31, "ip", "127.0.0.0/8"}, {1, "world", "anyone"}},
		[]rawACL{{31, "ip", "10.0.0.0/8"}, {31, "auth", "ignored"}},
		[]rawACL{{31, "ip", "10.0.0.0/99"}},
		[]rawACL{{31, "ip", "nonsense"}},
		[]rawACL{{31, "ip", "1.2.3"}},
		[]rawACL{{31, "digest", "nocolon"}},
		[]rawACL{{31, "digest", "a:b:c"}},
		[]rawACL{{31, "digest", ":b"}},
		[]rawACL{{31, "digest", "a:"}},
		[]rawACL{{31, "digest", "a:b:"}},
		[]rawACL{{31, "digest", ""}},
		[]rawACL{{31, "world", "nobody"}},
		[]rawACL{{31, "super", "x"}},
		[]rawACL{{31, "what", "x"}},
		[]rawACL{{31, "", ""}},
		[]rawACL{{31, null{}, "x"}},
		[]rawACL{{31, "world", null{}}},
		[]rawACL{{31, "digest", null{}}},
		[]rawACL{{0, "world", "anyone"}},
		[]rawACL{{31, "world", "anyone"}, {31, "world", "anyone"}},
		[]rawACL{},
		null{},
	}
	a := all[g.pick(len(all))]
	if v, ok := a.([]rawACL); ok && g.calm && slices.ContainsFunc(v, func(a rawACL) bool { return a.id == null{} }) {
		return openACL
	}
	return a
}

func (g *gen) flags() int32 {
	if g.pick(25) == 0 && !g.calm {
		return int32(g.pick(12) - 2)
	}
	return []int32{0, 0, 0, 1, 1, 2, 3, 4}[g.pick(8)]
}

func (g *gen) version() int32 {
	if g.pick(3) > 0 {
		return -1
	}
	return int32(g.pick(4) - 1)
}

func (g *gen) watch() bool { return g.pick(2) == 0 }

// create returns the body of a create of the given type.
func (g *gen) create(op int32) []byte {
	flags := g.flags()
	if op == 19 && (g.pick(5) > 0 || g.calm) {
		flags = 4
	}
	p := body(g.pathOrNull(), g.data(), g.acl(), flags)
	if op == 21 {
		ttl := []int64{-1, 0, 1, 5, 1_000_000, 1<<40 - 1, 1 << 40}[g.pick(7)]
		if g.pick(3) > 0 {
			flags = int32(5 + g.pick(2))
			ttl = 1_000_000
		}
		if flags != 5 && flags != 6 && ttl == -1 {
			ttl = 0 // -1 kills the real server
		}
		p = body(g.pathOrNull(), g.data(), g.acl(), flags, ttl)
	}
	return p
}

// inBatch reports requests whose answer does not depend on how fast the server
// is. The others do depend: an auth packet overtakes other requests. The ACL that
// the tree has when a write arrives decides whether it is allowed. A node in
// flight has the kind that its flags promise, which need not be the kind it gets.
// For the same reason a container made in a batch has a container's flags.
func inBatch(op int32) bool {
	switch op {
	case 7, 16, 20, 77, 100, 102, -11:
		return false
	default:
		return op > 0
	}
}

// step draws one step.
func (g *gen) step() step {
	if g.oddly(10) {
		return g.later()
	}
	s := g.single()
	if g.pick(12) > 0 || g.quotas {
		return s
	}
	b := step{who: s.who, op: stepBatch}
	g.calm = true
	defer func() { g.calm = false }()
	for n := 2 + g.pick(10); n > 0; n-- {
		if s := g.single(); inBatch(s.op) {
			b.batch = append(b.batch, s)
			b.text += "\n      + " + s.text
		}
	}
	b.text = fmt.Sprintf("client %d batch%s", b.who, b.text)
	return b
}

// weight says how often a kind of step is drawn.
type weight struct {
	op int32
	n  int
}

func stepWeights() []weight {
	return []weight{
		{1, 16},
		{15, 8},
		{19, 4},
		{21, 4},
		{2, 12},
		{3, 7},
		{4, 7},
		{5, 8},
		{6, 3},
		{7, 4},
		{8, 4},
		{12, 6},
		{9, 2},
		{14, 12},
		{22, 3},
		{101, 3},
		{105, 3},
		{106, 4},
		{17, 3},
		{18, 4},
		{103, 2},
		{104, 2},
		{107, 2},
		{100, 2},
		{11, 2},
		{16, 1},
		{77, 1},
		{102, 1},
		{-11, 1},
		{20, 1},
		{stepReconnect, 2},
		{stepBadPassword, 1},
		{stepCloseAndNew, 1},
		{stepFuture, 1},
		{stepReattachAlive, 1},
	}
}

func (g *gen) single() step {
	s := step{who: g.pick(2)}
	weights := stepWeights()
	total := 0
	for _, w := range weights {
		total += w.n
	}
	n := g.pick(total)
	for _, w := range weights {
		if n -= w.n; n < 0 {
			s.op = w.op
			break
		}
	}
	if s.op == 77 || s.op == 102 || s.op == 20 || s.op == -11 {
		if g.pick(4) > 0 { // they cost a session or a connection
			s.op = 4
		}
	}
	s.payload = g.payload(s.op)
	if len(s.payload) > 0 && g.pick(60) == 0 && s.op != 100 && s.op != 20 && s.op != 102 {
		s.payload = s.payload[:g.pick(len(s.payload))]
		s.text = " truncated"
	}
	s.text = fmt.Sprintf("client %d op %d %q%s", s.who, s.op, s.payload, s.text)
	return s
}
