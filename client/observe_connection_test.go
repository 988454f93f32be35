package client_test

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/zktest"
)

// notices are what a hook was told, in order.
type notices[T any] struct {
	mu  sync.Mutex
	all []T
}

func (n *notices[T]) add(info T) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, info)
}

// take returns what was told so far, and forgets it.
func (n *notices[T]) take() []T {
	synctest.Wait()
	n.mu.Lock()
	defer n.mu.Unlock()
	all := n.all
	n.all = nil
	return all
}

// A heartbeat tells how long it took and how much time holds have left, and one
// that is not answered why.
func TestHeartbeatHook(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		var told notices[client.HeartbeatInfo]
		c := r.Connect("a", client.WithObserver(client.Observer{Heartbeat: told.add}))
		time.Sleep(time.Minute)
		if got := told.take(); len(got) != 0 {
			t.Errorf("%d heartbeats while nothing was held", len(got))
		}
		h := r.hold(c, "/a")
		time.Sleep(10 * time.Second)
		got := told.take()
		if len(got) < 4 {
			t.Fatalf("%d heartbeats in 10 s of a session of %v", len(got), testrig.SessionTimeout)
		}
		for _, b := range got {
			if b.Session != h.s.ID() || b.Nodes != 1 || b.Err != nil || b.Begun.Before(h.at) ||
				b.Duration <= 0 || b.Duration > 10*time.Millisecond || b.Left < testrig.SessionTimeout/2 || b.Left > b.Full || b.Full > testrig.SessionTimeout {
				t.Errorf("heartbeat: %+v", b)
			}
		}
		r.Srv.Partition()
		why := r.loss(h)
		testrig.WantErr(t, why, client.ErrLeaseExpired)
		got = told.take()
		if len(got) == 0 || !slices.ContainsFunc(got, func(b client.HeartbeatInfo) bool { return b.Err != nil && b.Duration > time.Second }) {
			t.Errorf("heartbeats that were not answered: %+v", got)
		}
		r.Srv.Heal()
	})
}

// A dial tells of the server, of the handshake and of the session that came of it.
func TestDialHook(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		var told notices[client.DialInfo]
		c := r.Connect("a", client.WithObserver(client.Observer{Dial: told.add}))
		id := r.Session(c).ID()
		got := told.take()
		if len(got) != 1 || got[0].Server != "zk:2181" || got[0].Session != id || got[0].Restored || got[0].Err != nil ||
			got[0].Handshake <= 0 || got[0].Duration != got[0].Transport+got[0].TLS+got[0].Handshake {
			t.Errorf("the first dial: %+v", got)
		}
		r.Srv.CutAll()
		time.Sleep(time.Second)
		if got := told.take(); len(got) != 1 || got[0].Session != id || !got[0].Restored || got[0].Err != nil {
			t.Errorf("a dial after a cut: %+v", got)
		}
		r.Srv.HangHandshake()
		r.Srv.CutAll()
		time.Sleep(5 * time.Second)
		got = told.take()
		if len(got) == 0 || got[0].Err == nil || got[0].Session != 0 || got[0].Handshake != 0 || got[0].Duration < time.Second {
			t.Errorf("dials that were not answered: %+v", got)
		}
		r.Srv.Refuse()
		time.Sleep(time.Second)
		r.Srv.CutAll() // every connection that was let in
		time.Sleep(4 * time.Second)
		got = told.take()
		if last := len(got) - 1; last < 0 || got[last].Err == nil || got[last].Transport != 0 || got[last].Session != 0 {
			t.Errorf("dials that were refused: %+v", got)
		}
		time.Sleep(time.Minute) // the session is over
		told.take()
		r.Srv.Accept()
		time.Sleep(10 * time.Second)
		got = told.take()
		if last := len(got) - 1; last < 0 || got[last].Session != r.Session(c).ID() || got[last].Session == id || got[last].Restored {
			t.Errorf("dials for the next session: %+v", got)
		}
	})
}

// A session that a server refuses is the end of a dial as well.
func TestDialHookOfARefusedSession(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		var told notices[client.DialInfo]
		c := r.Connect("a", client.WithObserver(client.Observer{Dial: told.add}))
		told.take()
		old := r.Session(c).ID()
		r.Srv.Client("a").Freeze()
		r.Srv.ExpireSession(old)
		r.Srv.Client("a").Thaw()
		time.Sleep(10 * time.Second)
		var got []string
		for _, d := range told.take() {
			got = append(got, fmt.Sprint(d.Session == 0, d.Err != nil))
		}
		if want := []string{"true true", "false false"}; !slices.Equal(got, want) {
			t.Errorf("dials, without a session and failed: %v, want %v", got, want)
		}
	})
}

func TestDialHookTLS(t *testing.T) {
	t.Parallel()
	srv := zktest.NewServer(t)
	port, trust := relayTLS(t, srv, "localhost")
	var told notices[client.DialInfo]
	c, err := client.Connect(t.Context(), "localhost:"+port, client.WithTLS(&tls.Config{RootCAs: trust}), testrig.Quiet(),
		client.WithObserver(client.Observer{Dial: told.add}))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil { // it waits for the hook
		t.Error(err)
	}
	d := told.all[len(told.all)-1]
	if d.Err != nil || d.Transport <= 0 || d.TLS <= 0 || d.Handshake <= 0 || d.Duration != d.Transport+d.TLS+d.Handshake {
		t.Errorf("a dial with TLS: %+v", d)
	}
}

// Hooks that never return cost no holder its lock. They do not keep a holder from
// hearing of a loss in time.
func TestHooksThatBlock(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		never := make(chan struct{})
		defer close(never)
		c := r.Connect("a", client.WithObserver(client.Observer{
			StateChange: func(client.StateChange) { <-never },
			Heartbeat:   func(client.HeartbeatInfo) { <-never },
			Dial:        func(client.DialInfo) { <-never },
			Removal:     func(client.RemovalInfo) { <-never },
		}))
		h := r.hold(c, "/a")
		r.create("/unwanted", "")
		r.Check(inner.DeleteInBackground(h.s, "/unwanted", nil))
		for range 10 {
			time.Sleep(testrig.SessionTimeout)
			r.Srv.CutAll()
			time.Sleep(time.Second)
			r.Check(h.Err())
		}
		if _, there := r.Srv.Node("/unwanted"); there {
			t.Error("what was to be removed is there")
		}
		deadline := h.Deadline()
		r.Srv.Partition()
		testrig.WantErr(t, r.loss(h), client.ErrLeaseExpired)
		if late := time.Until(deadline); late < 500*time.Millisecond {
			t.Errorf("the holder heard of the loss %v before the deadline", late)
		}
		r.Srv.Heal()
		begun := time.Now()
		r.Check(c.CloseContext(r.Ctx))
		if took := time.Since(begun); took > time.Second {
			t.Errorf("Close took %v", took)
		}
	})
}

// Behind a hook that does not return some calls wait, the others are dropped, and
// the log says so once.
func TestHookCallsAreDropped(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		never := make(chan struct{})
		open := sync.OnceFunc(func() { close(never) })
		defer open()
		var log bytes.Buffer
		var told notices[client.RemovalInfo]
		c := r.Connect("a", client.WithLogger(slog.New(slog.NewTextHandler(&log, nil))),
			client.WithObserver(client.Observer{Removal: func(i client.RemovalInfo) { <-never; told.add(i) }}))
		s := r.Session(c)
		for i := range 2000 {
			r.Check(inner.DeleteInBackground(s, fmt.Sprintf("/n%d", i), nil))
		}
		time.Sleep(time.Minute)
		open()
		if got := len(told.take()); got < 1000 || got > 1001 {
			t.Errorf("%d calls were kept", got)
		}
		if got := strings.Count(log.String(), "a hook of the Observer does not return"); got != 1 {
			t.Errorf("the log says so %d times", got)
		}
	})
}
