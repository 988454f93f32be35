package recipes_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// A holder hears of its loss, whatever the loss is, before another client can
// hold the lock, and its release says so.
func TestLossWhileHolding(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		lose func(r *rig, c *client.Client, h *recipes.Hold)
		want error
	}{
		"expired":           {func(r *rig, c *client.Client, _ *recipes.Hold) { r.Srv.ExpireSession(r.SessionID(c)) }, client.ErrSessionLost},
		"partition":         {func(r *rig, _ *client.Client, _ *recipes.Hold) { r.Srv.Client("a").Partition() }, client.ErrLeaseExpired},
		"silence":           {func(r *rig, _ *client.Client, _ *recipes.Hold) { r.Srv.Client("a").Freeze() }, client.ErrLeaseExpired},
		"half silence":      {func(r *rig, _ *client.Client, _ *recipes.Hold) { r.Srv.Client("a").PartitionReplies() }, client.ErrLeaseExpired},
		"node deleted":      {func(r *rig, _ *client.Client, h *recipes.Hold) { r.Check(r.Srv.Delete(h.Path())) }, recipes.ErrNodeDeleted},
		"directory deleted": {func(r *rig, _ *client.Client, _ *recipes.Hold) { r.Check(r.Srv.Delete(dir)) }, recipes.ErrNodeDeleted},
		"client closed": {func(r *rig, c *client.Client, _ *recipes.Hold) {
			go func() { // the order of the two is seen only while the close runs
				if err := c.CloseContext(r.Ctx); err != nil {
					r.Error(err)
				}
			}()
		}, client.ErrClosed},
	} {
		for _, age := range []time.Duration{0, time.Minute} {
			t.Run(name+" after "+age.String(), func(t *testing.T) {
				t.Parallel()
				bubble(t, func(r *rig) {
					c := r.Connect("a")
					h := r.held(r.mutex(c))
					time.Sleep(age)
					next := acquire(r.Ctx, r.mutex(r.Connect("b")))
					began := time.Now()
					tt.lose(r, c, h)
					var res result
					for told := false; !told; {
						select {
						case <-h.Context().Done():
							told = true
						case res = <-next:
							// A holder whose node is taken away by force hears of it with
							// the event, as fast as the next in line.
							if !errors.Is(tt.want, recipes.ErrNodeDeleted) && name != "expired" {
								r.Error("the next holder was first")
							}
						case <-time.After(time.Minute):
							r.Fatal("the holder was never told")
						}
					}
					if took := time.Since(began); took > testrig.SessionTimeout {
						r.Errorf("told after %v", took)
					}
					testrig.WantErr(t, context.Cause(h.Context()), recipes.ErrLost, tt.want)
					testrig.WantErr(t, h.Err(), recipes.ErrLost, tt.want)
					testrig.WantErr(t, h.Release(r.Ctx), recipes.ErrLost, tt.want)
					testrig.WantErr(t, h.Close(), recipes.ErrLost)
					if res.hold == nil {
						res = <-next
					}
					r.Check(res.err)
					r.Check(res.hold.Err())
					r.Check(res.hold.Release(r.Ctx))
					r.Srv.Client("a").Heal()
					r.Srv.Client("a").Thaw()
					r.empty()
					testrig.WantNoGoroutine(r.T, ourFrames)
				})
			})
		}
	}
}

// A place in the queue that is lost is not taken again in silence.
func TestLossWhileWaiting(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		lose func(r *rig, c *client.Client)
		want error
	}{
		"expired": {func(r *rig, c *client.Client) { r.Srv.ExpireSession(r.SessionID(c)) }, client.ErrSessionLost},
		"silence": {func(r *rig, _ *client.Client) { r.Srv.Client("a").Freeze() }, client.ErrSessionLost},
		"closed":  {func(r *rig, c *client.Client) { r.Check(c.CloseContext(r.Ctx)) }, client.ErrClosed},
		"node deleted": {func(r *rig, _ *client.Client) {
			r.Check(r.Srv.Delete(dir + "/" + r.second()))
			r.Srv.CutAll() // wakes it
		}, recipes.ErrNodeDeleted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				h := r.held(r.mutex(r.Connect("holder")))
				c := r.Connect("a")
				m := r.mutex(c)
				waits := acquire(r.Ctx, m)
				time.Sleep(time.Second)
				began := time.Now()
				tt.lose(r, c)
				res := <-waits
				if took := time.Since(began); took > testrig.SessionTimeout {
					r.Errorf("told after %v", took)
				}
				testrig.WantErr(t, res.err, tt.want)
				if res.hold != nil {
					r.Error("two holders")
				}
				r.Check(h.Err())
				r.Check(h.Release(r.Ctx))
				r.Srv.Client("a").Thaw()
				if name != "closed" { // the client goes on
					r.Check(r.held(m).Release(r.Ctx))
				}
				r.empty()
			})
		})
	}
}

// second is the node of the first waiter.
func (r *rig) second() string {
	all := r.Srv.Children(dir)
	if len(all) != 2 {
		r.Fatalf("line: %v", all)
	}
	if all[0][len(all[0])-10:] > all[1][len(all[1])-10:] {
		return all[0]
	}
	return all[1]
}

// The session ends when the server has granted the lock and the client has
// not heard: it must not believe the answer. It may ask again in the next
// session if it knows of no place that it had.
func TestExpiryAtTheGrant(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		m := r.mutex(c)
		r.Check(r.held(m).Release(r.Ctx))
		for _, op := range []zktest.Op{zktest.OpCreate, zktest.OpGetChildren2} {
			id := r.SessionID(c)
			r.Srv.BeforeReply(zktest.Match{Op: op, PathPrefix: dir, Session: id}, func(context.Context, zktest.Request) {
				r.Srv.ExpireSession(id)
			})
			h, err := m.Acquire(r.Ctx)
			if h == nil {
				testrig.WantErr(t, err, client.ErrSessionLost)
			} else { // it had no place yet, and took one in the next session
				n, there := r.Srv.Node(h.Path())
				if !there || n.Stat.EphemeralOwner == id || n.Stat.EphemeralOwner != r.SessionID(c) {
					r.Errorf("holds a node that is gone or another session's: %+v", n)
				}
				r.Check(h.Close())
			}
			r.empty()
		}
	})
}

// A blip is no loss, neither for a holder nor for a waiter.
func TestBlipsAreNoLoss(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		h := r.held(r.mutex(r.Connect("a")))
		waits := acquire(r.Ctx, r.mutex(r.Connect("b")))
		for range 20 {
			time.Sleep(testrig.SessionTimeout / 4) // more than the longest pause before a dial
			r.Srv.CutAll()
		}
		r.Check(h.Err())
		if line := r.line(); len(line) != 2 {
			r.Errorf("line: %v", line)
		}
		r.Srv.CutAll()
		r.Check(h.Release(r.Ctx))
		res := <-waits
		r.Check(res.err)
		r.Check(res.hold.Release(r.Ctx))
		r.empty()
	})
}

// Every request of an acquire may be lost, before or after it is applied:
// one node, and none after the release.
func TestLostRequests(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		m := r.mutex(r.Connect("a"))
		for name, fault := range map[string]func(zktest.Match) *zktest.Rule{
			"reply": r.Srv.LoseReply, "request": r.Srv.DropBefore, "stalled": r.Srv.StallReply, "after": r.Srv.DropAfter,
		} {
			for _, op := range []zktest.Op{zktest.OpCreateContainer, zktest.OpCreate, zktest.OpGetChildren2, zktest.OpDelete} {
				if op == zktest.OpCreateContainer {
					_ = r.Srv.Delete(dir)
				}
				rule := fault(zktest.Match{Op: op, PathPrefix: dir})
				h := r.held(m)
				if line := r.line(); len(line) != 1 || h.Path() != dir+"/"+line[0] {
					r.Errorf("%s of %v lost: hold %s, line %v", name, op, h.Path(), line)
				}
				r.Check(h.Release(r.Ctx))
				if rule.Fired() != 1 {
					r.Errorf("%s of %v: the fault happened %d times", name, op, rule.Fired())
				}
				r.empty()
			}
		}
	})
}

// If another client makes a node with the name of the holder's deleted node, the
// hold is still lost.
func TestNodeReplacedWhileHolding(t *testing.T) {
	t.Parallel()
	for _, age := range []time.Duration{0, time.Minute} {
		t.Run("after "+age.String(), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				h := r.held(r.mutex(r.Connect("a")))
				time.Sleep(age)
				r.Check(r.Srv.Delete(h.Path()))
				r.Check(r.Srv.Create(h.Path(), nil))
				select {
				case <-h.Context().Done():
				case <-time.After(time.Second):
					t.Fatal("the holder was not told")
				}
				if err := h.Err(); !errors.Is(err, recipes.ErrLost) || !errors.Is(err, recipes.ErrNodeDeleted) {
					t.Error(err)
				}
				if err := h.Close(); !errors.Is(err, recipes.ErrLost) {
					t.Error(err)
				}
			})
		})
	}
}
