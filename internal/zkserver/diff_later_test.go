package zkserver_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
)

// later draws a step of a kind that runs recorded before do not have: a login, an ACL with
// the scheme sasl, a quota, a reconfig.
func (g *gen) later() step {
	s := step{who: g.odd.IntN(2)}
	switch n := g.odd.IntN(10); {
	case n < 3:
		return g.logIn(s)
	case n < 5:
		s.op = []int32{1, 7}[g.odd.IntN(2)]
		path := g.base + []string{"/a", "/b", "/s"}[g.odd.IntN(3)]
		s.payload = body(path, g.saslACL(), int32(-1))
		if s.op == 1 {
			s.payload = body(path, []byte{}, g.saslACL(), int32(g.odd.IntN(4)))
		}
	case n < 9 && g.quotas:
		s = g.quota(s)
	default:
		s.op = 16
		text := func() any { return []any{null{}, null{}, "", "server.1=a:1:2;3", "2"}[g.odd.IntN(5)] }
		s.payload = body(text(), text(), text(), int64(g.odd.IntN(3)-1))
	}
	s.text = fmt.Sprintf("client %d op %d %q", s.who, s.op, s.payload)
	return s
}

// logIn draws a login: mostly a right one, or one with a fault.
func (g *gen) logIn(s step) step {
	s.op, s.first = stepLogin, []byte{}
	all := responses()
	name := "right"
	if g.odd.IntN(3) == 0 {
		name = slices.Sorted(maps.Keys(all))[g.odd.IntN(len(all))]
	}
	if s.login = all[name].r; s.login.user == "" {
		s.login.user, s.login.password = "docent", "s3cret"
	}
	switch g.odd.IntN(12) {
	case 0:
		s.login.user, name = "nobody", name+", unknown user"
	case 1:
		s.login.user, s.login.password, name = "other", "pw2", name+", another user"
	case 2:
		s.first, name = []any{null{}, []byte("token"), make([]byte, 5000)}[g.odd.IntN(3)], name+", odd token first"
	}
	s.text = fmt.Sprintf("client %d login: %s", s.who, name)
	return s
}

func (g *gen) saslACL() []rawACL {
	all := [][]rawACL{
		{{31, "sasl", "docent"}},
		{{31, "auth", ""}},
		{{31, "sasl", "other"}, {1, "world", "anyone"}},
		{{31, "sasl", "docent@R"}, {31, "auth", "x"}},
		{{31, "sasl", "a@b@c"}},
		{{31, "sasl", ""}, {30, "world", "anyone"}},
		{{31, "sasl", null{}}},
		{{31, "super", ""}},
	}
	return all[g.odd.IntN(len(all))]
}

// quotaRoots are the trees that have quotas at times, relative to the base of the run.
func quotaRoots() []string { return []string{"", "/a"} }

// quota makes, changes, reads or removes a node of a quota. The text of a usage is always
// one: a real server ends over another.
func (g *gen) quota(s step) step {
	path := quotaFolder + g.base + quotaRoots()[g.odd.IntN(2)]
	limits := [][]byte{
		[]byte("count=3,bytes=10"), []byte("count=-1,bytes=-1=;countHardLimit=4"), []byte("byteHardLimit=12"),
		[]byte("count=-1,bytes=-1=;byteHardLimit=9;countHardLimit=6"), []byte("countHardLimit=-1"),
		{},
		[]byte("nonsense"),
	}[g.odd.IntN(7)]
	usage := []byte([]string{"count=0,bytes=0", "count=2,bytes=4", ""}[g.odd.IntN(3)])
	switch n := g.odd.IntN(12); {
	case n < 3:
		s.op, s.payload = 1, body(path+"/zookeeper_limits", limits, openACL, int32(0))
	case n < 6:
		s.op, s.payload = 15, body(path+"/zookeeper_stats", usage, openACL, int32(0))
	case n < 7:
		s.op, s.payload = 5, body(path+"/zookeeper_limits", limits, int32(-1))
	case n < 8:
		s.op, s.payload = 5, body(path+"/zookeeper_stats", usage, int32(-1))
	case n < 9:
		s.op, s.payload = 2, body(path+[]string{"/zookeeper_limits", "/zookeeper_stats"}[g.odd.IntN(2)], int32(-1))
	default:
		s.op, s.payload = 4, body(path+"/zookeeper_stats", g.odd.IntN(2) == 0)
	}
	return s
}

// logIn sends both tokens of a login and returns what could be seen. Challenge and proof
// are checked here, because they differ from login to login.
func (sd *side) logIn(s step) string {
	c := sd.clients[s.who]
	a, events, err := c.call(102, body(s.first))
	out := sd.show(102, answer{zxid: a.zxid, err: a.err}, events, err)
	if err != nil || a.err != 0 {
		return out + fmt.Sprintf(" %x", a.body)
	}
	token, proof := s.login.make((&dec{b: a.body}).text())
	a, events, err = c.call(102, body([]byte(token)))
	out += sd.show(102, answer{zxid: a.zxid, err: a.err}, events, err)
	switch got := (&dec{b: a.body}).text(); {
	case err != nil || a.err != 0:
		return out + fmt.Sprintf(" %x", a.body)
	case got == proof:
		return out + " proven"
	default:
		return out + fmt.Sprintf(" %q", got)
	}
}

// cleanLater removes what later runs would count: the nodes of quotas.
func (sd *side) cleanLater(tb testing.TB, base string) {
	tb.Helper()
	c := sd.dial(tb)
	defer func() { _ = c.Close() }()
	if err := c.handshake(0, 30_000, 0, nil16()); err != nil {
		tb.Fatalf("%s: handshake: %v", sd.addr, err)
	}
	for _, name := range []string{
		base + "/a/zookeeper_limits", base + "/a/zookeeper_stats", base + "/a",
		base + "/zookeeper_limits", base + "/zookeeper_stats", base, base[:len(base)-len("/r")],
	} {
		if a, _, err := c.call(2, body(quotaFolder+name, int32(-1))); err != nil || a.err != 0 && a.err != -101 {
			tb.Errorf("%s: delete %s: %v, code %d", sd.addr, name, err, a.err)
		}
	}
	if _, _, err := c.call(-11, nil); err != nil {
		tb.Errorf("%s: closeSession: %v", sd.addr, err)
	}
}

// prepareLater makes the nodes that the quotas of a run stand in, and one login, because
// real servers remember whom they have looked up last.
func (sd *side) prepareLater(base string) error {
	docent := response{user: "docent", password: "s3cret"}
	c := sd.clients[0]
	if err := c.login(docent); err != nil {
		return err
	}
	top := quotaFolder
	for _, name := range []string{base[:len(base)-len("/r")], base, base + "/a"} {
		a, _, err := c.call(1, body(top+name, []byte{}, openACL, int32(0)))
		if err != nil {
			return err
		}
		if a.err != 0 {
			return fmt.Errorf("create %s: code %d", top+name, a.err)
		}
	}
	return nil
}
