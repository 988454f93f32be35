package client_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/zktest"
)

// tracking is a client that follows the configuration, and what it says and dials.
type tracking struct {
	*client.Client
	dials dialLog
	log   bytes.Buffer
}

func (r crew) tracking(connectString string, opts ...client.Option) *tracking {
	r.Helper()
	t := &tracking{}
	link := r.e.Client("a")
	t.dials.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		return link.DialContext(ctx, network, strings.TrimPrefix(address, "proxy-"))
	}
	opts = append([]client.Option{
		client.WithSessionTimeout(testrig.SessionTimeout), t.dials.option(), client.WithEnsembleTracker(),
		client.WithLogger(slog.New(slog.NewTextHandler(&t.log, nil))),
	}, opts...)
	c, err := client.Connect(r.Ctx, connectString, opts...)
	r.Check(err)
	t.Client = c
	time.Sleep(time.Second)
	r.Cleanup(func() { _ = c.Close() })
	return t
}

// configure sets the configuration as a reconfig does.
func (r crew) configure(lines ...string) {
	r.Helper()
	lead, err := r.e.AwaitLeader(r.Ctx)
	r.Check(err)
	r.Check(lead.SetData("/zookeeper/config", []byte(strings.Join(lines, "\n"))))
	time.Sleep(time.Second)
}

const (
	memberOne   = "server.1=zk1:2888:3888:participant;0.0.0.0:2181"
	memberTwo   = "server.2=zk2:2888:3888:participant;0.0.0.0:2181"
	memberThree = "server.3=zk3:2888:3888:participant;0.0.0.0:2181"
)

// said is how often a text is in the log.
func (t *tracking) said(text string) int {
	synctest.Wait()
	return strings.Count(t.log.String(), text)
}

// A client learns of the members that it was not told of, and leaves one that is
// removed.
func TestEnsembleTracker(t *testing.T) {
	t.Parallel()
	ensemble(t, func(r crew) {
		r.configure(memberOne, memberTwo, memberThree, "version=100000000")
		c := r.tracking("zk1")
		h := r.hold(c.Client, "/held")
		time.Sleep(time.Minute)
		if got := c.dials.take(); !slices.Equal(got, []string{"zk1:2181"}) {
			t.Errorf("dialed %v", got)
		}
		r.configure(memberTwo, memberThree, "version=200000000")
		time.Sleep(testrig.SessionTimeout/3 + 100*time.Millisecond)
		if got := c.dials.take(); len(got) != 1 || got[0] == "zk1:2181" {
			t.Errorf("dialed %v, and the server was removed", got)
		}
		if c.State() != client.Connected || h.Err() != nil {
			t.Errorf("state %v, hold %v", c.State(), h.Err())
		}
		r.configure(memberOne, memberTwo, memberThree, "version=100000000") // of a server that lags
		if n := c.said("has changed the servers"); n != 2 || c.said("WARN") != 0 {
			t.Errorf("%d changes: %s", n, c.log.String())
		}
		// All that are configured are away: the server of the connect string is tried.
		r.e.Client("a").To(2).Refuse()
		r.e.Client("a").To(3).Refuse()
		r.e.Client("a").Cut()
		time.Sleep(testrig.SessionTimeout)
		got := c.dials.take()
		if c.State() != client.Connected || got[len(got)-1] != "zk1:2181" || got[0] == "zk1:2181" {
			t.Errorf("%v, dialed %v", c.State(), got)
		}
		// The configured servers come first again, whichever server was lost.
		r.e.Client("a").Accept()
		for range 6 {
			time.Sleep(time.Minute)
			r.e.Client("a").Cut()
		}
		time.Sleep(time.Second)
		if got := c.dials.take(); len(got) != 6 || slices.Contains(got, "zk1:2181") {
			t.Errorf("dialed %v", got)
		}
	})
}

// A client whose server has another address than the configuration stays where it is,
// and so does one that cannot reach what is configured.
func TestEnsembleTrackerAlias(t *testing.T) {
	t.Parallel()
	ensemble(t, func(r crew) {
		c := r.tracking("proxy-zk1")
		r.configure("server.1=inside1:2888:3888:participant;0.0.0.0:2181", "version=200000001")
		r.configure("server.2=inside2:2888:3888:participant;0.0.0.0:2181", "version=200000002")
		time.Sleep(time.Minute)
		if got := c.dials.take(); !slices.Equal(got, []string{"proxy-zk1:2181"}) {
			t.Errorf("dialed %v", got)
		}
		r.e.Client("a").Cut()
		time.Sleep(testrig.SessionTimeout)
		if got := c.dials.take(); c.State() != client.Connected || got[len(got)-1] != "proxy-zk1:2181" {
			t.Errorf("%v, dialed %v", c.State(), got)
		}
	})
}

// What is of no use is said once, and the list stays; it is looked at again when it
// changes.
func TestEnsembleTrackerNoUse(t *testing.T) {
	t.Parallel()
	ensemble(t, func(r crew) {
		c := r.tracking("zk1")
		r.configure("version=200000000")
		r.configure("server.1=zk1:2888:3888:participant;0.0.0.0:2181", "server.2=zk2:2888:3888:participant", "version=200000000")
		r.configure("server.1=zk1:2888:3888:participant;0.0.0.0:2181", "server.2=zk2:2888:3888:participant", "version=200000000")
		if n := c.said("server 2: it has no client address"); n != 1 || c.said("names no server") != 1 {
			t.Errorf("%d warnings: %s", n, c.log.String())
		}
		r.configure(memberTwo, memberThree, "version=200000001")
		time.Sleep(testrig.SessionTimeout) // the client leaves the first one
		if got := c.dials.take(); len(got) != 2 || got[1] == "zk1:2181" {
			t.Errorf("dialed %v", got)
		}
	})
}

// A server without the node, and one that does not let it be read, cost a warning
// each and no more.
func TestEnsembleTrackerRefused(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]zktest.Option{
		"Keeper": {zktest.WithProfile(zktest.ClickHouseKeeper)},
		"NoAuth": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				if opts == nil {
					r.Srv.Fail(zktest.Match{Op: zktest.OpGetData, Path: "/zookeeper/config", Times: zktest.Always}, zktest.CodeNoAuth)
				}
				var asked atomic.Int64
				r.Srv.OnRequest(func(q zktest.Request) {
					if q.Op == zktest.OpGetData && q.Path == "/zookeeper/config" {
						asked.Add(1)
					}
				})
				var log bytes.Buffer
				c := r.Connect("a", client.WithEnsembleTracker(), client.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
				for range 3 {
					time.Sleep(time.Minute)
					r.Srv.CutAll()
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				if n := strings.Count(log.String(), "is of no use"); n != 1 || c.State() != client.Connected {
					t.Errorf("%d warnings, %v: %s", n, c.State(), log.String())
				}
				if n := asked.Load(); n != 4 {
					t.Errorf("asked %d times, connected 4 times", n)
				}
				r.Check(c.CloseContext(r.Ctx))
				wantQuiet(t)
			}, opts...)
		})
	}
}

// The configuration has no ports of TLS.
func TestEnsembleTrackerWithTLS(t *testing.T) {
	t.Parallel()
	_, err := client.Connect(t.Context(), "zk", client.WithEnsembleTracker(), client.WithTLS(&tls.Config{MinVersion: tls.VersionTLS12}))
	wantErrText(t, err, "pass new servers to Client.SetServers", "connect:")
}
