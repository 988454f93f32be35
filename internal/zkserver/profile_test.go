package zkserver_test

import (
	"strings"
	"testing"

	"github.com/docent-go/docent/zktest"
)

// TestWithoutOps takes requests away from a server.
func TestWithoutOps(t *testing.T) {
	t.Parallel()
	container, ttl := body("/c", []byte{}, openACL, int32(4)), body("/t", []byte{}, openACL, int32(5), int64(1000))
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		for _, tc := range []struct {
			name string
			op   int32
			body []byte
			want string
		}{
			{"addWatch", 106, body("/", int32(0)), "-6"},
			{"createContainer", 19, container, "-6"},
			{"createTTL", 21, ttl, "-6"},
			{"create with the flag of a container", 1, container, "-8"},
			{"create2 with the flag of a TTL", 15, ttl[:len(ttl)-8], "-8"},
			{"createContainer in a transaction", 14, transaction(part(19, container)), "-5"},
			{"create2", 15, create("/2"), "0"},
			{"setWatches", 101, body(int64(0), []string{}, []string{}, []string{}), "0"},
		} {
			c := memory(t, srv.Client("a"))
			if got := code(t, c, tc.op, tc.body); got != tc.want {
				t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
			}
			if tc.want != "-6" {
				must(t, c, 3, exists("/"), 0)
			} else if _, err := c.readFrame(); kindOfError(err) != "closed" {
				t.Errorf("behind %s: %v", tc.name, err)
			}
		}
		c := memory(t, srv.Client("a"))
		a := must(t, c, 14, transaction(part(1, container)), 0)
		if got := showShape(a.body); got != "err-8 end" {
			t.Errorf("create with the flag of a container in a transaction: %s", got)
		}
	}, zktest.WithExtendedTypes(), zktest.WithoutOps(zktest.OpAddWatch, zktest.OpCreateContainer, zktest.OpCreateTTL))
}

// TestZooKeeper35 has what release 3.5 has and lacks what came later.
func TestZooKeeper35(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		for _, op := range []int32{22, 103, 104, 105, 106, 107} {
			c := memory(t, srv.Client("a"))
			if got := code(t, c, op, nil); got != "-6" {
				t.Errorf("request of type %d: %s", op, got)
			}
			if _, err := c.readFrame(); kindOfError(err) != "closed" {
				t.Errorf("behind it: %v", err)
			}
		}
		c := memory(t, srv.Client("a"))
		must(t, c, 19, body("/c", []byte{}, openACL, int32(4)), 0)
		must(t, c, 15, create("/c/2"), 0)
		must(t, c, 4, body("/c/2", true), 0)
		must(t, c, 17, body("/c/2", int32(2)), 0)
		must(t, c, 18, body("/c/2", int32(2)), 0)
	}, zktest.WithVersion(zktest.ZooKeeper35))
}

// TestClickHouseKeeper looks at what the profile adds to the quirks, which tests of
// their own show.
func TestClickHouseKeeper(t *testing.T) {
	t.Parallel()
	keeper := zktest.WithProfile(zktest.ClickHouseKeeper)
	t.Run("quirks and requests", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, srv *zktest.Server) {
			first := memory(t, srv.Client("a"))
			must(t, first, 4, exists("/keeper/feature_flags"), 0)
			must(t, first, 1, create("/r"), 0)
			must(t, first, 106, body("/r", int32(1)), 0)
			_, events, err := first.call(19, body("/r/c", []byte{}, openACL, int32(4)))
			if got := shownEvents("", events); err != nil || got != "created /r" {
				t.Errorf("recursive watch: %s, %v", got, err)
			}
			if owner := readStat(must(t, first, 3, exists("/r/c"), 0).body).owner; owner >= 0 {
				t.Errorf("owner of a container %#x", owner)
			}
			back := memoryConn(t, srv.Client("a"))
			if err := back.handshake(0, 30_000, first.session, first.password); err != nil || back.session == first.session {
				t.Errorf("session %#x after %#x, %v", back.session, first.session, err)
			}
			for _, op := range []int32{20, 21, 77, 102, 103, 104, 107} {
				if got := code(t, memory(t, srv.Client("a")), op, body("/")); got != "closed" {
					t.Errorf("request of type %d: %s", op, got)
				}
			}
			must(t, back, 1, create("/r/d"), 0)
			before := readStat(must(t, back, 3, exists("/r"), 0).body).pzxid
			must(t, back, 2, body("/r/d", int32(-1)), 0)
			if now := readStat(must(t, back, 3, exists("/r"), 0).body).pzxid; now != before {
				t.Errorf("the deletion of a child changed pzxid from %#x to %#x", before, now)
			}
			must(t, back, 1, ephemeral("/e"), 0)
			srv.Stop()
			if _, ok := srv.Node("/e"); ok {
				t.Error("a graceful stop has left an ephemeral")
			}
		}, keeper)
	})
	t.Run("timeouts", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, srv *zktest.Server) {
			for ask, want := range map[int32]int32{1000: 10_000, 30_000: 30_000, 1 << 30: 100_000} {
				c := memoryConn(t, srv.Client("a"))
				if err := c.handshake(0, ask, 0, nil16()); err != nil || c.timeout != want {
					t.Errorf("asked for %d: %d, %v, want %d", ask, c.timeout, err, want)
				}
			}
		}, keeper)
	})
	t.Run("with TTL nodes", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, srv *zktest.Server) {
			must(t, memory(t, srv.Client("a")), 21, body("/t", []byte{}, openACL, int32(5), int64(1000)), 0)
		}, zktest.WithExtendedTypes(), keeper)
	})
	t.Run("without a leader", func(t *testing.T) {
		t.Parallel()
		ensemble(t, func(t *testing.T, e *zktest.Ensemble) {
			e.Server(2).Stop()
			e.Server(3).Stop()
			if c := memoryConn(t, e.Client("a").To(1)); c.handshake(0, 9000, 0, nil16()) != nil || c.session != -1 {
				t.Errorf("session %#x, want -1", c.session)
			}
		}, keeper)
	})
	t.Run("words", func(t *testing.T) {
		t.Parallel()
		addr := zktest.NewServer(t, keeper).Addr()
		for w, want := range map[string]string{
			"srvr": "ClickHouse Keeper version: v26.", "stat": "ClickHouse Keeper version: v26.",
			"mntr": "zk_version\tv26.", "envi": "Environment:\nclickhouse.keeper.version=v26.",
		} {
			if got := word(t, addr, w); !strings.HasPrefix(got, want) {
				t.Errorf("%s: %q, want %q first", w, got, want)
			}
		}
	})
}
