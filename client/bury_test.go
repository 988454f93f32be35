package client_test

import (
	"bytes"
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/zktest"
)

// owner is what the servers with a quorum know of the ephemeral node at path.
func (r crew) owner(path string) int64 {
	r.Helper()
	lead, err := r.e.AwaitLeader(r.Ctx)
	r.Check(err)
	n, _ := lead.Node(path)
	return n.Stat.EphemeralOwner
}

// depose has the members other than old elect another leader at once, while old
// believes that it leads. It returns old's ticks of grace before it notices.
func (r crew) depose(old *zktest.Member) {
	r.e.Isolate(old.ID())
	for i := range r.e.Size() {
		if m := r.e.Server(i + 1); m != old {
			m.Stop()
			m.Resume()
		}
	}
}

// A leader that was deposed refuses a session that lives on under the next
// leader. The client held nothing in it and only waits in a line. As soon as the
// client has another session it ends the refused one, so that the old node is in
// no other client's way.
func TestSessionRefusedByADeposedLeader(t *testing.T) {
	t.Parallel()
	const timeout = 4 * time.Second
	ensemble(t, func(r crew) {
		old, err := r.e.AwaitLeader(r.Ctx)
		r.Check(err)
		link := r.e.Client("a")
		others := func(do func(*zktest.ClientLink)) {
			for i := range r.e.Size() {
				if i+1 != old.ID() {
					do(link.To(i + 1))
				}
			}
		}
		link.To(old.ID()).Refuse()
		c := r.join("a", client.WithSessionTimeout(timeout))
		s := r.Session(c)
		_, err = s.Create(r.Ctx, "/waiting", nil, client.Ephemeral())
		r.Check(err)
		time.Sleep(time.Minute)

		r.depose(old)
		time.Sleep(timeout + 3*time.Second) // old has heard nothing of the session
		if s.Err() != nil || old.Role().String() != "leading" {
			t.Fatalf("session: %v; the old leader is %v", s.Err(), old.Role())
		}
		others((*zktest.ClientLink).Refuse)
		link.To(old.ID()).Accept()
		link.Cut()
		r.await("refusal", s.Context().Done())
		wantErrText(t, s.Err(), "refused", "answered")
		if r.owner("/waiting") != s.ID() {
			t.Fatal("the session has ended everywhere: nothing to show")
		}
		others((*zktest.ClientLink).Accept)
		next := r.Session(c)
		time.Sleep(time.Second)
		if r.owner("/waiting") != 0 {
			t.Error("the node is in the way a second after its owner has another session")
		}
		if next.Err() != nil {
			t.Errorf("the next session: %v", next.Err())
		}
	}, zktest.WithTick(2*time.Second), zktest.WithSessionTimeouts(time.Second, time.Minute))
}

// A lost session is ended where its owner has found a server, not where another
// one may be.
func TestLostSessionIsEndedWhereTheOwnerIs(t *testing.T) {
	t.Parallel()
	ensemble(t, func(r crew) {
		link := r.e.Client("a")
		c := r.join("a")
		s := r.Session(c)
		_, err := s.Create(r.Ctx, "/waiting", nil, client.Ephemeral())
		r.Check(err)
		link.PartitionReplies() // requests arrive, so the servers keep the session
		r.await("the end of the lease", s.Context().Done())
		if r.owner("/waiting") != s.ID() {
			t.Fatal("the session has ended everywhere: nothing to show")
		}
		link.Partition()
		link.To(1).Heal()
		r.Session(c)
		time.Sleep(time.Second)
		if r.owner("/waiting") != 0 {
			t.Error("the node is in the way a second after its owner has another session")
		}
	}, zktest.WithSessionTimeouts(time.Second, time.Minute))
}

// So it is if the servers have one name: at the address at which its owner has found one.
func TestLostSessionIsEndedAtTheAddressOfTheOwner(t *testing.T) {
	t.Parallel()
	ensemble(t, func(r crew) {
		n := &names{crew: r, hosts: map[string][]string{"zk.test": {"127.0.0.1", "127.0.0.2", "127.0.0.3"}}}
		link := r.e.Client("a")
		c, err := n.open("a", "zk.test")
		r.Check(err)
		s := r.Session(c)
		_, err = s.Create(r.Ctx, "/waiting", nil, client.Ephemeral())
		r.Check(err)
		link.PartitionReplies() // requests arrive, so the servers keep the session
		r.await("the end of the lease", s.Context().Done())
		link.Partition()
		link.To(1).Heal()
		r.Session(c)
		if r.owner("/waiting") != s.ID() {
			t.Fatal("the session has ended everywhere: nothing to show")
		}
		time.Sleep(time.Second)
		if r.owner("/waiting") != 0 {
			t.Error("the node is in the way a second after its owner has another session")
		}
	}, zktest.WithSessionTimeouts(time.Second, time.Minute))
}

// The end of a lost session is tried until a server has answered, and no longer.
func TestEndOfALostSessionIsRepeated(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		trouble func(*rig)
		tries   int // 0: until the session has expired
	}{
		"no trouble":    {func(*rig) {}, 1},
		"lost requests": {func(r *rig) { r.Srv.DropBefore(zktest.Match{Op: zktest.OpCloseSession, Times: 3}) }, 4},
		"lost answer":   {func(r *rig) { r.Srv.LoseReply(zktest.Match{Op: zktest.OpCloseSession}) }, 2},
		"no answer":     {func(r *rig) { r.Srv.Ignore(zktest.Match{Op: zktest.OpCloseSession, Times: zktest.Always}) }, 0},
		"already gone": {func(r *rig) {
			for _, s := range r.Srv.Sessions() {
				r.Srv.ExpireSession(s.ID)
			}
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				c := r.Connect("a")
				s := r.Session(c)
				link := r.Srv.Client("a")
				link.PartitionReplies()
				r.await("the end of the lease", s.Context().Done())
				tt.trouble(r)
				link.Heal()
				begun := time.Now()
				var tries atomic.Int32
				var last atomic.Int64
				r.Srv.OnRequest(func(q zktest.Request) {
					if q.Op == zktest.OpConnect && q.Session == s.ID() {
						tries.Add(1)
						last.Store(int64(time.Since(begun)))
					}
				})
				time.Sleep(time.Hour / 2)
				r.Srv.ClearRules()
				switch n := int(tries.Load()); {
				case tt.tries > 0 && n != tt.tries:
					t.Errorf("%d tries, want %d", n, tt.tries)
				case tt.tries == 0 && (n < 2 || time.Duration(last.Load()) > testrig.SessionTimeout+2*time.Second):
					t.Errorf("%d tries, the last %v after the session was lost", n, time.Duration(last.Load()))
				}
				if r.Session(c).ID() == s.ID() {
					t.Error("a lost session came back")
				}
			})
		})
	}
}

// A server that has only taken the client over, and shown no quorum, may refuse a
// lost session that lives: it is asked again.
func TestRefusalWithoutAQuorumIsNotBelieved(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		s := r.Session(c)
		link := r.Srv.Client("a")
		link.PartitionReplies()
		r.await("the end of the lease", s.Context().Done())
		r.Srv.DropBefore(zktest.Match{Op: zktest.OpCloseSession, Times: zktest.Always})
		link.Heal()
		r.Session(c)
		time.Sleep(time.Second)
		r.Srv.CutAll()
		time.Sleep(2 * time.Second) // the client has come back
		r.Srv.ClearRules()
		refused := r.Srv.Fail(zktest.Match{Op: zktest.OpConnect, Session: s.ID()}, zktest.CodeSessionExpired)
		time.Sleep(5 * time.Second)
		for _, left := range r.Srv.Sessions() {
			if left.ID == s.ID() {
				t.Errorf("the lost session is there, refused %d times", refused.Fired())
			}
		}
		if refused.Fired() != 1 || r.Srv.ExpiredCount() != 0 {
			t.Errorf("refused %d times, %d sessions expired: nothing shown", refused.Fired(), r.Srv.ExpiredCount())
		}
	})
}

// A server refuses a session in which something is held. The client does not end
// the session before the deadline of the hold: the holder may still rely on it.
func TestHeldSessionIsNotEndedEarly(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		h := r.hold(c, "/e")
		time.Sleep(61 * time.Second) // not in the middle of a heartbeat
		deadline := h.Deadline()
		r.Srv.Fail(zktest.Match{Op: zktest.OpConnect}, zktest.CodeSessionExpired)
		r.Srv.CutAll()
		r.await("refusal", h.s.Context().Done())
		if time.Until(deadline) < time.Second {
			t.Fatalf("refused %v before the deadline: nothing to show", time.Until(deadline))
		}
		r.Session(c)
		time.Sleep(time.Until(deadline) - time.Millisecond)
		if _, there := r.Srv.Node("/e"); !there {
			t.Error("the node went before the deadline")
		}
		time.Sleep(500 * time.Millisecond)
		if _, there := r.Srv.Node("/e"); there {
			t.Error("the node is there after the deadline")
		}
	})
}

// Credentials that the servers refuse from some day on cost a session with every
// try. None of them is left behind.
func TestRefusedCredentialsLeaveNoSessions(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		var refused atomic.Bool
		link := r.Srv.Client("a")
		c := r.Connect("a", client.WithAuth("digest", "user:secret"), client.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
			nc, err := link.DialContext(ctx, network, address)
			if err == nil && refused.Load() {
				nc = forger{nc}
			}
			return nc, err
		}))
		time.Sleep(time.Minute)
		refused.Store(true)
		r.Srv.CutAll()
		most, made := 0, map[int64]bool{}
		for range 600 {
			time.Sleep(100 * time.Millisecond)
			all := r.Srv.Sessions()
			most = max(most, len(all))
			for _, s := range all {
				made[s.ID] = true
			}
		}
		if most > 4 || len(made) < 10 {
			t.Errorf("%d sessions at once, of %d in a minute", most, len(made))
		}
		refused.Store(false)
		time.Sleep(10 * time.Second)
		r.Session(c)
		if all := r.Srv.Sessions(); len(all) != 1 {
			t.Errorf("%d sessions", len(all))
		}
	})
}

// forger presents credentials of a kind that no server knows.
type forger struct{ net.Conn }

func (f forger) Write(p []byte) (int, error) {
	return f.Conn.Write(bytes.ReplaceAll(p, []byte("digest"), []byte("forged")))
}
