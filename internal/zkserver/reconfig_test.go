package zkserver_test

import (
	"fmt"
	"testing"

	"github.com/docent-go/docent/zktest"
)

const configPath = "/zookeeper/config"

// superUser is the digest of super:pw.
func superUser() zktest.Option { return zktest.WithSuperDigest("super:" + digestOf("super:pw")) }

func reconfig(joining, leaving, members any, from int64) []byte {
	return body(joining, leaving, members, from)
}

// line is a member of an ensemble in its configuration.
func line(id int) string {
	return fmt.Sprintf("server.%d=zk%d:2888:3888:participant;zk%d:2181\n", id, id, id)
}

// TestReconfig sends what the probe of a real ensemble sent, and some more.
func TestReconfig(t *testing.T) {
	t.Parallel()
	ensemble(t, func(t *testing.T, e *zktest.Ensemble) {
		c := memory(t, e.Server(1).Client("a"))
		config := func(c *raw) string {
			a := must(t, c, 4, exists(configPath), 0)
			return (&dec{b: a.body}).text()
		}
		if got, want := config(c), line(1)+line(2)+line(3)+"version=100000000"; got != want {
			t.Errorf("at first %q, want %q", got, want)
		}
		must(t, c, 16, reconfig(null{}, null{}, null{}, -1), -102)
		must(t, c, 100, body(int32(0), "digest", []byte("super:pw")), 0)
		must(t, c, 4, body(configPath, true), 0)
		seen := 0
		for _, tc := range []struct {
			joining, leaving, members any
			from                      int64
			code                      int32
			want                      string // without the version
		}{
			{"", "", "", -1, -5, ""},
			{null{}, null{}, null{}, -1, 0, line(1) + line(2) + line(3)},
			{null{}, "2", null{}, -1, 0, line(1) + line(3)},
			{null{}, "3", null{}, -1, -8, ""}, // one voter is none
			{null{}, "7", null{}, -1, 0, line(1) + line(3)},
			{null{}, "two", null{}, -1, -5, ""},
			{"server.2=zk2:2888:3888;zk2:2181", null{}, null{}, 1, -103, ""},
			{"server.2=zk2:2888:3888;zk2:2181", null{}, null{}, -1, 0, line(1) + line(2) + line(3)},
			{
				"server.2=zk2:2888:3888:participant;2181,server.4=zk4:1:2:observer;3",
				null{},
				null{},
				-1, 0,
				line(1) + "server.2=zk2:2888:3888:participant;0.0.0.0:2181\n" + line(3) + "server.4=zk4:1:2:observer;0.0.0.0:3\n",
			},
			{line(2)[:len(line(2))-1], "4", null{}, -1, 0, line(1) + line(2) + line(3)},
			{"hello", null{}, null{}, -1, -8, ""},
			{"server.5=zk5:1:2", null{}, null{}, -1, -8, ""}, // no client port
			{"server.5=zk5:1:1;3", null{}, null{}, -1, -8, ""},
			{"server.5=zk5:1:2:king;3", null{}, null{}, -1, -8, ""},
			{"server.2=zk2:2888:3888;2181", null{}, "server.1=x", -1, -8, ""},
			{null{}, null{}, "server.4=zk4:1:2;3,server.5=zk5:1:2;3,server.1=zk1:1:2", -1, -13, ""}, // two of three do not run
			{
				null{},
				null{},
				"server.2=zk2:1:2\nserver.1=zk1:1:2\nversion=7", -1, 0,
				"server.1=zk1:1:2:participant\nserver.2=zk2:1:2:participant\n",
			},
			{null{}, null{}, line(1) + line(2) + line(3), -1, 0, line(1) + line(2) + line(3)},
		} {
			a, events, err := c.call(16, reconfig(tc.joining, tc.leaving, tc.members, tc.from))
			if err != nil || a.err != tc.code {
				t.Errorf("reconfig %+v: code %d, %v", tc, a.err, err)
				continue
			}
			if a.err != 0 {
				continue
			}
			d := dec{b: a.body}
			want := fmt.Sprintf("%sversion=%x", tc.want, a.zxid)
			if got := d.text(); got != want || config(c) != want {
				t.Errorf("reconfig %+v:\n answers %q\n node    %q\n want    %q", tc, got, config(c), want)
			}
			st := readStat(a.body)
			if st.czxid != 0 || st.mzxid != a.zxid || st.version != -1 || st.cversion != 0 || st.aversion != -1 || st.pzxid != 0 {
				t.Errorf("stat %+v", st)
			}
			seen += len(events)
		}
		if seen != 1 {
			t.Errorf("%d events for one watch", seen)
		}
		d := memory(t, e.Server(2).Client("b"))
		must(t, d, 9, body("/"), 0)
		if config(d) != config(c) {
			t.Errorf("another member has %q", config(d))
		}
		// The super user may write anything into the node; the next reconfig mends it.
		must(t, c, 5, body(configPath, []byte("x"), int32(-1)), 0)
		if got := config(c); got != "x" {
			t.Errorf("written: %q", got)
		}
		a := must(t, c, 16, reconfig(null{}, null{}, null{}, -1), 0)
		if got, want := config(c), fmt.Sprintf("%sversion=%x", line(1)+line(2)+line(3), a.zxid); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}, zktest.WithReconfig(), superUser())
}

// TestReconfigRefused is about servers that cannot change a configuration.
func TestReconfigRefused(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		must(t, memory(t, srv.Client("a")), 16, reconfig(null{}, "2", null{}, -1), -6)
	}, zktest.WithReconfig())
	ensemble(t, func(t *testing.T, e *zktest.Ensemble) {
		must(t, memory(t, e.Server(1).Client("a")), 16, reconfig(null{}, "2", null{}, -1), -123)
	})
}
