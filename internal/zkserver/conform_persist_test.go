package zkserver_test

import (
	"testing"

	"github.com/docent-go/docent/zktest"
)

// watchStep is a request and what comes of it: its code, and the events that come
// before its answer.
type watchStep struct {
	name string
	op   int32
	body []byte
	code int32
	want string
}

func runWatchSteps(t *testing.T, c *raw, root string, steps []watchStep) {
	t.Helper()
	for _, s := range steps {
		a, events, err := c.call(s.op, s.body)
		if got := shownEvents(root, events); err != nil || a.err != s.code || got != s.want {
			t.Errorf("%s: code %d, events %q, %v, want %d and %q", s.name, a.err, got, err, s.code, s.want)
		}
	}
}

// TestConformPersistentWatches leaves watches with addWatch and takes them back.
func TestConformPersistentWatches(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, srv subject) {
		root := srv.root
		change := func(path string) []byte { return body(root+path, []byte{}, int32(-1)) }
		remove := func(path string) []byte { return body(root+path, int32(-1)) }
		c := rawSession(t, srv.addr)
		runWatchSteps(t, c, root, []watchStep{
			{"a mode that does not exist", 106, body(root, int32(2)), -5, ""},
			{"persistent, before there is a node", 106, body(root+"/p", int32(0)), 0, ""},
			{"create", 1, create(root + "/p"), 0, "created /p"},
			{"change", 5, change("/p"), 0, "changed /p"},
			{"change again", 5, change("/p"), 0, "changed /p"},
			{"child", 1, create(root + "/p/c"), 0, "children /p"},
			{"change of the child", 5, change("/p/c"), 0, ""},
			{"deletion of the child", 2, remove("/p/c"), 0, "children /p"},
			{"deletion", 2, remove("/p"), 0, "deleted /p"},
			{"creation anew", 1, create(root + "/p"), 0, "created /p"},
			{"is there for data", 17, body(root+"/p", int32(2)), map[bool]int32{true: 0, false: -121}[srv.version != zktest.ZooKeeper39], ""},
			{"is there", 17, body(root+"/p", int32(3)), 0, ""},
			{"taken back", 18, body(root+"/p", int32(3)), 0, ""},
			{"is there no more", 17, body(root+"/p", int32(3)), -121, ""},
			{"taken back again", 18, body(root+"/p", int32(3)), -121, ""},
			{"change unseen", 5, change("/p"), 0, ""},
			{"recursive", 106, body(root+"/p", int32(1)), 0, ""},
			{"child below it", 1, create(root + "/p/c"), 0, "created /p/c"},
			{"grandchild", 1, create(root + "/p/c/d"), 0, "created /p/c/d"},
			{"change of the grandchild", 5, change("/p/c/d"), 0, "changed /p/c/d"},
			{"change of the node", 5, change("/p"), 0, "changed /p"},
			{"a neighbour whose name begins alike", 1, create(root + "/pp"), 0, ""},
			{"one-shot watch on the grandchild", 4, body(root+"/p/c/d", true), 0, ""},
			{"one event for both", 5, change("/p/c/d"), 0, "changed /p/c/d"},
			{"deletion of the grandchild", 2, remove("/p/c/d"), 0, "deleted /p/c/d"},
			{"recursive taken back", 18, body(root+"/p", int32(3)), 0, ""},
			{"deletion unseen", 2, remove("/p/c"), 0, ""},
		})
	})
}

// TestConformRemovalByMode takes back watches of one mode, which only 3.9 can.
func TestConformRemovalByMode(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, srv subject) {
		root := srv.root
		c := rawSession(t, srv.addr)
		must(t, c, 106, body(root, int32(0)), 0)
		if srv.version != zktest.ZooKeeper39 {
			must(t, c, 18, body(root, int32(4)), -5)
			must(t, c, 17, body(root, int32(5)), -5)
			return
		}
		must(t, c, 106, body(root, int32(1)), 0)
		runWatchSteps(t, c, root, []watchStep{
			{"recursive is there", 17, body(root, int32(5)), 0, ""},
			{"persistent taken back", 18, body(root, int32(4)), 0, ""},
			{"persistent is there no more", 17, body(root, int32(4)), -121, ""},
			{"child", 1, create(root + "/c"), 0, "created /c"},
			{"recursive taken back", 18, body(root, int32(5)), 0, ""},
			{"change unseen", 5, body(root+"/c", []byte{}, int32(-1)), 0, ""},
		})
	})
}

// TestConformSetWatches2 comes back with watches of all kinds.
func TestConformSetWatches2(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, srv subject) {
		root := srv.root
		c := rawSession(t, srv.addr)
		var seen int64
		for _, p := range []string{"/p", "/r", "/d"} {
			seen = must(t, c, 1, create(root+p), 0).zxid
		}
		must(t, c, 5, body(root+"/p", []byte{}, int32(-1)), 0) // missed
		must(t, c, 5, body(root+"/d", []byte{}, int32(-1)), 0)
		back := dialRaw(t, srv.addr)
		if err := back.handshake(0, 9000, c.session, c.password); err != nil {
			t.Fatal(err)
		}
		none := []string{}
		runWatchSteps(t, back, root, []watchStep{
			{"without the persistent ones", 105, body(seen, none, none, none), -5, ""},
			{
				"set", 105, body(seen, []string{root + "/d"}, none, none, []string{root + "/p"}, []string{root + "/r"}), 0,
				"changed /d", // what a persistent watch has missed is not told
			},
			{"change", 5, body(root+"/p", []byte{}, int32(-1)), 0, "changed /p"},
			{"change again", 5, body(root+"/p", []byte{}, int32(-1)), 0, "changed /p"},
			{"child of the persistent one", 1, create(root + "/p/c"), 0, "children /p"},
			{"child of the recursive one", 1, create(root + "/r/c"), 0, "created /r/c"},
			{"of the one-shot", 5, body(root+"/d", []byte{}, int32(-1)), 0, ""},
		})
	})
}
