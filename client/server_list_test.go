package client_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
)

// dialLog is a dialer that notes which servers it dials, and when a dial must be
// over.
type dialLog struct {
	dial func(context.Context, string, string) (net.Conn, error)

	mu    sync.Mutex
	addrs []string
	limit time.Duration
}

func (d *dialLog) option() client.Option {
	return client.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
		end, _ := ctx.Deadline()
		d.mu.Lock()
		d.addrs = append(d.addrs, address)
		d.limit = time.Until(end)
		d.mu.Unlock()
		return d.dial(ctx, network, address)
	})
}

func (d *dialLog) take() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := d.addrs
	d.addrs = nil
	return all
}

// last is how much time the newest dial was given.
func (d *dialLog) last() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.limit
}

// A client leaves a server that is not in the new list, with its session and what it
// holds, and stays on one that is.
func TestSetServersMoves(t *testing.T) {
	t.Parallel()
	ensemble(t, func(r crew) {
		d := &dialLog{dial: r.e.Client("a").DialContext}
		c, err := client.Connect(r.Ctx, "zk1", testrig.Quiet(), d.option(), client.WithSessionTimeout(testrig.SessionTimeout))
		r.Check(err)
		defer func() { _ = c.Close() }()
		h := r.hold(c, "/held")
		time.Sleep(time.Minute)
		if got := d.take(); !slices.Equal(got, []string{"zk1:2181"}) {
			t.Errorf("dialed %v", got)
		}
		r.Check(c.SetServers("zk2", "zk1:2181", "zk3:2181", "zk2:2181"))
		time.Sleep(time.Minute)
		if got := d.take(); len(got) != 0 {
			t.Errorf("dialed %v, and was connected to a server of the list", got)
		}
		if got := c.Servers(); !slices.Equal(got, []string{"zk1:2181"}) {
			t.Errorf("Servers: %v", got)
		}
		r.Check(c.SetServers("zk2", "zk3"))
		time.Sleep(testrig.SessionTimeout/3 + 100*time.Millisecond)
		if got := d.take(); len(got) != 1 || got[0] == "zk1:2181" || r.e.Server(1).ConnCount() != 0 {
			t.Errorf("dialed %v", got)
		}
		if c.State() != client.Connected || h.Err() != nil {
			t.Errorf("state %v, hold %v", c.State(), h.Err())
		}
		time.Sleep(time.Minute)
		r.e.Server(2).Stop()
		r.e.Client("a").Cut()
		time.Sleep(time.Minute)
		if got := d.take(); slices.Contains(got, "zk1:2181") || c.State() != client.Connected {
			t.Errorf("dialed %v, %v", got, c.State())
		}
	})
}

// Many clients that must leave a server do not do so at once.
func TestSetServersPaced(t *testing.T) {
	t.Parallel()
	ensemble(t, func(r crew) {
		const crowd = 40
		var clients [crowd]*client.Client
		for i := range clients {
			clients[i] = r.join(fmt.Sprint(i))
		}
		time.Sleep(time.Minute)
		for _, c := range clients {
			r.Check(c.SetServers("zk3"))
		}
		others := func() int { return r.e.Server(1).ConnCount() + r.e.Server(2).ConnCount() }
		begun := others()
		time.Sleep(testrig.SessionTimeout / 6)
		if n := others(); n == 0 || n == begun || begun == 0 {
			t.Errorf("%d of %d are left after half of the time (seed %d)", n, begun, r.e.Seed())
		}
		time.Sleep(testrig.SessionTimeout/6 + time.Second)
		if n := others(); n != 0 {
			t.Errorf("%d of %d are left", n, begun)
		}
		for i, c := range clients {
			if c.State() != client.Connected {
				t.Errorf("client %d: %v", i, c.State())
			}
		}
	})
}

// If a list is set while no server is reached, the next dial goes by it. How long
// that dial may take follows from the list. Errors name the new servers only.
func TestSetServersWhileAway(t *testing.T) {
	t.Parallel()
	ensemble(t, func(r crew) {
		d := &dialLog{dial: r.e.Client("a").DialContext}
		c, err := client.Connect(r.Ctx, "gone", testrig.Quiet(), d.option(), client.WithSessionTimeout(testrig.SessionTimeout), client.WithLazyConnect())
		r.Check(err)
		defer func() { _ = c.Close() }()
		time.Sleep(time.Minute)
		if got := d.last(); got != testrig.SessionTimeout/3 {
			t.Errorf("one server: a dial has %v", got)
		}
		r.Check(c.SetServers("a", "b", "c", "d", "e", "f", "g", "h", "i"))
		time.Sleep(time.Minute)
		if got := d.last(); got != testrig.SessionTimeout/10 {
			t.Errorf("nine servers: a dial has %v", got)
		}
		_, _, err = c.Get(r.Within(time.Second), "/")
		wantErrText(t, err, "i:2181: ", "gone:2181")
		d.take()
		r.Check(c.SetServers("zk1", "zk2", "zk3"))
		_, _, err = c.Exists(r.Within(testrig.SessionTimeout), "/")
		r.Check(err)
		if got := d.take(); len(got) == 0 || !strings.HasPrefix(got[len(got)-1], "zk") {
			t.Errorf("dialed %v", got)
		}
	})
}

// The list changes between the choice of a server and its answer.
func TestSetServersDuringHandshake(t *testing.T) {
	t.Parallel()
	ensemble(t, func(r crew) {
		var c *client.Client
		d := &dialLog{}
		d.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			if strings.HasPrefix(address, "zk1") {
				time.Sleep(time.Second)
			}
			return r.e.Client("a").DialContext(ctx, network, address)
		}
		c, err := client.Connect(r.Ctx, "zk1", testrig.Quiet(), d.option(), client.WithSessionTimeout(testrig.SessionTimeout), client.WithLazyConnect())
		r.Check(err)
		defer func() { _ = c.Close() }()
		synctest.Wait()
		r.Check(c.SetServers("zk2"))
		time.Sleep(testrig.SessionTimeout)
		if r.e.Server(1).ConnCount() != 0 || r.e.Server(2).ConnCount() != 1 {
			t.Errorf("dialed %v, and stayed", d.take())
		}
	})
}

// What is wrong is said, and the list stays.
func TestSetServersRefused(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		for _, tt := range []struct {
			servers []string
			want    string
		}{
			{nil, "the list is empty; the servers stay"},
			{[]string{"a", ""}, "server 2: the host is missing"},
			{[]string{"a:1/app"}, "server 1: the port"},
			{[]string{"a,b:1"}, "server 1: servers are separate arguments"},
			{[]string{"user:hunter2@a:1"}, "server 1: a host has no blanks and no user name"},
		} {
			wantErrText(t, c.SetServers(tt.servers...), tt.want, "hunter2")
		}
		time.Sleep(time.Minute)
		if r.Srv.ConnCount() != 1 || c.State() != client.Connected {
			t.Error("moved")
		}
		r.Check(c.CloseContext(r.Ctx))
		testrig.WantErr(t, c.SetServers("b"), client.ErrClosed)
	})
}
