package client_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/zktest"
)

// The time of day is set while something is held. The node stands until the deadline
// that the holder was given, and until one margin after the end of the hold. If the hold
// was lost, the node does not stand for long after that.
func TestClockStepBreaksNoPromise(t *testing.T) {
	t.Parallel()
	clocks := map[string]struct {
		steps []time.Duration // by which the clock is set, 2 s apart
		lost  bool
	}{
		"just beyond the lease":          {[]time.Duration{8 * time.Second}, true},
		"nearly the session":             {[]time.Duration{9 * time.Second}, true},
		"an hour":                        {[]time.Duration{time.Hour}, true},
		"an hour, and back":              {[]time.Duration{time.Hour, -time.Hour}, true},
		"nearly the session, and back":   {[]time.Duration{9 * time.Second, -9 * time.Second}, true},
		"an hour back":                   {[]time.Duration{-time.Hour}, false},
		"an hour back, then two forward": {[]time.Duration{-time.Hour, 2 * time.Hour}, true},
		"a second":                       {[]time.Duration{time.Second}, false},
	}
	questions := map[string]func(*client.Client, *held){
		"Err":     func(_ *client.Client, h *held) { _ = h.Err() },
		"Session": func(_ *client.Client, h *held) { _ = h.s.Err() },
		"State":   func(c *client.Client, _ *held) { c.State() },
		"nothing": func(*client.Client, *held) {},
	}
	networks := map[string]func(*zktest.ClientLink){
		"well": func(*zktest.ClientLink) {},
		"cut":  func(l *zktest.ClientLink) { l.Cut() },
		"silent": func(l *zktest.ClientLink) {
			l.Partition()
			time.AfterFunc(3*time.Second, l.Heal)
		},
	}
	servers := map[string][]zktest.Option{"ZooKeeper": nil, "Keeper": {zktest.WithProfile(zktest.ClickHouseKeeper)}}
	for clock, set := range clocks {
		for question, ask := range questions {
			for network, trouble := range networks {
				for server, opts := range servers {
					if network == "cut" && opts != nil {
						continue // ClickHouse Keeper restores no session: the hold ends with the connection
					}
					t.Run(clock+"/"+question+" "+network+" "+server, func(t *testing.T) {
						t.Parallel()
						bubble(t, func(r *rig) {
							var m suspended
							c := r.Connect("a", m.clock(), client.WithConnectTimeout(time.Hour))
							p := r.promise(c)
							time.Sleep(20*time.Second + 700*time.Millisecond)
							for _, step := range set.steps {
								p.note()
								m.step.Add(int64(step))
								ask(c, p.held)
								trouble(r.Srv.Client("a"))
								time.Sleep(2 * time.Second)
							}
							synctest.Wait()
							if lost := p.Err() != nil; lost != set.lost {
								t.Fatalf("lost: %v, want %v: %v", lost, set.lost, p.Err())
							}
							if set.lost {
								p.kept(r)
							}
						}, opts...)
					})
				}
			}
		}
	}
}

// promise is a hold, and what its holder relies on.
type promise struct {
	*held
	given time.Time // the latest deadline
	ended chan time.Time
	gone  chan time.Time // when the node was deleted
}

func (r *rig) promise(c *client.Client) *promise {
	r.Helper()
	p := &promise{ended: make(chan time.Time, 2), gone: make(chan time.Time, 1)}
	const path = "/_c_00000000-0000-0000-0000-000000000001-e" // protected: nobody else makes it
	s := r.Session(c)
	_, err := s.Create(r.Ctx, path, nil, client.Ephemeral())
	r.Check(err)
	p.held = &held{s: s, path: path, lost: make(chan error, 2)}
	p.Holding, err = inner.Hold(r.Ctx, s, func(err error) {
		p.ended <- time.Now()
		p.lost <- err
	}, path)
	r.Check(err)
	r.Srv.OnCommit(func(c zktest.Commit) {
		if slices.Contains(c.Deleted, path) {
			p.gone <- time.Now()
		}
	})
	return p
}

// note notes the deadline that the holder is given now, if it still holds.
func (p *promise) note() {
	if d := p.Deadline(); p.Err() == nil && d.After(p.given) {
		p.given = d
	}
}

// kept checks when the node of a hold that was lost went.
func (p *promise) kept(r *rig) {
	r.Helper()
	ended, gone := r.when("the end of the hold", p.ended), r.when("the end of the node", p.gone)
	const margin = time.Second
	if early := p.given.Sub(gone); early > 0 {
		r.Errorf("the node went %v before the deadline that was given", early)
	}
	if told := gone.Sub(ended); told < margin {
		r.Errorf("the node went %v after the hold had ended, want the margin of %v", told, margin)
	}
	if late := gone.Sub(p.given); late > 3*time.Second {
		r.Errorf("the node stood for %v after the deadline", late)
	}
}

// when receives a moment, within the test.
func (r *rig) when(what string, at <-chan time.Time) time.Time {
	r.Helper()
	select {
	case t := <-at:
		return t
	case <-r.Ctx.Done():
		r.Fatalf("%s: never", what)
		return time.Time{}
	}
}

// The error of the loss names no time of safety before the proof, and says that the clocks
// differ.
func TestClockStepIsNamed(t *testing.T) {
	t.Parallel()
	for _, step := range []time.Duration{9 * time.Second, time.Hour} {
		bubble(t, func(r *rig) {
			var m suspended
			c := r.Connect("a", m.clock())
			h := r.hold(c, "/e")
			time.Sleep(20 * time.Second)
			m.step.Store(int64(step))
			var e *client.LeaseExpiredError
			if err := r.loss(h); !errors.As(err, &e) || e.Promised.Before(e.SentAt) {
				t.Fatalf("lost: %+v", err)
			}
			wantErrText(t, e, "safe until "+e.Promised.Format("15:04:05.000"), "no proof")
			wantErrText(t, e, "another clock shows "+step.String()+" more", "no proof")
		})
	}
}

// A hold is lost because the session has moved to a server that grants a shorter timeout. The
// client still leaves the node until the deadline that the holder was told before.
func TestShorterTimeoutKeepsPromise(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		p := r.promise(c)
		time.Sleep(20*time.Second + 700*time.Millisecond)
		p.note()
		link := r.Srv.Client("a")
		link.Refuse()
		link.Cut()
		r.Srv.SetSessionTimeouts(time.Second, 4*time.Second)
		time.Sleep(5 * time.Second)
		link.Accept()
		p.kept(r)
		r.Check(p.s.Err())
	})
}
