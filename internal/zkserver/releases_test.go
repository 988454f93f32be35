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

// releaseCase is something that not all releases answer alike. do works below a
// path of its own, and what it returns is compared.
type releaseCase struct {
	name string
	do   func(t *testing.T, c *raw, root string) string
	// What each of releases() answers.
	want [3]string
}

// TestReleases shows where releases differ. It runs on zktest as each of them, and
// on a real server without other users when DOCENT_ZK names one.
func TestReleases(t *testing.T) {
	t.Parallel()
	if addr := os.Getenv(realServer); addr != "" {
		compareReleases(t, addr)
		return
	}
	for _, v := range releases() {
		t.Run(v.String(), func(t *testing.T) {
			t.Parallel()
			compareReleases(t, zktest.NewServer(t, zktest.WithTick(time.Second), zktest.WithVersion(v)).Addr())
		})
	}
}

func compareReleases(t *testing.T, addr string) {
	t.Helper()
	i := slices.Index(releases(), releaseOf(t, addr))
	if i < 0 {
		t.Fatalf("nothing is known of the release of %s", addr)
	}
	for n, tc := range slices.Concat(readCases(), multiCases(), writeCases(), otherCases()) {
		c := rawSession(t, addr)
		root := fmt.Sprintf("/conf-release%02d", n)
		must(t, c, 1, create(root), 0)
		if got := tc.do(t, c, root); got != tc.want[i] {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want[i])
		}
		must(t, rawSession(t, addr), -11, nil, 0) // the case may have ended its connection
	}
}

// told sends a request and returns its code, and the shape or the bytes of what
// came with the code. It also returns the zxid shown, counted from the last
// write's, and how many zxids the request took.
func told(t *testing.T, c *raw, root string, op int32, payload []byte) string {
	t.Helper()
	count := func() int64 { return must(t, c, 5, body(root, []byte{}, int32(-1)), 0).zxid }
	before := count()
	a, _, err := c.call(op, payload)
	if err != nil {
		t.Fatal(err)
	}
	out := fmt.Sprint(a.err)
	switch {
	case a.err == 0 && (op == 14 || op == 22):
		out += " " + showShape(a.body)
	case a.err != 0 && len(a.body) > 0:
		out += fmt.Sprintf(" %x", a.body)
	}
	return fmt.Sprintf("%s, shows %+d, takes %d", out, a.zxid-before, count()-before-1)
}

// code sends a request and returns the code of its answer.
func code(t *testing.T, c *raw, op int32, payload []byte) string {
	t.Helper()
	a, _, err := c.call(op, payload)
	if err != nil {
		return kindOfError(err)
	}
	return fmt.Sprint(a.err)
}

func same(s string) [3]string { return [3]string{s, s, s} }

func readCases() []releaseCase {
	hidden := []rawACL{{30, "world", "anyone"}} // all but READ
	return []releaseCase{
		{"exists of a node that may not be read", func(t *testing.T, c *raw, root string) string {
			must(t, c, 1, body(root+"/a", []byte{}, hidden, int32(0)), 0)
			return code(t, c, 3, body(root+"/a", false))
		}, [3]string{"0", "-102", "-102"}},
		{"exists of a missing child of such a node", func(t *testing.T, c *raw, root string) string {
			must(t, c, 1, body(root+"/a", []byte{}, hidden, int32(0)), 0)
			first := code(t, c, 3, body(root+"/a/b", true))
			_, events, err := c.call(1, create(root+"/a/b"))
			return fmt.Sprint(first, " then ", shownEvents(root, events), " ", kindOfError(err))
		}, same("-101 then created /a/b ok")},
		{"multiRead of nothing but a create", func(t *testing.T, c *raw, root string) string {
			return told(t, c, root, 22, transaction(part(1, create(root+"/a"))))
		}, same("-5 ffffffff01ffffffff, shows +0, takes 0")},
		{"multiRead of a create without an ACL", func(t *testing.T, c *raw, root string) string {
			return told(t, c, root, 22, transaction(part(1, body(root+"/a", []byte{}, null{}, int32(0)))))
		}, [3]string{"-5 ffffffff01ffffffff, shows +0, takes 0", "-5, shows +0, takes 0", "-5, shows +0, takes 0"}},
	}
}

func multiCases() []releaseCase {
	multi := func(op int32, list any, flags int32) func(*testing.T, *raw, string) string {
		return func(t *testing.T, c *raw, root string) string {
			t.Helper()
			return told(t, c, root, 14, transaction(part(op, body(root+"/a", []byte{}, list, flags))))
		}
	}
	return []releaseCase{
		{"create2 in a transaction", multi(15, openACL, 0), [3]string{
			"0 1 end, shows +1, takes 1", "0 15 end, shows +1, takes 1", "0 15 end, shows +1, takes 1",
		}},
		{"create with the flags of a container in a transaction", multi(1, openACL, 4), same("0 15 end, shows +1, takes 1")},
		{"createContainer without them", multi(19, openACL, 0), [3]string{
			"0 1 end, shows +1, takes 1", "0 15 end, shows +1, takes 1", "0 15 end, shows +1, takes 1",
		}},
		{"create with flags 7 in a transaction", multi(1, openACL, 7), [3]string{
			"0 err-8 end, shows +1, takes 1", "-5, shows +1, takes 1", "-5, shows +1, takes 1",
		}},
		{"create with the flags of a TTL in a transaction", multi(1, openACL, 5), same("-5, shows +1, takes 1")},
		{"create without an ACL in a transaction", multi(1, null{}, 0), [3]string{
			"0 err-114 end, shows +1, takes 1", "-5 ffffffff01ffffffff, shows +0, takes 0", "-5, shows +0, takes 0",
		}},
		{"null path in a transaction", func(t *testing.T, c *raw, root string) string {
			return told(t, c, root, 14, transaction(part(2, body(null{}, int32(-1)))))
		}, [3]string{
			"-5 ffffffff01ffffffff, shows +0, takes 1", "-5 ffffffff01ffffffff, shows +0, takes 1", "-5, shows +1, takes 1",
		}},
	}
}

func writeCases() []releaseCase {
	short := func(op int32) func(*testing.T, *raw, string) string {
		return func(t *testing.T, c *raw, root string) string {
			t.Helper()
			return told(t, c, root, op, body(root))
		}
	}
	shown := [3]string{"-5, shows +1, takes 1", "-5, shows +1, takes 1", "-5, shows +0, takes 0"}
	return []releaseCase{
		{"create that ends early", short(1), shown},
		{"delete that ends early", short(2), shown},
		{"setData that ends early", short(5), shown},
		{"setACL that ends early", short(7), shown},
		{"delete of a null path", func(t *testing.T, c *raw, root string) string {
			return told(t, c, root, 2, body(null{}, int32(-1)))
		}, same("-5, shows +1, takes 1")},
		{"deleteContainer of a missing node", func(t *testing.T, c *raw, root string) string {
			return told(t, c, root, 20, body(root+"/a"))
		}, [3]string{"-8, shows +1, takes 1", "-8, shows +1, takes 1", "-101, shows +1, takes 1"}},
		{"deleteContainer of an empty one", func(t *testing.T, c *raw, root string) string {
			must(t, c, 19, body(root+"/a", []byte{}, openACL, int32(4)), 0)
			first := code(t, c, 20, body(root+"/a"))
			return first + " then " + code(t, c, 3, body(root+"/a", false))
		}, [3]string{"-8 then 0", "-8 then 0", "0 then -101"}},
		{"lone check", checked(int32(-1)), loneCheck("no answer")},
		{"lone check of another version", checked(int32(5)), loneCheck("-103, shows +1")},
		{"lone check that ends early", checked(), loneCheck("-5, shows +1")},
	}
}

// loneCheck is what releases say to a check outside of a transaction: only 3.8.0 knows it.
func loneCheck(known string) [3]string {
	return [3]string{known, "-6 at -1 then closed", "-6 at -1 then closed"}
}

// checked sends a lone check with a version, and a ping behind it.
func checked(version ...any) func(*testing.T, *raw, string) string {
	return func(t *testing.T, c *raw, root string) string {
		t.Helper()
		before := must(t, c, 5, body(root, []byte{}, int32(-1)), 0).zxid
		if _, err := c.send(13, body(append([]any{root}, version...)...)); err != nil {
			t.Fatal(err)
		}
		if err := c.sendXid(-2, 11, nil); err != nil {
			t.Fatal(err)
		}
		a, err := c.receive()
		switch {
		case err != nil:
			return kindOfError(err)
		case a.xid == -2:
			return "no answer"
		case a.zxid > 0:
			return fmt.Sprintf("%d, shows %+d", a.err, a.zxid-before)
		}
		for err == nil { // it may still answer the ping
			_, err = c.readFrame()
		}
		return fmt.Sprintf("%d at %d then %s", a.err, a.zxid, kindOfError(err))
	}
}

func otherCases() []releaseCase {
	acl := func(id string) func(*testing.T, *raw, string) string {
		return func(t *testing.T, c *raw, root string) string {
			t.Helper()
			return code(t, c, 1, body(root+"/a", []byte{}, []rawACL{{31, "ip", id}}, int32(0)))
		}
	}
	return []releaseCase{
		{"ACL with an address of IPv4", acl("127.0.0.01/8"), same("0")},
		{"ACL with an address of IPv6", acl("2001:db8::1"), [3]string{"-114", "-114", "0"}},
		{"ACL with a range of IPv6", acl("2001:db8::/32"), [3]string{"-114", "-114", "0"}},
		{"ACL with an address of IPv6 with an IPv4 part", acl("::ffff:127.0.0.1"), same("-114")},
		{"ACL with a zone", acl("fe80::1%lo"), same("-114")},
		{"a family that does not match", func(t *testing.T, c *raw, root string) string {
			first := acl("::/0")(t, c, root)
			return first + " then " + code(t, c, 4, body(root+"/a", false))
		}, [3]string{"-114 then -101", "-114 then -101", "0 then -102"}},
		{"one-shot watch over a persistent one", func(t *testing.T, c *raw, root string) string {
			must(t, c, 106, body(root, int32(0)), 0)
			must(t, c, 4, body(root, true), 0)
			var out []string
			for range 2 {
				a, events, err := c.call(5, body(root, []byte{}, int32(-1)))
				if err != nil {
					t.Fatal(err)
				}
				for _, ev := range events {
					out = append(out, fmt.Sprintf("event %t %d", ev.zxid == a.zxid, min(ev.zxid, 0)))
				}
			}
			return strings.Join(out, ", ")
		}, [3]string{"event false -1", "event false -1", "event true 0, event true 0"}},
	}
}

// TestVersionInWords asks every word that tells the version.
func TestVersionInWords(t *testing.T) {
	t.Parallel()
	for _, v := range append(releases(), zktest.ZooKeeper35) {
		addr := zktest.NewServer(t, zktest.WithVersion(v)).Addr()
		for _, w := range []string{"srvr", "stat", "mntr", "envi"} {
			if got, err := zktest.ParseVersion(word(t, addr, w)); err != nil || got != v {
				t.Errorf("%s of %v tells of %v, %v", w, v, got, err)
			}
		}
	}
}
