package zkserver_test

import (
	"bytes"
	"math"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/zktest"
)

// withAndWithout runs f on a server with a quirk and on one without.
func withAndWithout(t *testing.T, q zktest.Quirk, f func(t *testing.T, srv *zktest.Server, quirk bool)) {
	t.Helper()
	t.Run("with", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, srv *zktest.Server) { f(t, srv, true) }, zktest.WithQuirks(q))
	})
	t.Run("without", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, srv *zktest.Server) { f(t, srv, false) })
	})
}

// TestQuirkNoReattach comes back with a session, a wrong password and a zxid that the
// server has not reached.
func TestQuirkNoReattach(t *testing.T) {
	t.Parallel()
	withAndWithout(t, zktest.QuirkNoReattach, func(t *testing.T, srv *zktest.Server, quirk bool) {
		old, other := memory(t, srv.Client("a")), memory(t, srv.Client("b"))
		must(t, old, 1, ephemeral("/e"), 0)
		must(t, other, 4, body("/e", true), 0)
		back := memoryConn(t, srv.Client("a"))
		err := back.handshake(1<<40, 30_000, old.session, []byte("0123456789012345"))
		if !quirk {
			if kindOfError(err) != "closed" {
				t.Errorf("a client from the future: %v", err)
			}
			return
		}
		if err != nil || back.session == old.session || back.timeout != 20_000 || !bytes.Equal(back.password, nil16()) {
			t.Errorf("session %#x after %#x, timeout %d, password %x, %v", back.session, old.session, back.timeout, back.password, err)
		}
		must(t, old, 3, exists("/e"), 0) // its connection stands
		must(t, back, 1, ephemeral("/e"), -110)
		start := time.Now()
		_ = old.Close()
		ev, err := other.receive()
		if took := time.Since(start); err != nil || shownEvents("", []answer{ev}) != "deleted /e" || took < 19*time.Second || took > 22*time.Second {
			t.Errorf("event %+v, %v, after %v, want a deletion when the old session expires", ev, err, took)
		}
	})
}

// TestQuirkNoReattachOfClient lets an unmodified client come back.
func TestQuirkNoReattachOfClient(t *testing.T) {
	t.Parallel()
	withAndWithout(t, zktest.QuirkNoReattach, func(t *testing.T, srv *zktest.Server, quirk bool) {
		link := srv.Client("a")
		c, events := connect(t, link, 10*time.Second)
		first := c.SessionID()
		if _, err := c.Create("/e", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatal(err)
		}
		link.Cut()
		for ev := range events {
			if ev.State == zk.StateHasSession {
				break
			}
		}
		if c.SessionID() == first == quirk {
			t.Errorf("session %#x after %#x", c.SessionID(), first)
		}
		if n, ok := srv.Node("/e"); !ok || n.Stat.EphemeralOwner != first {
			t.Errorf("its ephemeral right after: %+v, %v", n, ok)
		}
		time.Sleep(15 * time.Second)
		if _, ok := srv.Node("/e"); ok == quirk {
			t.Errorf("its ephemeral after a session timeout: %v", ok)
		}
	})
}

// TestQuirkCloseOnStop stops a server on its own and starts it again.
func TestQuirkCloseOnStop(t *testing.T) {
	t.Parallel()
	withAndWithout(t, zktest.QuirkCloseOnStop, func(t *testing.T, srv *zktest.Server, quirk bool) {
		gone, here := memory(t, srv.Client("a")), memory(t, srv.Client("b"))
		must(t, gone, 1, ephemeral("/gone"), 0)
		must(t, here, 1, ephemeral("/here"), 0)
		srv.Client("a").Cut()
		srv.Stop()
		srv.Stop()
		if got := len(srv.Tree()) - 1; got != map[bool]int{true: 1, false: 2}[quirk] {
			t.Errorf("%d ephemerals are left: %v", got, srv.Tree())
		}
		if _, ok := srv.Node("/gone"); !ok {
			t.Error("the session that was not connected has ended")
		}
		srv.Resume()
		back := memoryConn(t, srv.Client("b"))
		if err := back.handshake(0, 30_000, here.session, here.password); (kindOfError(err) == "refused") != quirk {
			t.Errorf("back with the session: %v", err)
		}
	})
}

// TestQuirkCloseOnStopOfMember stops and crashes members, of which one follows and one
// leads.
func TestQuirkCloseOnStopOfMember(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		member int
		stop   func(*zktest.Member)
		ends   bool
	}{
		{"follower stops", 1, (*zktest.Member).Stop, true},
		{"leader stops", 3, (*zktest.Member).Stop, true},
		{"follower crashes", 1, func(m *zktest.Member) { m.Crash(0) }, false},
		{"leader crashes", 3, func(m *zktest.Member) { m.Crash(0) }, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			ensemble(t, func(t *testing.T, e *zktest.Ensemble) {
				mine, other := on(t, e, "a", tc.member), on(t, e, "b", 2)
				must(t, mine, 1, ephemeral("/mine"), 0)
				must(t, other, 1, ephemeral("/other"), 0)
				tc.stop(e.Server(tc.member))
				time.Sleep(5 * time.Second) // an election may be needed, a session would last longer
				if _, ok := e.Server(2).Node("/mine"); ok == tc.ends {
					t.Errorf("the ephemeral of its client is there: %v", ok)
				}
				if _, ok := e.Server(2).Node("/other"); !ok {
					t.Error("the session of another member's client has ended")
				}
			}, zktest.WithQuirks(zktest.QuirkCloseOnStop))
		})
	}
}

func TestQuirkCloseOnUnknown(t *testing.T) {
	t.Parallel()
	withAndWithout(t, zktest.QuirkCloseOnUnknown, func(t *testing.T, srv *zktest.Server, quirk bool) {
		for _, tc := range []struct {
			name      string
			op        int32
			body      []byte
			want      string
			withQuirk string
		}{
			{"unknown type", 77, nil, "-6", "closed"},
			{"in a transaction", 14, transaction(part(1, create("/a")), part(77, nil)), "-5", "closed"},
			{"in a multiRead", 22, transaction(part(77, nil)), "-5", "closed"},
			{"known and malformed", 14, transaction(part(1, nil)), "-5", "-5"},
		} {
			want := tc.want
			if quirk {
				want = tc.withQuirk
			}
			if got := code(t, memory(t, srv.Client("a")), tc.op, tc.body); got != want {
				t.Errorf("%s: %s, want %s", tc.name, got, want)
			}
		}
		if log := srv.Log(); quirk && log[1].Err != zktest.CodeUnimplemented {
			t.Errorf("log %v", log)
		}
	})
}

// TestQuirkAnswerLeaderless asks a member that has lost its leader for a session.
func TestQuirkAnswerLeaderless(t *testing.T) {
	t.Parallel()
	ensemble(t, func(t *testing.T, e *zktest.Ensemble) {
		if turnedAway(t, e, 1) {
			t.Error("turned away by a member with a leader")
		}
		e.Server(2).Stop()
		e.Server(3).Stop()
		c := memoryConn(t, e.Client("a").To(1))
		if err := c.writeFrame(body(int32(0), int64(0), int32(9000), int64(77), nil16(), false)); err != nil {
			t.Fatal(err)
		}
		got, err := c.readFrame()
		if want := body(int32(42), int32(9000), int64(-1), nil16()); err != nil || !bytes.Equal(got, want) {
			t.Errorf("answer %x, %v, want %x", got, err, want)
		}
		if _, err := c.readFrame(); kindOfError(err) != "closed" {
			t.Errorf("behind it: %v", err)
		}
	}, zktest.WithQuirks(zktest.QuirkAnswerLeaderless))
}

func TestQuirkEventOfWatch(t *testing.T) {
	t.Parallel()
	withAndWithout(t, zktest.QuirkEventOfWatch, func(t *testing.T, srv *zktest.Server, quirk bool) {
		c := memory(t, srv.Client("a"))
		must(t, c, 1, create("/a"), 0)
		must(t, c, 106, body("/a", int32(1)), 0)
		want := "created /a/b, changed /a/b"
		if quirk {
			want = "created /a, changed /a"
		}
		_, events, err := c.call(14, transaction(part(1, create("/a/b")), part(5, body("/a/b", []byte{}, int32(-1)))))
		if got := shownEvents("", events); err != nil || got != want {
			t.Errorf("recursive watch: %s, %v, want %s", got, err, want)
		}
		must(t, c, 4, body("/a/b", true), 0)
		_, events, err = c.call(5, body("/a/b", []byte{}, int32(-1)))
		if got := shownEvents("", events); err != nil || got != "changed /a/b" {
			t.Errorf("one-shot watch: %s, %v", got, err)
		}
	})
}

func TestQuirkContainerOwner(t *testing.T) {
	t.Parallel()
	withAndWithout(t, zktest.QuirkContainerOwner, func(t *testing.T, srv *zktest.Server, quirk bool) {
		c := memory(t, srv.Client("a"))
		must(t, c, 1, create("/plain"), 0)
		want := int64(0)
		if quirk {
			want = math.MinInt64
		}
		for _, a := range []answer{
			must(t, c, 19, body("/a", []byte{}, openACL, int32(4)), 0),
			must(t, c, 3, exists("/a"), 0),
			must(t, c, 4, exists("/a"), 0),
			must(t, c, 12, exists("/a"), 0),
			must(t, c, 5, body("/a", []byte{}, int32(-1)), 0),
		} {
			if got := readStat(a.body).owner; got != want {
				t.Errorf("owner %#x, want %#x", got, want)
			}
		}
		if got := readStat(must(t, c, 3, exists("/plain"), 0).body).owner; got != 0 {
			t.Errorf("owner of a plain node %#x", got)
		}
		if n, _ := srv.Node("/a"); n.Stat.EphemeralOwner != want || !n.Container {
			t.Errorf("node %+v", n)
		}
	})
}

func TestQuirkKeeperNodes(t *testing.T) {
	t.Parallel()
	withAndWithout(t, zktest.QuirkKeeperNodes, func(t *testing.T, srv *zktest.Server, quirk bool) {
		c := memory(t, srv.Client("a"))
		if !quirk {
			must(t, c, 4, exists("/keeper/api_version"), -101)
			must(t, c, 1, create("/keeper"), 0) // a name like any other
			return
		}
		for path, want := range map[string]string{"/keeper/api_version": "3", "/keeper/feature_flags": "\x40"} {
			d := dec{b: must(t, c, 4, exists(path), 0).body}
			if got := d.text(); got != want {
				t.Errorf("%s holds %q, want %q", path, got, want)
			}
			must(t, c, 5, body(path, []byte{}, int32(-1)), -8)
			must(t, c, 2, body(path, int32(-1)), -8)
		}
		must(t, c, 1, create("/keeper/mine"), -8)
		must(t, c, 4, exists("/zookeeper/config"), -101)
		d := dec{b: must(t, c, 8, exists("/"), 0).body}
		if got := d.strings(); len(got) != 1 || got[0] != "keeper" {
			t.Errorf("the root has %q", got)
		}
		if n := len(srv.Tree()); n != 1 {
			t.Errorf("%d nodes are not the system's: %v", n, srv.Tree())
		}
	})
}
