package zkserver_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// shownEvents describes events without the test's own root.
func shownEvents(root string, events []answer) string {
	var out []string
	for _, ev := range events {
		d := dec{b: ev.body}
		kind := d.int()
		d.int()
		name := []string{0: "?", 1: "created", 2: "deleted", 3: "changed", 4: "children"}[kind]
		out = append(out, name+" "+strings.TrimPrefix(d.text(), root))
	}
	return strings.Join(out, ", ")
}

// watchCase is a write and the events that a watching writer gets before its
// answer.
type watchCase struct {
	name  string
	setup func(*raw)
	op    int32
	body  []byte
	want  string
}

func watchCases(t *testing.T, root string) []watchCase {
	t.Helper()
	watch := func(c *raw, op int32, path string, code int32) {
		t.Helper()
		must(t, c, op, body(root+path, true), code)
	}
	return []watchCase{
		{"exists on a missing node", func(c *raw) { watch(c, 3, "/a", -101) }, 1, create(root + "/a"), "created /a"},
		{"getData on a missing node", func(c *raw) { watch(c, 4, "/b", -101) }, 1, create(root + "/b"), ""},
		{"one event for data and exists", func(c *raw) {
			watch(c, 4, "/a", 0)
			watch(c, 3, "/a", 0)
		}, 5, body(root+"/a", []byte("x"), int32(-1)), "changed /a"},
		{"only once", nil, 5, body(root+"/a", []byte("y"), int32(-1)), ""},
		{"created before children", func(c *raw) {
			watch(c, 3, "/c", -101)
			watch(c, 12, "", 0)
		}, 1, create(root + "/c"), "created /c, children "},
		{"deleted once for data and children", func(c *raw) {
			watch(c, 4, "/c", 0)
			watch(c, 8, "/c", 0)
			watch(c, 8, "", 0)
		}, 2, body(root+"/c", int32(-1)), "deleted /c, children "},
		{"nothing for a failed write", func(c *raw) { watch(c, 4, "/a", 0) }, 5, body(root+"/a", []byte("z"), int32(77)), ""},
		{"still there after it", nil, 5, body(root+"/a", []byte("z"), int32(-1)), "changed /a"},
		{"children are told of creation only", func(c *raw) { watch(c, 12, "/a", 0) }, 5, body(root+"/a", []byte("w"), int32(-1)), ""},
		{
			"transaction", func(c *raw) {
				watch(c, 3, "/m", -101)
				watch(c, 12, "/a", 0)
			}, 14,
			transaction(part(1, create(root+"/m")), part(1, create(root+"/a/n"))), "created /m, children /a",
		},
		{
			"persistent", func(c *raw) { must(t, c, 106, body(root+"/m", int32(0)), 0) }, 14,
			transaction(part(5, body(root+"/m", []byte{}, int32(-1))), part(5, body(root+"/m", []byte{}, int32(-1)))),
			"changed /m, changed /m",
		},
		{
			"recursive", func(c *raw) { must(t, c, 106, body(root+"/a", int32(1)), 0) }, 14,
			transaction(part(1, create(root+"/a/k")), part(5, body(root+"/a/k", []byte{}, int32(-1))), part(2, body(root+"/a/k", int32(-1)))),
			"created /a/k, changed /a/k, deleted /a/k",
		},
	}
}

// TestConformWatches does things with a watching connection and looks at the
// events that come before the answer.
func TestConformWatches(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, srv subject) {
		addr, root := srv.addr, srv.root
		var c *raw
		for _, tc := range watchCases(t, root) {
			if tc.setup != nil { // without a setup the row uses the connection of the row before
				c = rawSession(t, addr)
				tc.setup(c)
			}
			_, events, err := c.call(tc.op, tc.body)
			if got := shownEvents(root, events); err != nil || got != tc.want {
				t.Errorf("%s: %q, %v, want %q", tc.name, got, err, tc.want)
			}
		}
	})
}

func TestConformRemoveWatches(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, srv subject) {
		addr, root := srv.addr, srv.root
		c := rawSession(t, addr)
		must(t, c, 18, body(root, int32(3)), -121)
		must(t, c, 4, body(root, true), 0)
		must(t, c, 17, body(root, int32(2)), 0)
		must(t, c, 18, body(root, int32(1)), -121)
		must(t, c, 18, body(root, int32(2)), 0)
		must(t, c, 17, body(root, int32(3)), -121)
		if _, events, err := c.call(5, body(root, []byte("x"), int32(-1))); err != nil || len(events) != 0 {
			t.Errorf("events %v, %v after removal", events, err)
		}
	})
}

func TestConformSetWatches(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, srv subject) {
		addr, root := srv.addr, srv.root
		c := rawSession(t, addr)
		var seen int64 // the very transaction that made the last of them
		for _, p := range []string{"/changed", "/kids", "/made", "/same"} {
			seen = must(t, c, 1, create(root+p), 0).zxid
		}
		must(t, c, 5, body(root+"/changed", []byte("x"), int32(-1)), 0)
		must(t, c, 1, create(root+"/kids/k"), 0)
		_, events, err := c.call(101, body(seen,
			[]string{root + "/same", root + "/changed", root + "/gone"},
			[]string{root + "/made", root + "/never"},
			[]string{root + "/kids", root + "/same", root + "/gone"}))
		if err != nil {
			t.Fatal(err)
		}
		want := "changed /changed, deleted /gone, created /made, children /kids, deleted /gone"
		if got := shownEvents(root, events); got != want {
			t.Errorf("events %q, want %q", got, want)
		}
		_, events, err = c.call(14, transaction(
			part(5, body(root+"/same", []byte{}, int32(-1))), part(1, create(root+"/same/k")), part(1, create(root+"/never"))))
		want = "changed /same, children /same, created /never"
		if got := shownEvents(root, events); err != nil || got != want {
			t.Errorf("re-armed: %q, %v, want %q", got, err, want)
		}
	})
}

func TestConformACL(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, srv subject) {
		addr, root := srv.addr, srv.root
		owner, other := rawSession(t, addr), rawSession(t, addr)
		must(t, owner, 1, body(root+"/p", []byte{}, []rawACL{{31, "auth", ""}}, int32(0)), -114)
		must(t, owner, 100, body(int32(0), "digest", []byte("u:p")), 0)
		must(t, owner, 1, body(root+"/p", []byte{}, []rawACL{{31, "auth", ""}, {1, "world", "anyone"}}, int32(0)), 0)
		must(t, other, 4, body(root+"/p", false), 0)
		must(t, other, 5, body(root+"/p", []byte{}, int32(-1)), -102)
		must(t, other, 1, create(root+"/p/c"), -102)
		must(t, other, 7, body(root+"/p", openACL, int32(-1)), -102)
		d := dec{b: must(t, other, 6, body(root+"/p", false), 0).body}
		if got := showACL(&d); !strings.Contains(got, "31:digest:u:x") {
			t.Errorf("a reader sees %s", got)
		}
		must(t, owner, 1, create(root+"/p/c"), 0)
		// Deleting takes permission on the parent, not on the node.
		must(t, other, 2, body(root+"/p/c", int32(-1)), -102)
		must(t, other, 100, body(int32(0), "what", []byte("x")), -115)
		if _, err := other.readFrame(); kindOfError(err) != "closed" {
			t.Errorf("after a bad scheme: %v", err)
		}
		d = dec{b: must(t, owner, 107, nil, 0).body}
		var who []string
		for n := d.int(); n > 0; n-- {
			who = append(who, d.text()+"="+d.text())
		}
		slices.Sort(who)
		// A real server may see the address of a proxy.
		if got := fmt.Sprint(who); !strings.HasPrefix(got, "[digest=u ip=") || os.Getenv(realServer) == "" && got != "[digest=u ip=127.0.0.1]" {
			t.Errorf("whoAmI %s", got)
		}
	})
}

// Where the scheme "auth" stands, a node gets all identities of the connection,
// in the order of the server's hash table, which grows with them.
func TestConformIdentities(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, srv subject) {
		addr, root := srv.addr, srv.root
		c := rawSession(t, addr)
		for i, want := range []string{
			0:  "0", // as recorded from a server of 3.8.0
			5:  "0 1 4 3 2 5",
			10: "6 1 4 9 3 2 7 0 10 5 8",
			13: "6 13 1 4 9 3 2 11 7 0 12 10 5 8",
		} {
			must(t, c, 100, body(int32(0), "digest", fmt.Appendf(nil, "%d:pw", i)), 0)
			if want == "" {
				continue
			}
			node := fmt.Sprintf("%s/%d", root, i)
			must(t, c, 1, body(node, []byte{}, []rawACL{{31, "auth", ""}}, int32(0)), 0)
			d := dec{b: must(t, c, 6, body(node), 0).body}
			var got []string
			for _, id := range strings.Split(showACL(&d), "31:digest:")[1:] {
				user, _, _ := strings.Cut(id, ":")
				got = append(got, user)
			}
			if order := strings.Join(got, " "); order != want {
				t.Errorf("after %d identities: %q, want %q", i+1, order, want)
			}
		}
	})
}

func TestConformContainersAndTTL(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, srv subject) {
		addr, root := srv.addr, srv.root
		c := rawSession(t, addr)
		must(t, c, 19, body(root+"/used", []byte{}, openACL, int32(4)), 0)
		must(t, c, 19, body(root+"/unused", []byte{}, openACL, int32(4)), 0)
		must(t, c, 1, body(root+"/plain", []byte{}, openACL, int32(4)), 0) // not a container, in spite of the flag
		must(t, c, 1, create(root+"/plain/k"), 0)
		must(t, c, 2, body(root+"/plain/k", int32(-1)), 0)
		must(t, c, 21, body(root+"/ttl", []byte{}, openACL, int32(5), int64(2000)), 0) // not before the watch is set
		must(t, c, 21, body(root+"/long", []byte{}, openACL, int32(5), int64(1_000_000)), 0)
		must(t, c, 1, create(root+"/used/k"), 0)
		must(t, c, 4, body(root+"/used", true), 0)
		must(t, c, 2, body(root+"/used/k", int32(-1)), 0)
		must(t, c, 4, body(root+"/ttl", true), 0)
		var events []answer
		for len(events) < 2 {
			ev, err := c.receive()
			if err != nil {
				t.Fatal(err)
			}
			events = append(events, ev)
		}
		got := strings.Split(shownEvents(root, events), ", ")
		slices.Sort(got)
		if fmt.Sprint(got) != "[deleted /ttl deleted /used]" {
			t.Errorf("events %v", got)
		}
		for _, p := range []string{"/unused", "/plain", "/long"} {
			must(t, c, 3, body(root+p, false), 0)
		}
		st := readStat(must(t, c, 3, body(root+"/unused", false), 0).body)
		if st.owner != 0 {
			t.Errorf("a container shows owner %#x", st.owner)
		}
	})
}

func TestConformWords(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, srv subject) {
		addr, root := srv.addr, srv.root
		c := rawSession(t, addr)
		must(t, c, 1, ephemeral(root+"/e"), 0)
		must(t, c, 4, body(root+"/e", true), 0)
		id := fmt.Sprintf("0x%x", uint64(c.session))
		for word, want := range map[string][]string{
			"ruok": {"imok"},
			"isro": {"rw"},
			"srvr": {"Zookeeper version: 3.", "Latency min/avg/max: ", "Received: ", "Sent: ", "Connections: ", "Outstanding: ", "Zxid: 0x", "Mode: standalone", "Node count: "},
			"stat": {"Clients:", "Mode: standalone"},
			"mntr": {"zk_version\t", "zk_server_state\tstandalone", "zk_znode_count\t", "zk_watch_count\t", "zk_ephemerals_count\t", "zk_num_alive_connections\t"},
			"cons": {"queued=", "recved=", "sid=" + id, "lop=GETD", "to=20000"},
			"dump": {id, root + "/e"},
			"wchs": {"connections watching", "Total watches:"},
			"wchp": {root + "/e\n\t" + id},
			"wchc": {id + "\n"},
			"conf": {"clientPort=", "tickTime=1000", "maxSessionTimeout=20000"},
			"envi": {"Environment:", "zookeeper.version="},
		} {
			n := dialRaw(t, addr)
			if _, err := n.Write([]byte(word)); err != nil {
				t.Fatal(err)
			}
			text := readAll(n)
			for _, w := range want {
				if !strings.Contains(text, w) {
					t.Errorf("%s: no %q in\n%s", word, w, text)
				}
			}
		}
	})
}

func readAll(c *raw) string {
	var b strings.Builder
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	buf := make([]byte, 4096)
	for {
		n, err := c.Read(buf)
		b.Write(buf[:n])
		if err != nil {
			return b.String()
		}
	}
}
