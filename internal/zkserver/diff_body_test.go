package zkserver_test

func (g *gen) payload(op int32) []byte {
	switch op {
	case 1, 15, 19, 21:
		return g.create(op)
	case 2:
		if g.pick(20) == 0 {
			return body(g.systemPath(), g.version())
		}
		return body(g.pathOrNull(), g.version())
	case 3, 4, 8, 12:
		if g.pick(40) == 0 {
			return body(null{}, true)
		}
		return body(g.cleanPath(), g.watch())
	case 5:
		return body(g.pathOrNull(), g.data(), g.version())
	case 6, 104:
		path := g.cleanPath()
		if op == 104 && len(path) < 2 {
			path = g.base // what earlier runs have left counts for the root
		}
		return body(path)
	case 7:
		return body(g.pathOrNull(), g.acl(), g.version())
	case 9:
		return body(g.pathOrNull())
	case 14:
		return g.multi()
	case 22:
		return g.multiRead()
	case 101, 105:
		return g.setWatches(op)
	case 106:
		return body(g.cleanPath(), []int32{0, 0, 1, 1, 1, 2}[g.pick(6)])
	case 17, 18:
		return body(g.cleanPath(), int32(1+g.pick(5)))
	case 103:
		return body([]any{"", "/", g.base, g.base + "/a", null{}}[g.pick(5)])
	case 100:
		auth := []struct{ scheme, cred string }{
			{"digest", "u:p"}, {"digest", "v:q"}, {"digest", "nocolon"}, {"ip", ""}, {"digest", "u:p"}, {"world", "x"}, {"what", "x"},
		}
		a := auth[g.pick(5)]
		if g.pick(6) == 0 {
			a = auth[g.pick(len(auth))]
		}
		if g.oddly(8) {
			return body(int32(0), a.scheme, null{})
		}
		return body(int32(0), a.scheme, []byte(a.cred))
	case 16:
		return body("", "", "server.1=x", int64(-1))
	case 20:
		return body(g.path())
	case 102:
		if g.pick(2) == 0 {
			return body([]byte("token"))
		}
		return nil
	default:
		return nil
	}
}

func (g *gen) multi() []byte {
	var e enc
	for n := g.pick(5); n >= 0; n-- {
		op := []int32{1, 1, 1, 2, 2, 5, 5, 13, 13, 15, 19, 21}[g.pick(12)]
		if g.pick(50) == 0 {
			op = []int32{4, 8, 77}[g.pick(3)]
		}
		e.Write(body(op, false, int32(-1)))
		switch op {
		case 13:
			e.Write(body(g.pathOrNull(), g.version()))
		default:
			e.Write(g.payload(op))
		}
	}
	e.Write(body(int32(-1), true, int32(-1)))
	return e.Bytes()
}

func (g *gen) multiRead() []byte {
	var e enc
	for n := g.pick(4); n >= 0; n-- {
		op := []int32{4, 8}[g.pick(2)]
		if g.pick(30) == 0 {
			op = 1
		}
		e.Write(body(op, false, int32(-1)))
		e.Write(g.payload(op))
	}
	e.Write(body(int32(-1), true, int32(-1)))
	return e.Bytes()
}

func (g *gen) setWatches(op int32) []byte {
	some := func() any {
		out := []string{}
		for n := g.pick(3); n > 0; n-- {
			out = append(out, g.cleanPath())
		}
		if g.oddly(12) {
			return null{}
		}
		return out
	}
	// The zxid is either long past or not yet reached: neither depends on
	// the server's own numbers.
	zxid := []int64{0, 1 << 50}[g.pick(2)]
	p := body(zxid, some(), some(), some())
	if op == 105 {
		p = append(p, body(some(), some())...)
	}
	return p
}
