package zkserver_test

import (
	"math"
	"testing"
	"time"

	"github.com/docent-go/docent/zktest"
)

func sequentialAt(path string) []byte { return body(path, []byte{}, openACL, int32(2)) }

func pathOf(a answer) string { return (&dec{b: a.body}).text() }

// TestCounterSticks shows what servers since 3.6.0 do at the end of the
// sequence counter when creates come one at a time.
func TestCounterSticks(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c := memory(t, srv.Client("a"))
		must(t, c, 1, create("/q"), 0)
		if err := srv.SetCounter("/q", math.MaxInt32-2); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"2147483645", "2147483646", "2147483647"} {
			if got := pathOf(must(t, c, 1, sequentialAt("/q/s"), 0)); got != "/q/s"+want {
				t.Errorf("created %s, want suffix %s", got, want)
			}
		}
		last := must(t, c, 3, body("/q", false), 0)
		if st := readStat(last.body); st.pzxid != last.zxid-1 {
			t.Errorf("pzxid %#x, want that of the creation before the last, %#x", st.pzxid, last.zxid-1)
		}
		for range 3 {
			must(t, c, 1, sequentialAt("/q/s"), -110)
		}
		deleted := must(t, c, 2, body("/q/s2147483647", int32(-1)), 0).zxid
		for _, prefix := range []string{"/q/s", "/q/other"} {
			if got := pathOf(must(t, c, 1, sequentialAt(prefix), 0)); got != prefix+"2147483647" {
				t.Errorf("created %s, want the last suffix again", got)
			}
		}
		node, _ := srv.Node("/q")
		if after := readStat(must(t, c, 3, body("/q", false), 0).body); node.Counter != math.MaxInt32 ||
			after.pzxid != deleted {
			t.Errorf("counter %d, pzxid %#x, want it stuck at the deletion, %#x", node.Counter, after.pzxid, deleted)
		}
	})
}

// TestCounterGoesNegativeUnderLoad shows the other outcome: creates that
// overlap count on from each other, not from the tree.
func TestCounterGoesNegativeUnderLoad(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c := memory(t, srv.Client("a"))
		must(t, c, 1, create("/q"), 0)
		if err := srv.SetCounter("/q", math.MaxInt32-1); err != nil {
			t.Fatal(err)
		}
		srv.SlowLog(100 * time.Millisecond)
		for range 5 {
			if _, err := c.send(1, sequentialAt("/q/s")); err != nil {
				t.Fatal(err)
			}
		}
		for _, want := range []string{"2147483646", "2147483647", "-2147483648", "-2147483647", "-2147483646"} {
			if a, err := c.receive(); err != nil || pathOf(a) != "/q/s"+want {
				t.Errorf("created %q, %v, want suffix %s", pathOf(a), err, want)
			}
		}
		must(t, c, 1, sequentialAt("/q/s"), -110)
		if got := pathOf(must(t, c, 1, sequentialAt("/q/t"), 0)); got != "/q/t2147483647" {
			t.Errorf("after the load: %s, want the last suffix", got)
		}
	})
}

func TestPresets(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c := memory(t, srv.Client("a"))
		must(t, c, 1, create("/v"), 0)
		if err := srv.SetVersion("/v", math.MaxInt32); err != nil {
			t.Fatal(err)
		}
		if st := readStat(must(t, c, 5, body("/v", []byte{}, int32(math.MaxInt32)), 0).body); st.version != math.MinInt32 {
			t.Errorf("version %d after the largest", st.version)
		}
		if err := srv.SetZxid(0xfffffffe); err != nil {
			t.Fatal(err)
		}
		if a := must(t, c, 3, body("/v", false), 0); a.zxid != 0xfffffffe || srv.Zxid() != a.zxid {
			t.Errorf("zxid %#x, Zxid %#x after the preset", a.zxid, srv.Zxid())
		}
		must(t, c, 5, body("/v", []byte{}, int32(-1)), 0)
		if a := must(t, c, 5, body("/v", []byte{}, int32(-1)), 0); a.zxid != 0x100000000 {
			t.Errorf("zxid %#x", a.zxid)
		}
		if srv.SetZxid(1) == nil || srv.SetCounter("/none", 1) == nil || srv.SetVersion("/none", 1) == nil {
			t.Error("impossible presets are accepted")
		}
	})
}
