package discovery_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/recipes/discovery"
	"github.com/docent-go/docent/zktest"
)

const goodJSON = `{"name":"orders","id":"x","address":"10.0.0.7","port":8080}`

// Nodes that nobody can use stand beside good ones. Each is reported with the reason, and changes nothing
// for the others. When it is repaired it is an instance.
func TestBadBesideGood(t *testing.T) {
	t.Parallel()
	bubble(t, discovery.Curator(), func(r *rig) {
		for node, data := range map[string]string{
			"a-good": goodJSON, "b-empty": "", "c-text": "hello", "d-nothing": "{}", "e-port": `{"address":"a","port":0}`,
			"f-type": `{"address":"a","port":1,"serviceType":"dynamic"}`, "g-host": `{"address":"a b","port":1}`,
			"h-disabled": `{"address":"a","port":1,"enabled":false}`, "i-tls": `{"address":"a","sslPort":443}`, "z-good": goodJSON,
		} {
			r.set(node, data)
		}
		if f, _ := r.Srv.Node(base + "/orders"); len(f.Data) != 0 {
			r.Error("the folder has data")
		}
		s := r.cache()
		now := r.want(s, "a-good=10.0.0.7:8080 i-tls=a:443 z-good=10.0.0.7:8080 h-disabled disabled b-empty skipped c-text skipped d-nothing skipped e-port skipped f-type skipped g-host skipped")
		for n, says := range []string{"no data", "no JSON", "its address is empty", "it has no port", `"dynamic" is no type`, `"a b" is neither a host name`} {
			testrig.WantErrText(r.T, now.Skipped[n].Err, says)
		}
		r.Check(now.Skipped[2].Err, discovery.ErrUnusable)
		one, err := r.other.Instances(r.Ctx, "orders")
		if r.Check(err); text(one) != text(now) {
			r.Errorf("read once: %s", text(one))
		}
		r.set("c-text", goodJSON)
		r.set("a-good", "x")
		r.want(s, "c-text=10.0.0.7:8080 i-tls=a:443 z-good=10.0.0.7:8080 h-disabled disabled a-good skipped b-empty skipped d-nothing skipped e-port skipped f-type skipped g-host skipped")
		r.Check(r.Srv.Delete(base + "/orders/b-empty"))
		r.want(s, "c-text=10.0.0.7:8080 i-tls=a:443 z-good=10.0.0.7:8080 h-disabled disabled a-good skipped d-nothing skipped e-port skipped f-type skipped g-host skipped")
	})
}

// A node that the client may not read is skipped, and is an instance when it may.
func TestUnreadableNode(t *testing.T) {
	t.Parallel()
	bubble(t, discovery.Curator(), func(r *rig) {
		r.set("a", goodJSON)
		_, err := r.service.Create(r.Ctx, base+"/orders/b", []byte(goodJSON), client.ACL(zkACL()...))
		r.Check(err)
		s := r.cache()
		now := r.want(s, "a=10.0.0.7:8080 b skipped")
		var unreadable *cache.UnreadableError
		if !errors.As(now.Skipped[0].Err, &unreadable) {
			r.Errorf("%v", now.Skipped[0].Err)
		}
		// Servers tell the client nothing of such a node. It looks again every 30 s.
		r.Check(r.Srv.Delete(base + "/orders/b"))
		r.Check(r.Srv.Create(base+"/orders/b", []byte(goodJSON)))
		time.Sleep(35 * time.Second)
		r.want(s, "a=10.0.0.7:8080 b=10.0.0.7:8080")
		// It may not be read any more: the last good value is not that of an instance.
		stat, err := r.service.SetACL(r.Ctx, base+"/orders/b", zkACL(), client.AnyVersion)
		if r.Check(err); stat.Aversion == 0 {
			r.Error("nothing was tested")
		}
		r.Srv.Client("caller").Cut()
		time.Sleep(5 * time.Second)
		r.want(s, "a=10.0.0.7:8080 b skipped")
	})
}

// A codec that panics skips the node, and not the program.
func TestPanicOfCodec(t *testing.T) {
	t.Parallel()
	bubble(t, wild{discovery.HostPort()}, func(r *rig) {
		r.set("a", "a:1")
		r.set("b", "panic")
		r.set("c", "nothing")
		s := r.cache()
		now := r.want(s, "a=a:1 b skipped c skipped")
		if !strings.Contains(now.Skipped[0].Err.Error(), "the codec panics: oh\n") || !strings.Contains(now.Skipped[1].Err.Error(), "no instance") {
			r.Errorf("%v", now.Skipped)
		}
	})
}

// wild is a codec of a program.
type wild struct{ discovery.Codec }

func (w wild) Decode(service, node string, data []byte) (*discovery.ServiceInstance, error) {
	switch string(data) {
	case "panic":
		panic("oh")
	case "nothing":
		return nil, nil //nolint:nilnil // on purpose
	}
	return w.Codec.Decode(service, node, data)
}

// No such service is an empty list, and no error. When it is there its instances are found, also after the
// servers have removed the folder.
func TestNoSuchService(t *testing.T) {
	t.Parallel()
	bubble(t, discovery.Curator(), func(r *rig) {
		none, err := r.other.Instances(r.Ctx, "orders")
		if r.Check(err); text(none) != "" || none.Service != "orders" || none.Zxid == 0 {
			r.Errorf("%+v", none)
		}
		r.WantNoChild(base)
		s := r.cache()
		h := r.hear(s)
		for range 2 {
			g := r.register(at("10.0.0.7", 8080))
			r.want(s, "a=10.0.0.7:8080")
			r.Check(g.Close())
			r.want(s, "")
			r.Srv.Sweep()
			r.Srv.Sweep()
			if _, there := r.Srv.Node(base + "/orders"); there {
				r.Error("the folder is there; nothing was tested")
			}
		}
		if got := h.text(); got != ", a=10.0.0.7:8080, , a=10.0.0.7:8080, " {
			r.Errorf("heard %q", got)
		}
		s.Close()
		r.wantNothingLeft()
	})
}

// The caller is cut off: its directory says that it is stale, since when and why, and keeps the
// instances. Then it catches up.
func TestStale(t *testing.T) {
	t.Parallel()
	bubble(t, discovery.Curator(), func(r *rig) {
		g := r.register(at("10.0.0.7", 8080))
		s := r.cache()
		h := r.hear(s)
		r.Srv.Client("caller").Partition()
		began := time.Now()
		for now, err := range s.Changes(r.Within(time.Minute)) {
			r.Check(err)
			if now.Stale {
				if text(now) != "a=10.0.0.7:8080 stale" || time.Since(began) > testrig.SessionTimeout || !now.Since.After(began) {
					r.Errorf("%s since %v after %v", text(now), now.Since.Sub(began), time.Since(began))
				}
				r.Check(now.Err, client.ErrNotConnected)
				break
			}
		}
		_, err := s.WaitSynced(r.Within(time.Second))
		r.Check(err, context.DeadlineExceeded, client.ErrNotConnected)
		r.Check(g.Update(r.Ctx, at("10.0.0.8", 8080)))
		time.Sleep(time.Minute)
		if got := text(s.Snapshot()); got != "a=10.0.0.7:8080 stale" {
			r.Errorf("cut off for a minute: %s", got)
		}
		r.Srv.Client("caller").Heal()
		now, err := s.WaitSynced(r.Within(time.Minute))
		if r.Check(err); text(now) != "a=10.0.0.8:8080" || now.Err != nil {
			r.Errorf("%+v", now)
		}
		if got := h.text(); got != "a=10.0.0.7:8080, a=10.0.0.7:8080 stale, a=10.0.0.8:8080 stale, a=10.0.0.8:8080" && got != "a=10.0.0.7:8080, a=10.0.0.7:8080 stale, a=10.0.0.8:8080" {
			r.Errorf("heard %s", got)
		}
		s.Close()
		if got := text(s.Snapshot()); got != "a=10.0.0.8:8080 stale" || !strings.HasSuffix(h.text(), ", a=10.0.0.8:8080 stale") {
			r.Errorf("after Close %s; heard %s", got, h.text())
		}
		r.Check(h.err, discovery.ErrClosed)
		r.Check(s.Snapshot().Err, discovery.ErrClosed)
		_, err = s.Wait(r.Ctx, r.Srv.Zxid()+1)
		r.Check(err, discovery.ErrClosed)
		r.Check(g.Close())
		s.Close()
		r.wantNothingLeft()
	})
}

// The instance's process is cut off: it stays until the servers end its session, and then goes.
func TestInstanceCutOff(t *testing.T) {
	t.Parallel()
	bubble(t, discovery.Curator(), func(r *rig) {
		r.register(at("10.0.0.7", 8080))
		s := r.cache()
		r.Srv.Client("service").Partition()
		time.Sleep(testrig.SessionTimeout / 2)
		r.want(s, "a=10.0.0.7:8080")
		time.Sleep(2 * testrig.SessionTimeout)
		r.want(s, "")
		r.Srv.Client("service").Heal()
		time.Sleep(2 * testrig.SessionTimeout)
		r.want(s, "a=10.0.0.7:8080")
	})
}

// What one transaction changes is one snapshot. What comes while a reader is busy is one too.
func TestCoalesced(t *testing.T) {
	t.Parallel()
	bubble(t, discovery.HostPort(), func(r *rig) {
		r.set("a", "a:1")
		s := r.cache()
		h := r.hear(s)
		var ops []client.Op
		for n := range 100 {
			ops = append(ops, client.CreateOp(fmt.Sprintf("%s/orders/b%02d", base, n), []byte("b:1")))
		}
		_, err := r.service.Multi(r.Ctx, ops...)
		r.Check(err)
		now, err := s.Wait(r.Within(time.Minute), r.Srv.Zxid())
		r.Check(err)
		synctest.Wait()
		if len(h.all) != 2 || len(now.Instances) != 101 {
			r.Errorf("%d snapshots, the last of %d", len(h.all), len(now.Instances))
		}
		seen := 0
		for now, err := range s.Changes(r.Ctx) {
			if r.Check(err); len(now.Instances) == 1 {
				break
			}
			seen++
			for n := range 100 { // while the reader is busy
				if seen == 1 {
					r.Check(r.service.Delete(r.Ctx, fmt.Sprintf("%s/orders/b%02d", base, n), client.AnyVersion))
				}
			}
			r.want(s, "a=a:1")
		}
		if seen != 1 {
			r.Errorf("a slow reader saw %d snapshots before the last", seen)
		}
		// The same bytes again are no news.
		synctest.Wait()
		heard := len(h.all)
		r.set("a", "a:1")
		r.Check(r.Srv.SetData(base+"/orders", []byte("folder")))
		r.want(s, "a=a:1")
		synctest.Wait()
		if len(h.all) != heard {
			r.Errorf("heard %v", h.all[heard:])
		}
	})
}

// With WithHold a delete and a create within its time are no news, as Curator's clients do at every
// reconnection. An instance that does not come back goes after it.
func TestHold(t *testing.T) {
	t.Parallel()
	bubble(t, discovery.HostPort(), func(r *rig) {
		r.set("a", "a:1")
		r.set("b", "b:1")
		s, plain := r.cache(discovery.WithHold(100*time.Millisecond)), r.cache()
		h, without := r.hear(s), r.hear(plain)
		flap := func(away time.Duration, data string) {
			r.Check(r.Srv.Delete(base + "/orders/a"))
			time.Sleep(away)
			r.set("a", data)
			time.Sleep(time.Second)
		}
		flap(90*time.Millisecond, "a:1")
		flap(90*time.Millisecond, "a:2")
		flap(110*time.Millisecond, "a:2")
		r.Check(r.Srv.Delete(base + "/orders/b"))
		r.want(plain, "a=a:2")
		r.want(s, "a=a:2 b=b:1")
		time.Sleep(200 * time.Millisecond)
		r.want(s, "a=a:2")
		if got := h.text(); got != "a=a:1 b=b:1, a=a:2 b=b:1, b=b:1, a=a:2 b=b:1, a=a:2" {
			r.Errorf("heard %s", got)
		}
		if got := without.text(); strings.Count(got, ", b=b:1,") != 3 {
			r.Errorf("without hold heard %s", got)
		}
		r.Check(r.Srv.Delete(base + "/orders/a"))
		s.Close() // while an instance is held
		plain.Close()
		r.wantNothingLeft()
		_, err := r.other.Cache("orders", discovery.WithHold(-1))
		testrig.WantErrText(t, err, "negative")
	})
}

// Start returns with the first snapshot, or with an error after which nothing runs, and may be
// called again.
func TestStart(t *testing.T) {
	t.Parallel()
	bubble(t, discovery.HostPort(), func(r *rig) {
		r.set("a", "a:1")
		s, err := r.other.Cache("orders", nil)
		r.Check(err)
		if now := s.Snapshot(); text(now) != "stale" || now.Zxid != 0 || s.Service() != "orders" {
			r.Errorf("before Start: %+v", now)
		}
		testrig.WantErrText(t, s.Snapshot().Err, "discovery: it is not started; call Start")
		r.Srv.Client("caller").Refuse()
		r.Srv.Client("caller").Cut()
		h := r.hear(s)
		err = s.Start(r.Within(time.Second))
		r.Check(err, context.DeadlineExceeded, client.ErrNotConnected)
		testrig.WantErrText(t, err, "discovery: start /services/orders")
		r.Srv.Client("caller").Accept()
		r.Check(s.Start(r.Within(time.Minute)))
		if now := s.Snapshot(); text(now) != "a=a:1" {
			r.Errorf("after Start: %+v", now)
		}
		if err := s.Start(r.Ctx); err == nil || err.Error() != "discovery: start /services/orders: it is started already" {
			r.Errorf("a second start: %v", err)
		}
		synctest.Wait()
		if h.text() != "a=a:1" {
			r.Errorf("heard %s", h.text())
		}
		s.Close()
		r.Check(s.Start(r.Ctx), discovery.ErrClosed)
		other, err := r.other.Cache("orders")
		r.Check(err)
		other.Close()
		r.Check(other.Start(r.Ctx), discovery.ErrClosed)
		_, err = other.WaitSynced(r.Ctx)
		r.Check(err, discovery.ErrClosed)

		r.Srv.Stop()
		time.Sleep(time.Second)
		lazy, err := r.other.Cache("orders", discovery.WithLazyStart())
		r.Check(err)
		r.Check(lazy.Start(r.Ctx))
		r.Check(lazy.Snapshot().Err, client.ErrNotConnected)
		_, err = lazy.Wait(r.Within(time.Second), 0)
		r.Check(err, context.DeadlineExceeded)
		r.Srv.Resume()
		now, err := lazy.WaitSynced(r.Within(time.Minute))
		if r.Check(err); text(now) != "a=a:1" {
			r.Errorf("%+v", now)
		}
		lazy.Close()

		small, err := r.other.Cache("orders", discovery.WithLimits(cache.Limits{Nodes: 1}))
		r.Check(err)
		r.Check(small.Start(r.Ctx), cache.ErrLimit)
		small.Close()
		testrig.WantNoGoroutine(r.T, ourFrames)
		time.Sleep(10 * time.Second)
		r.WantNoWatch()
	})
}

// Close at any moment of Start ends both, and nothing is left.
func TestCloseBesideStart(t *testing.T) {
	t.Parallel()
	for wait := range 20 {
		bubble(t, discovery.HostPort(), func(r *rig) {
			r.set("a", "a:1")
			s, err := r.other.Cache("orders")
			r.Check(err)
			h := r.hear(s)
			done := make(chan error)
			go func() { done <- s.Start(r.Ctx) }()
			time.Sleep(time.Duration(wait) * 200 * time.Microsecond)
			s.Close()
			if err := <-done; err != nil {
				r.Check(err, discovery.ErrClosed)
			}
			testrig.WantNoGoroutine(r.T, ourFrames)
			r.Check(h.err, discovery.ErrClosed)
			time.Sleep(10 * time.Second)
			r.WantNoWatch()
		})
	}
}

// The client is closed: the directory ends, and says so.
func TestClientClosed(t *testing.T) {
	t.Parallel()
	bubble(t, discovery.HostPort(), func(r *rig) {
		r.set("a", "a:1")
		s := r.cache()
		h := r.hear(s)
		i := at("b", 1)
		i.ID = "b"
		g := r.register(i)
		r.Check(r.service.CloseContext(r.Ctx))
		r.want(s, "a=a:1")
		r.Check(g.Wait(r.Ctx), discovery.ErrClosed, client.ErrClosed)
		r.Check(r.caller.CloseContext(r.Ctx))
		synctest.Wait()
		r.Check(h.err, discovery.ErrClosed)
		if text(s.Snapshot()) != "a=a:1 stale" {
			r.Errorf("%+v", s.Snapshot())
		}
		testrig.WantNoGoroutine(r.T, ourFrames)
	})
}

// One change of one instance costs one read and one snapshot, however many others there are.
func TestOneChangeOneRead(t *testing.T) {
	t.Parallel()
	bubble(t, discovery.Curator(), func(r *rig) {
		const many = 1000
		for n := range many {
			r.set(fmt.Sprintf("n%04d", n), goodJSON)
		}
		s := r.cache()
		h := r.hear(s)
		synctest.Wait()
		for what, change := range map[string]func(){
			"set":    func() { r.set("n0500", `{"address":"b","port":1}`) },
			"create": func() { r.set("new", goodJSON) },
			"delete": func() { r.Check(r.Srv.Delete(base + "/orders/n0100")) },
		} {
			heard, before := len(h.all), s.Snapshot()
			r.Srv.ResetCounts()
			change()
			time.Sleep(time.Second)
			reads := 0
			for op, n := range r.Srv.Counts() {
				if op != zktest.OpPing {
					reads += n
				}
			}
			synctest.Wait()
			now := s.Snapshot()
			if reads != 1 || len(h.all) != heard+1 {
				r.Errorf("%s: %d requests, %d snapshots: %v", what, reads, len(h.all)-heard, r.Srv.Counts())
			}
			kept := map[*discovery.ServiceInstance]bool{}
			for _, i := range before.Instances {
				kept[i] = true
			}
			decoded := 0
			for _, i := range now.Instances {
				if !kept[i] {
					decoded++
				}
			}
			if what == "delete" && decoded != 0 || what != "delete" && decoded != 1 {
				r.Errorf("%s: %d instances were decoded", what, decoded)
			}
		}
	})
}
