package client_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/zktest"
)

// The session is lost one timeout after the send time of the newest answered
// request: not after its answer, and not after a later request.
func TestLeaseRunsFromTheSendTime(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.create("/a", "")
		c := r.Connect("a")
		s := r.Session(c)
		time.Sleep(time.Second)
		const slow = 2 * time.Second
		r.Srv.DelayReply(zktest.Match{Op: zktest.OpGetData, Times: 1}, slow)
		sent := time.Now()
		_, _, err := s.Get(r.Ctx, "/a")
		r.Check(err)
		if took := time.Since(sent); took < slow {
			r.Fatalf("the answer took %v", took)
		}
		r.Srv.Freeze()
		ctx, cancel := context.WithTimeout(r.Ctx, time.Second)
		defer cancel()
		_, _, _ = s.Get(ctx, "/a") // sent, never answered: no evidence
		<-s.Context().Done()
		if got := time.Since(sent); got != testrig.SessionTimeout {
			t.Errorf("lost %v after the send time of the last answered request, want %v", got, testrig.SessionTimeout)
		}
		testrig.WantErr(t, s.Err(), client.ErrSessionLost)
		if c.State() == client.Connected {
			t.Error("state Connected")
		}
		r.Srv.Thaw()
	})
}

// Silence in either direction, and in both, ends the session on this side
// within its timeout, before any other client can see its nodes go.
func TestLeaseInSilence(t *testing.T) {
	t.Parallel()
	for name, silence := range map[string]func(*zktest.ClientLink){
		"both":    (*zktest.ClientLink).Freeze,
		"replies": (*zktest.ClientLink).PartitionReplies,
		"dials":   (*zktest.ClientLink).Partition,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				c := r.Connect("a", client.WithConnectTimeout(time.Hour))
				s := r.Session(c)
				_, err := c.Create(r.Ctx, "/e", nil, client.Ephemeral())
				r.Check(err)
				time.Sleep(17 * time.Second)
				link := r.Srv.Client("a")
				began := time.Now()
				silence(link)
				if name == "replies" {
					// Dials would bring fresh connections with replies.
					link.Refuse()
				}
				<-s.Context().Done()
				if took := time.Since(began); took > testrig.SessionTimeout || took < testrig.SessionTimeout/2 {
					t.Errorf("lost after %v", took)
				}
				if _, there := r.Srv.Node("/e"); !there {
					t.Error("the node went before the owner was told")
				}
				link.Heal()
				link.Thaw()
				link.Accept()
				next := r.Session(c)
				synctest.Wait()
				if next.ID() == s.ID() {
					t.Error("a lost session came back")
				}
				r.oldSessionGone(c, s)
			})
		})
	}
}

// oldSessionGone checks that a session that was given up is closed on the
// server as soon as that is reachable, not when it expires.
func (r *rig) oldSessionGone(c *client.Client, old *client.Session) {
	r.Helper()
	time.Sleep(time.Second / 2)
	for _, s := range r.Srv.Sessions() {
		if s.ID == old.ID() {
			r.Errorf("the lost session is still on the server: %+v", s)
		}
	}
	if n := client.DeadSessions(c); n != 0 {
		r.Errorf("%d dead sessions remembered", n)
	}
}

// The old session is ended by its owner, not by its timeout: no client waits for
// its nodes.
func TestLostSessionIsClosedOnTheServer(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		s := r.Session(c)
		_, err := c.Create(r.Ctx, "/e", nil, client.Ephemeral())
		r.Check(err)
		time.Sleep(time.Second)
		// Requests keep arriving, so the server would keep the session.
		r.Srv.Client("a").PartitionReplies()
		<-s.Context().Done()
		if n := len(r.Srv.Sessions()); n != 1 || r.Srv.ExpiredCount() != 0 {
			r.Fatalf("%d sessions on the server, %d expired: nothing to show", n, r.Srv.ExpiredCount())
		}
		r.Srv.Client("a").Heal()
		_, err = c.Session(r.Ctx)
		r.Check(err)
		r.oldSessionGone(c, s)
		if r.Srv.ExpiredCount() != 0 {
			t.Error("it expired by itself")
		}
		if _, there := r.Srv.Node("/e"); there {
			t.Error("its node is still there")
		}
	})
}

// Pings keep an idle session for ever.
func TestIdleSessionLives(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		s := r.Session(c)
		time.Sleep(10 * time.Minute)
		if s.Err() != nil || r.Session(c).ID() != s.ID() {
			t.Errorf("idle: %v", s.Err())
		}
	})
}

// A logger that hangs cannot make a session look alive that is not, nor keep
// its context from ending.
func TestLeaseWithAHangingLogger(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		h := hangingHandler{hang: make(chan struct{})}
		c := r.Connect("a", client.WithLogger(slog.New(h)))
		s := r.Session(c)
		r.Srv.Client("a").Freeze()
		time.Sleep(testrig.SessionTimeout + time.Second)
		synctest.Wait()
		if s.Err() == nil {
			t.Error("Err is nil after the lease")
		}
		if s.Context().Err() == nil {
			t.Error("the context lives on after the lease")
		}
		close(h.hang)
		r.Srv.Client("a").Thaw()
	})
}

// hangingHandler hangs at warnings.
type hangingHandler struct{ hang chan struct{} }

func (h hangingHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h hangingHandler) Handle(_ context.Context, rec slog.Record) error {
	if rec.Level >= slog.LevelWarn && rec.Message == "zookeeper: no connection" {
		<-h.hang
	}
	return nil
}

func (h hangingHandler) WithAttrs([]slog.Attr) slog.Handler { return h }
func (h hangingHandler) WithGroup(string) slog.Handler      { return h }
