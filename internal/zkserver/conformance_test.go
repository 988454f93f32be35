package zkserver_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/zktest"
)

// statOf decodes a stat at the end of an answer.
type statOf struct {
	czxid, mzxid, pzxid         int64
	version, cversion, aversion int32
	owner                       int64
	kids                        int32
}

func readStat(p []byte) (s statOf) {
	d := dec{b: p[len(p)-68:]}
	s.czxid, s.mzxid = d.long(), d.long()
	d.long()
	d.long()
	s.version, s.cversion, s.aversion = d.int(), d.int(), d.int()
	s.owner = d.long()
	d.int()
	s.kids, s.pzxid = d.int(), d.long()
	return s
}

func TestConformTimeouts(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, srv subject) {
		addr := srv.addr
		for _, tc := range []struct{ ask, get int32 }{{-1, 2000}, {0, 2000}, {1, 2000}, {7777, 7777}, {1 << 30, 20_000}} {
			c := dialRaw(t, addr)
			if err := c.handshake(0, tc.ask, 0, nil16()); err != nil || c.timeout != tc.get {
				t.Errorf("asked for %d: %d, %v, want %d", tc.ask, c.timeout, err, tc.get)
			}
			must(t, c, -11, nil, 0)
		}
	})
}

func TestConformReattach(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, srv subject) {
		addr, root := srv.addr, srv.root
		c := rawSession(t, addr)
		must(t, c, 1, ephemeral(root+"/e"), 0)
		bad := dialRaw(t, addr)
		if err := bad.handshake(0, 9000, c.session, []byte("0123456789012345")); kindOfError(err) != "refused" {
			t.Errorf("wrong password: %v", err)
		}
		if _, err := c.readFrame(); kindOfError(err) != "closed" {
			t.Errorf("the older connection after a wrong password: %v", err)
		}
		again := dialRaw(t, addr)
		if err := again.handshake(0, 9000, c.session, c.password); err != nil || again.timeout != 9000 {
			t.Fatalf("reattach: %v, timeout %d", err, again.timeout)
		}
		must(t, again, 3, body(root+"/e", false), 0)
		ahead := dialRaw(t, addr)
		if err := ahead.handshake(1<<60, 9000, 0, nil16()); kindOfError(err) != "closed" {
			t.Errorf("zxid ahead of the server: %v", err)
		}
		must(t, again, -11, nil, 0)
		if _, err := again.readFrame(); kindOfError(err) != "closed" {
			t.Errorf("after closeSession: %v", err)
		}
		gone := dialRaw(t, addr)
		if err := gone.handshake(0, 9000, c.session, c.password); kindOfError(err) != "refused" {
			t.Errorf("reattach to a closed session: %v", err)
		}
		must(t, rawSession(t, addr), 3, body(root+"/e", false), -101)
	})
}

func TestConformExpiry(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, srv subject) {
		addr, root := srv.addr, srv.root
		a, b := dialRaw(t, addr), rawSession(t, addr)
		if err := a.handshake(0, 2000, 0, nil16()); err != nil {
			t.Fatal(err)
		}
		must(t, a, 1, ephemeral(root+"/e"), 0)
		must(t, b, 4, body(root+"/e", true), 0)
		start := time.Now()
		_ = a.Close()
		ev, err := b.receive()
		took := time.Since(start)
		if err != nil || ev.xid != -1 || took < 1900*time.Millisecond || took > 3500*time.Millisecond {
			t.Errorf("event %+v, %v, after %v, want 2 to 3 s", ev, err, took)
		}
	})
}

func TestConformSequence(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, srv subject) {
		addr, root := srv.addr, srv.root
		c := rawSession(t, addr)
		seq := body(root+"/s-", []byte{}, openACL, int32(2))
		name := func(a answer) string { return strings.TrimPrefix((&dec{b: a.body}).text(), root) }
		if got := name(must(t, c, 1, seq, 0)); got != "/s-0000000000" {
			t.Errorf("first %s", got)
		}
		must(t, c, 1, create(root+"/plain"), 0)              // counts
		must(t, c, 2, body(root+"/plain", int32(-1)), 0)     // does not
		must(t, c, 5, body(root, []byte("x"), int32(-1)), 0) // does not
		must(t, c, 1, create(root+"/s-0000000000"), -110)    // does not
		if got := name(must(t, c, 1, seq, 0)); got != "/s-0000000002" {
			t.Errorf("third creation got %s", got)
		}
		st := readStat(must(t, c, 3, body(root, false), 0).body)
		if st.cversion != 4 || st.kids != 2 {
			t.Errorf("cversion %d with %d children, want 4 with 2", st.cversion, st.kids)
		}
	})
}

// TestConformFailedWritesTakeZxids also checks that reads take none.
func TestConformFailedWritesTakeZxids(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, srv subject) {
		addr, root := srv.addr, srv.root
		if os.Getenv(realServer) != "" {
			// Parallel tests move the zxid of a shared server.
			t.Log("lower bounds only: the server is shared")
		}
		c := rawSession(t, addr)
		before := must(t, c, 3, body(root, false), 0).zxid
		failed := must(t, c, 1, create(root), -110).zxid
		after := must(t, c, 4, body(root, false), 0).zxid
		if failed <= before || after < failed {
			t.Errorf("zxids %#x, %#x, %#x do not advance with the failed write", before, failed, after)
		}
		if os.Getenv(realServer) == "" && (failed != before+1 || after != failed) {
			t.Errorf("zxids %#x, %#x, %#x, want one more for the failed write", before, failed, after)
		}
	})
}

func part(op int32, payload []byte) []byte { return append(body(op, false, int32(-1)), payload...) }

func transaction(parts ...[]byte) []byte {
	return append(slices.Concat(parts...), body(int32(-1), true, int32(-1))...)
}

func TestConformMulti(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, srv subject) {
		addr, root := srv.addr, srv.root
		c := rawSession(t, addr)
		a := must(t, c, 14, transaction(
			part(1, create(root+"/a")),
			part(1, body(root+"/a/s", []byte{}, openACL, int32(2))),
			part(5, body(root+"/a", []byte("x"), int32(0))),
			part(13, body(root+"/a", int32(1))),
		), 0)
		if got := showShape(a.body); got != "1 1 5 13 end" {
			t.Errorf("results %s", got)
		}
		st := readStat(must(t, c, 3, body(root+"/a", false), 0).body)
		if st.czxid != st.mzxid || st.czxid != st.pzxid || st.version != 1 {
			t.Errorf("stat %+v, want one zxid", st)
		}
		a = must(t, c, 14, transaction(
			part(5, body(root+"/a", []byte("y"), int32(-1))),
			part(2, body(root+"/none", int32(-1))),
			part(1, create(root+"/b")),
		), 0)
		if got := showShape(a.body); got != "err0 err-101 err-2 end" {
			t.Errorf("results of a failed transaction %s", got)
		}
		must(t, c, 3, body(root+"/b", false), -101)
		d := dec{b: must(t, c, 4, body(root+"/a", false), 0).body}
		if got := d.text(); got != "x" {
			t.Errorf("data %q after a failed transaction", got)
		}
	})
}

// showShape lists the types and errors of a transaction's results.
func showShape(p []byte) string {
	var out []string
	d := dec{b: p}
	for !d.short {
		op, done, code := d.int(), d.bool(), d.int()
		switch {
		case done:
			return strings.Join(append(out, "end"), " ")
		case op == -1:
			out = append(out, fmt.Sprint("err", code))
			d.int()
			continue
		case op == 1:
			d.text()
		case op == 15:
			d.text()
			d.take(68)
		case op == 5:
			d.take(68)
		}
		out = append(out, fmt.Sprint(op))
	}
	return "short"
}

func TestConformPipelining(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, srv subject) {
		addr, root := srv.addr, srv.root
		c := rawSession(t, addr)
		const n = 60
		for range n {
			if _, err := c.send(1, body(root+"/p", []byte{}, openACL, int32(3))); err != nil {
				t.Fatal(err)
			}
		}
		for i := range n {
			a, err := c.receive()
			d := dec{b: a.body}
			if want := fmt.Sprintf("%s/p%010d", root, i); err != nil || a.xid != int32(i+1) || d.text() != want {
				t.Fatalf("answer %d: %+v, %v, want %s", i, a, err, want)
			}
		}
	})
}

func TestConformFrameLimit(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, srv subject) {
		addr, root := srv.addr, srv.root
		c := rawSession(t, addr)
		big := make([]byte, 1<<20-1000)
		must(t, c, 1, body(root+"/big", big, openACL, int32(0)), 0)
		// The answer may be as large as the data.
		must(t, c, 4, body(root+"/big", false), 0)
		if _, _, err := c.call(1, body(root+"/bigger", make([]byte, 1<<20), openACL, int32(0))); kindOfError(err) != "closed" &&
			!strings.Contains(err.Error(), "broken pipe") {
			t.Errorf("oversized frame: %v", err)
		}
		must(t, rawSession(t, addr), 3, body(root+"/bigger", false), -101)
		for _, head := range [][]byte{{0xff, 0xff, 0xff, 0xff}, {0x7f, 0xff, 0xff, 0xff}, {0, 0, 0, 3, 1, 2, 3}, {0, 0, 0, 0}} {
			c := rawSession(t, addr)
			if _, err := c.Write(head); err != nil {
				t.Fatal(err)
			}
			if _, err := c.readFrame(); kindOfError(err) != "closed" {
				t.Errorf("frame %x: %v", head, err)
			}
		}
	})
}

func TestConformOddRequests(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, srv subject) {
		addr, root := srv.addr, srv.root
		c := rawSession(t, addr)
		must(t, c, 77, nil, -6)
		if _, err := c.readFrame(); kindOfError(err) != "closed" {
			t.Errorf("after an unknown type: %v", err)
		}
		c = rawSession(t, addr)
		must(t, c, 16, body("", "", "", int64(-1)), -123)
		must(t, c, 4, body("/zookeeper/config", false), 0)
		for _, path := range []string{"/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config"} {
			must(t, c, 2, body(path, int32(-1)), -8)
		}
		if srv.version != zktest.ZooKeeper380 {
			must(t, c, 13, body(root, int32(-1)), -6)
			if _, err := c.readFrame(); kindOfError(err) != "closed" {
				t.Errorf("after a lone check: %v", err)
			}
			return
		}
		// A lone check is never answered.
		if _, err := c.send(13, body(root, int32(-1))); err != nil {
			t.Fatal(err)
		}
		if _, err := c.send(3, body(root, false)); err != nil {
			t.Fatal(err)
		}
		if a, err := c.receive(); err != nil || a.xid != c.xid {
			t.Errorf("answer to %d, %v, want only that to %d", a.xid, err, c.xid)
		}
	})
}
