package discovery_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/discovery"
	"github.com/docent-go/docent/recipes/nodes"
	"github.com/docent-go/docent/zktest"
)

// A registered instance is the node that Curator makes, in folders like Curator's. It is found, and
// is gone when Close returns.
func TestRegister(t *testing.T) {
	t.Parallel()
	bubble(t, discovery.Curator(), func(r *rig) {
		s := r.cache()
		r.want(s, "")
		g := r.register(at("10.0.0.7", 8080))
		n, _ := r.Srv.Node(base + "/orders/a")
		want := fmt.Sprintf(`{"name":"orders","id":"a","address":"10.0.0.7","port":8080,"sslPort":null,"payload":null,"registrationTimeUTC":%d,"serviceType":"DYNAMIC","uriSpec":null}`, g.Instance().Registered.UnixMilli())
		if got := string(n.Data); got != want {
			r.Errorf("the node has\n%s\nwant\n%s", got, want)
		}
		if n.Stat.EphemeralOwner != r.SessionID(r.service) {
			r.Errorf("the owner is %x", n.Stat.EphemeralOwner)
		}
		for _, folder := range []string{base, base + "/orders"} {
			if f, _ := r.Srv.Node(folder); !f.Container || f.Data == nil || len(f.Data) != 0 {
				r.Errorf("%s: container %v, data %q", folder, f.Container, f.Data)
			}
		}
		r.want(s, "a=10.0.0.7:8080")
		if g.Status().State != nodes.Ours || g.Status().Path != base+"/orders/a" {
			r.Errorf("%+v", g.Status())
		}
		r.Check(g.Close())
		r.WantNoChild(base + "/orders")
		r.want(s, "")
		testrig.WantErr(t, g.Wait(r.Ctx), discovery.ErrClosed)
		testrig.WantErr(t, g.Update(r.Ctx, at("10.0.0.8", 1)), discovery.ErrClosed)
		s.Close()
		r.wantNothingLeft()
	})
}

// Without an ID the instance gets one, which it keeps.
func TestIDs(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		codec discovery.Codec
		want  string // as a prefix of the node
		len   int
	}{
		{discovery.Curator(), "", 36},
		{discovery.SpringCloud(), "", 36},
		{discovery.Dubbo(), "10.0.0.7:8080", 13},
		{discovery.Kitex(), "10.0.0.7:8080", 13},
		{discovery.HostPort(), "10.0.0.7:8080", 13},
		{discovery.Nerve(), "10.0.0.7:8080", 13},
		{discovery.GoKit(), "_c_", 3 + 32 + 1 + 10},
		{discovery.Serverset(), "member_0000000000", 17},
	} {
		bubble(t, tt.codec, func(r *rig) {
			i := at("10.0.0.7", 8080)
			i.ID = ""
			g := r.register(i)
			all := r.Srv.Children(base + "/orders")
			if len(all) != 1 || !strings.HasPrefix(all[0], tt.want) || len(all[0]) != tt.len {
				r.Fatalf("%s: nodes %v", tt.codec.Name(), all)
			}
			i = g.Instance()
			s := r.cache()
			now := r.want(s, all[0]+"=10.0.0.7:8080")
			if i.ID != now.Instances[0].ID && tt.codec.Name() != "Serverset" || i.Registered.IsZero() {
				r.Errorf("%s: %+v, read as %+v", tt.codec.Name(), i, now.Instances[0])
			}
			// After a lost session the node has the same name.
			r.Srv.Client("service").ExpireSession()
			time.Sleep(testrig.SessionTimeout)
			r.Check(g.Wait(r.Within(time.Minute)))
			r.want(s, all[0]+"=10.0.0.7:8080")
			if tt.codec.Name() != "Dubbo" && tt.codec.Name() != "Kitex" && tt.codec.Name() != "HostPort" && tt.codec.Name() != "Nerve" {
				i.Port = 8081
				r.Check(g.Update(r.Within(time.Minute), i))
				r.want(s, all[0]+"=10.0.0.7:8081")
			}
			r.Check(g.Close())
			s.Close()
			r.wantNothingLeft()
		})
	}
}

// The session is lost: the instance comes back in one transaction, with the same data. No caller
// sees a moment without it.
func TestSessionLost(t *testing.T) {
	t.Parallel()
	bubble(t, discovery.CuratorMap(), func(r *rig) {
		g := r.register(at("10.0.0.7", 8080))
		s := r.cache()
		h := r.hear(s)
		vacancy := r.vacancy()
		before, _ := r.Srv.Node(base + "/orders/a")
		r.Srv.Client("service").PartitionReplies()
		old := r.Session(r.service)
		<-old.Context().Done()
		if g.Status().State != nodes.Absent {
			r.Errorf("without a session: %+v", g.Status())
		}
		r.Srv.Client("service").Heal()
		r.Check(g.Wait(r.Within(time.Minute)))
		after, _ := r.Srv.Node(base + "/orders/a")
		if string(after.Data) != string(before.Data) || after.Stat.EphemeralOwner != r.SessionID(r.service) || after.Stat.Czxid == before.Stat.Czxid {
			r.Errorf("before %s %+v, after %s %+v", before.Data, before.Stat, after.Data, after.Stat)
		}
		r.want(s, "a=10.0.0.7:8080")
		if vacancy() != 0 || h.text() != "a=10.0.0.7:8080" {
			r.Errorf("away for %v; heard %s", vacancy(), h.text())
		}
		r.Check(g.Close())
		s.Close()
		r.wantNothingLeft()
	})
}

// A process that was killed starts again with its ID. Its old node is left alone until its
// session is over, or is replaced at once with TakeOver. It is never adopted: the ghost of dubbo #5125.
func TestGhost(t *testing.T) {
	t.Parallel()
	for _, takeOver := range []bool{false, true} {
		bubble(t, discovery.Curator(), func(r *rig) {
			killed := r.Connect("killed")
			dead := r.services(killed, discovery.Curator())
			_, err := dead.Register(r.Ctx, at("10.0.0.7", 8080))
			r.Check(err)
			r.Srv.Client("killed").Partition()
			began := time.Now()
			var opts []nodes.Option
			if takeOver {
				opts = append(opts, nodes.TakeOver())
			} else {
				_, err := r.own.Register(r.Within(time.Second), at("10.0.0.8", 8080))
				testrig.WantErr(t, err, context.DeadlineExceeded)
				testrig.WantErrText(t, err, "discovery: /services/orders/a is foreign", "stands at the path", "TakeOver replaces it")
			}
			g := r.register(at("10.0.0.8", 8080), opts...)
			if waited := time.Since(began); waited > time.Second != !takeOver || waited > 2*testrig.SessionTimeout {
				r.Errorf("TakeOver %v: it took %v", takeOver, waited)
			}
			s := r.cache()
			r.want(s, "a=10.0.0.8:8080")
			time.Sleep(3 * testrig.SessionTimeout)
			r.want(s, "a=10.0.0.8:8080")
			r.Check(g.Close())
			s.Close()
		})
	}
}

// An operator deletes the node, and the folder: it is made again, or stays away.
func TestDeleted(t *testing.T) {
	t.Parallel()
	bubble(t, discovery.Curator(), func(r *rig) {
		g := r.register(at("10.0.0.7", 8080))
		time.Sleep(time.Minute)
		s := r.cache()
		for range 2 {
			r.Check(r.Srv.Delete(base + "/orders/a"))
			r.Check(r.Srv.Delete(base + "/orders"))
			time.Sleep(2 * time.Second)
			r.want(s, "a=10.0.0.7:8080")
			time.Sleep(time.Minute)
		}
		r.Check(g.Close())
		g = r.register(at("10.0.0.7", 8080), nodes.StopWhenRemoved())
		r.Check(r.Srv.Delete(base + "/orders/a"))
		time.Sleep(time.Minute)
		r.want(s, "")
		testrig.WantErr(t, g.Wait(r.Within(time.Second)), nodes.ErrRemoved)
		r.Check(g.Close())
		s.Close()
		r.wantNothingLeft()
	})
}

// The servers are away when the service starts. With WithLazyStart the instance comes with them;
// without it Register says why it fails, and nothing is left of it.
func TestServersAway(t *testing.T) {
	t.Parallel()
	bubble(t, discovery.Curator(), func(r *rig) {
		r.Srv.Stop()
		time.Sleep(2 * testrig.SessionTimeout)
		_, err := r.own.Register(r.Within(time.Minute), at("10.0.0.7", 8080))
		testrig.WantErr(t, err, client.ErrNotConnected, context.DeadlineExceeded)
		g := r.register(at("10.0.0.7", 8080), nodes.WithLazyStart())
		r.Check(g.Update(ended(r), at("10.0.0.8", 8080)), context.Canceled)
		r.Srv.Resume()
		r.Check(g.Wait(r.Within(time.Minute)))
		s := r.cache()
		r.want(s, "a=10.0.0.8:8080")
		r.Check(g.Close())
		s.Close()
		r.wantNothingLeft()
	})
}

// ended is a context that has ended.
func ended(r *rig) context.Context {
	ctx, cancel := context.WithCancel(r.Ctx)
	cancel()
	return ctx
}

// Check is testrig's, or wants that error.
func (r *rig) Check(err error, want ...error) {
	r.Helper()
	if len(want) == 0 {
		r.Rig.Check(err)
		return
	}
	testrig.WantErr(r.T, err, want...)
}

// Close while the client is cut off says so, and the node goes as soon as that is possible.
func TestCloseWhileAway(t *testing.T) {
	t.Parallel()
	bubble(t, discovery.Curator(), func(r *rig) {
		g := r.register(at("10.0.0.7", 8080))
		r.Srv.Client("service").Refuse()
		r.Srv.Client("service").Cut()
		err := g.CloseContext(r.Within(time.Second))
		r.Check(err, context.DeadlineExceeded)
		testrig.WantErrText(t, err, "discovery: close /services/orders/a")
		if _, there := r.Srv.Node(base + "/orders/a"); !there {
			r.Error("nothing was tested")
		}
		r.Srv.Client("service").Accept()
		r.Check(g.CloseContext(r.Within(time.Minute)))
		r.wantNothingLeft()

		// The session ends meanwhile: its node goes with it.
		g = r.register(at("10.0.0.7", 8080))
		r.Srv.Client("service").Partition()
		r.Check(g.CloseContext(r.Within(2 * testrig.SessionTimeout)))
		time.Sleep(2 * testrig.SessionTimeout)
		r.Srv.Client("service").Heal()
		r.wantNothingLeft()
	})
}

// The address changes, in place: callers see one or the other, and always one of them.
func TestUpdate(t *testing.T) {
	t.Parallel()
	bubble(t, discovery.CuratorMap(), func(r *rig) {
		i := at("10.0.0.7", 8080)
		i.Metadata = map[string]string{"k": "v"}
		g := r.register(i)
		s := r.cache()
		h := r.hear(s)
		registered := g.Instance().Registered
		time.Sleep(time.Minute)
		i.Address, i.ID = "10.0.0.8", ""
		r.Check(g.Update(r.Ctx, i))
		now := r.want(s, "a=10.0.0.8:8080")
		if !now.Instances[0].Registered.Equal(registered.Truncate(time.Millisecond)) || now.Instances[0].Metadata["k"] != "v" {
			r.Errorf("%+v", now.Instances[0])
		}
		r.Check(g.Disable(r.Ctx))
		r.want(s, "a disabled")
		r.Check(g.Disable(r.Ctx))
		r.Check(g.Enable(r.Ctx))
		r.want(s, "a=10.0.0.8:8080")
		if got := h.text(); got != "a=10.0.0.7:8080, a=10.0.0.8:8080, a disabled, a=10.0.0.8:8080" {
			r.Errorf("heard %s", got)
		}
		// What is not the same instance is refused, and changes nothing.
		for says, f := range map[string]func(*discovery.ServiceInstance){
			"the service x is another":         func(i *discovery.ServiceInstance) { i.Service = "x" },
			`the ID "b" is another`:            func(i *discovery.ServiceInstance) { i.ID = "b" },
			"the type PERMANENT is another":    func(i *discovery.ServiceInstance) { i.Type = discovery.Permanent },
			"has no place for Payload":         func(i *discovery.ServiceInstance) { i.Payload = 1 },
			"its address is empty":             func(i *discovery.ServiceInstance) { i.Address = "" },
			"more than":                        nil,
			`metadata with the key "@class"`:   func(i *discovery.ServiceInstance) { i.Metadata = map[string]string{"@class": "x"} },
			`URISpec "{": the braces do not`:   func(i *discovery.ServiceInstance) { i.URISpec = "{" },
			"the address \"a b\" is neither a": func(i *discovery.ServiceInstance) { i.Address = "a b" },
		} {
			bad := g.Instance()
			if f == nil {
				bad.Metadata = map[string]string{"large": strings.Repeat("x", 2<<20)}
				r.Check(g.Update(r.Ctx, bad), client.ErrTooLarge)
				continue
			}
			f(&bad)
			testrig.WantErrText(t, g.Update(r.Ctx, bad), says)
		}
		if got := g.Instance(); got.Address != "10.0.0.8" || got.Metadata["k"] != "v" {
			r.Errorf("%+v", got)
		}
		r.want(s, "a=10.0.0.8:8080")
		// While the servers are away an update is kept, and written when they are back.
		r.Srv.Stop()
		time.Sleep(time.Second)
		i.Address = "10.0.0.9"
		r.Check(g.Update(r.Within(time.Second), i), context.DeadlineExceeded)
		if g.Instance().Address != "10.0.0.9" {
			r.Errorf("%+v", g.Instance())
		}
		r.Check(g.Disable(r.Within(time.Second)), context.DeadlineExceeded)
		r.Check(g.Enable(r.Within(time.Second)), context.DeadlineExceeded)
		r.Srv.Resume()
		r.Check(g.Wait(r.Within(time.Minute)))
		_, err := s.WaitSynced(r.Within(time.Minute))
		r.Check(err)
		r.want(s, "a=10.0.0.9:8080")
		r.Check(g.Close())
		s.Close()
		r.wantNothingLeft()
	})
}

// Of many updates at once the last counts, for the node and for Instance alike.
func TestUpdatesAtOnce(t *testing.T) {
	t.Parallel()
	bubble(t, discovery.CuratorMap(), func(r *rig) {
		g := r.register(at("10.0.0.7", 1))
		s := r.cache()
		var all sync.WaitGroup
		for n := range 30 {
			all.Go(func() {
				i := at("10.0.0.7", 1000+n)
				r.Check(g.Update(r.Within(time.Minute), i))
				r.Check(g.Disable(r.Within(time.Minute)))
				r.Check(g.Enable(r.Within(time.Minute)))
			})
		}
		all.Wait()
		i := g.Instance()
		r.want(s, "a="+i.HostPort())
		r.Check(g.Close())
	})
}

// A registration that is not started keeps what it is given. Start may fail, and be called again.
func TestStartAgain(t *testing.T) {
	t.Parallel()
	bubble(t, discovery.Curator(), func(r *rig) {
		g, err := r.own.NewRegistration(at("10.0.0.7", 8080))
		r.Check(err)
		r.Check(g.Update(r.Ctx, at("10.0.0.8", 8080)))
		rule := r.Srv.Fail(zktest.Match{Op: zktest.OpCreate, PathPrefix: base, Times: zktest.Always}, zktest.CodeNoAuth)
		r.Check(g.Start(r.Ctx), client.ErrNoAuth)
		rule.Remove()
		r.Check(g.Start(r.Ctx))
		s := r.cache()
		r.want(s, "a=10.0.0.8:8080")
		if err := g.Start(r.Ctx); err == nil || err.Error() != "discovery: start /services/orders/a: it is started already" {
			r.Errorf("a second start: %v", err)
		}
		for now := range g.Changes(r.Ctx) {
			if now.State != nodes.Ours {
				r.Errorf("%+v", now)
			}
			break
		}
		r.Check(g.Close())
		s.Close()
		r.wantNothingLeft()
	})
}

// An instance of a type that stays is a persistent node. It outlives its session, and Close
// removes it.
func TestPermanent(t *testing.T) {
	t.Parallel()
	for _, kind := range []discovery.ServiceType{discovery.Static, discovery.Permanent} {
		bubble(t, discovery.Curator(), func(r *rig) {
			i := at("10.0.0.7", 8080)
			i.Type = kind
			g := r.register(i)
			s := r.cache()
			if n, _ := r.Srv.Node(base + "/orders/a"); n.Stat.EphemeralOwner != 0 {
				r.Errorf("the owner is %x", n.Stat.EphemeralOwner)
			}
			r.Srv.Client("service").ExpireSession()
			time.Sleep(testrig.SessionTimeout)
			r.want(s, "a=10.0.0.7:8080")
			r.Check(g.Disable(r.Within(time.Minute)))
			r.want(s, "a disabled")
			r.Check(g.Close())
			s.Close()
			r.wantNothingLeft()
		})
	}
}

// The address of a listener is none that others can call: they would call themselves.
func TestEveryAddress(t *testing.T) {
	t.Parallel()
	bubble(t, discovery.CuratorMap(), func(r *rig) {
		for _, address := range []string{"::", "0.0.0.0", "::0", "[::]", "::ffff:0.0.0.0"} {
			_, err := r.own.NewRegistration(at(address, 8080))
			testrig.WantErr(r.T, err, discovery.ErrUnusable)
			testrig.WantErrText(r.T, err, fmt.Sprintf("the address %q is every address of a host and none to call: give one, or that of discovery.HostAddress", address))
		}
		_, err := r.own.NewRegistration(at("::1", 8080))
		r.Check(err)
	})
}

// What Curator has no place for, the codec with a map mostly has. A second registration of one ID by
// one client waits for the first, and says so.
func TestWhatToDoInstead(t *testing.T) {
	t.Parallel()
	bubble(t, discovery.Curator(), func(r *rig) {
		i := at("10.0.0.7", 8080)
		i.Zone = "x"
		_, err := r.own.NewRegistration(i)
		testrig.WantErrText(r.T, err, "Curator has no place for Zone; CuratorMap has")
		i.Payload = 1
		_, err = r.own.NewRegistration(i)
		testrig.WantErr(r.T, err, discovery.ErrNotCarried)
		if strings.Contains(err.Error(), "CuratorMap") {
			r.Errorf("%v, but CuratorMap has no place for a payload", err)
		}
		g := r.register(at("10.0.0.7", 8080))
		_, err = r.own.Register(r.Within(time.Second), at("10.0.0.7", 8081))
		testrig.WantErrText(r.T, err, "another node or registration of this client stands at the path: close that one, or take another path or ID")
		r.Check(g.Close())
	})
}

// An instance that a call returns is asked without a variable, and prints as one behind a pointer.
func TestInstanceByValue(t *testing.T) {
	t.Parallel()
	bubble(t, discovery.CuratorMap(), func(r *rig) {
		me, err := r.own.NewRegistration(at("10.0.0.7", 8080))
		r.Check(err)
		uri, err := me.Instance().URI()
		r.Check(err)
		own := me.Instance().Clone()
		for got, want := range map[string]string{
			me.Instance().HostPort(): "10.0.0.7:8080", uri: "http://10.0.0.7:8080",
			fmt.Sprint(me.Instance()): "orders/a at 10.0.0.7:8080", fmt.Sprint(&own): "orders/a at 10.0.0.7:8080",
		} {
			if got != want {
				r.Errorf("got %s, want %s", got, want)
			}
		}
	})
}

// What cannot be registered is refused before anything is sent, with an error that says what to do.
func TestRefused(t *testing.T) {
	t.Parallel()
	bubble(t, discovery.Kitex(), func(r *rig) {
		r.Srv.ResetCounts()
		good := discovery.ServiceInstance{Service: "orders", Address: "10.0.0.7", Port: 8080}
		for says, f := range map[string]func(*discovery.ServiceInstance){
			"name of the service is empty":           func(i *discovery.ServiceInstance) { i.Service = "" },
			"name of the service":                    func(i *discovery.ServiceInstance) { i.Service = "/orders" },
			"HostAddress tells":                      func(i *discovery.ServiceInstance) { i.Address = "" },
			"no address or no port":                  func(i *discovery.ServiceInstance) { i.Port = 0 },
			"leave it empty":                         func(i *discovery.ServiceInstance) { i.ID = "a" },
			"Kitex has no place for TLSPort":         func(i *discovery.ServiceInstance) { i.TLSPort = 1 },
			`no name of a node; it has no "/" in it`: func(i *discovery.ServiceInstance) { i.Address = "a/b" },
			`"70000" is no port`:                     func(i *discovery.ServiceInstance) { i.Port = 70000 },
			"IP address; the port belongs into Port": func(i *discovery.ServiceInstance) { i.Address = "10.0.0.7:80" },
		} {
			i := good
			f(&i)
			_, err := r.own.Register(r.Ctx, i)
			testrig.WantErrText(t, err, "discovery: ", says)
		}
		_, err := r.own.NewRegistration(good, nodes.WithProtection())
		testrig.WantErrText(t, err, "takes no WithProtection")
		if sent := r.Srv.Count(zktest.OpCreate) + r.Srv.Count(zktest.OpMulti); sent != 0 {
			r.Errorf("%d requests", sent)
		}
		set := r.services(r.service, discovery.Serverset())
		i := good
		i.Type = discovery.Static
		_, err = set.NewRegistration(i)
		r.Check(err, discovery.ErrNotCarried)
		_, err = set.NewRegistration(good, nodes.WithNodeACL())
		r.Check(err, client.ErrInvalidACL)
		r.Check(func() error {
			_, err := r.services(r.service, discovery.Curator()).NewRegistration(at("", 1))
			return err
		}(), discovery.ErrUnusable)

		_, err = discovery.New(nil, base, discovery.Kitex())
		testrig.WantErrText(t, err, "the client is nil")
		_, err = discovery.New(r.service, base, nil)
		testrig.WantErrText(t, err, "the codec is nil")
		_, err = discovery.New(r.service, "", discovery.Curator())
		testrig.WantErrText(t, err, `Curator has no usual base path`)
		_, err = discovery.New(r.service, "services", discovery.Curator())
		testrig.WantErrText(t, err, "base path")
		d, err := discovery.New(r.service, "", discovery.SpringCloud())
		r.Check(err)
		if d.Base() != "/services" || d.Codec().Name() != "SpringCloud" || d.Path("a") != "/services/a" {
			r.Errorf("%s, %s", d.Base(), d.Path("a"))
		}
	})
}

// HostAddress is the address by which this host reaches the servers.
func TestHostAddress(t *testing.T) {
	t.Parallel()
	srv := zktest.NewServer(t, zktest.WithListen("127.0.0.1:0"))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := client.Connect(ctx, srv.Addr(), testrig.Quiet(), client.WithDefaultData([]byte("x")))
	testrig.Check(t, err)
	t.Cleanup(func() { testrig.Check(t, c.Close()) })
	if at, err := discovery.HostAddress(ctx, c); err != nil || at != "127.0.0.1" {
		t.Errorf("%q, %v", at, err)
	}
	if _, err := discovery.HostAddress(ctx, nil); err == nil {
		t.Error("no client, and no error")
	}
	bubble(t, discovery.Curator(), func(r *rig) {
		_, err := discovery.HostAddress(r.Ctx, r.service)
		testrig.WantErrText(t, err, "give the address by a setting")
		r.Srv.Stop()
		time.Sleep(time.Second)
		_, err = discovery.HostAddress(r.Within(time.Second), r.service)
		r.Check(err, client.ErrNotConnected)
	})
}

// An operator disables the instance of another program; what the codec does not know stays. If another client
// is faster, its change stays too.
func TestEdit(t *testing.T) {
	t.Parallel()
	bubble(t, discovery.Curator(), func(r *rig) {
		const java = `{"name":"orders","id":"x","address":"a","port":1,"sslPort":null,"payload":{"@class":"X"},"registrationTimeUTC":1,"serviceType":"DYNAMIC","uriSpec":null,"new":1`
		r.set("java", java+"}")
		s := r.cache()
		disable := func(i *discovery.ServiceInstance) error { i.Disabled = true; return nil }
		rule := r.Srv.BeforeApply(zktest.Match{Op: zktest.OpSetData, Path: base + "/orders/java"}, func(context.Context, zktest.Request) {
			r.set("java", java+`,"late":1}`)
		})
		r.Check(r.other.Edit(r.Ctx, "orders", "java", disable))
		if n, _ := r.Srv.Node(base + "/orders/java"); string(n.Data) != java+`,"late":1,"enabled":false}` || rule.Fired() != 1 {
			r.Errorf("%s", n.Data)
		}
		r.want(s, "java disabled")
		r.Check(r.other.Edit(r.Ctx, "orders", "nobody", disable), client.ErrNoNode)
		mine := errors.New("mine")
		r.Check(r.other.Edit(r.Ctx, "orders", "java", func(*discovery.ServiceInstance) error { return mine }), mine)
		r.Check(r.other.Edit(r.Ctx, "orders", "java", func(i *discovery.ServiceInstance) error { i.Weight = 1; return nil }), discovery.ErrNotCarried)
		r.set("bad", "hello")
		testrig.WantErrText(t, r.other.Edit(r.Ctx, "orders", "bad", disable), "edit /services/orders/bad", "no JSON")
		always := r.Srv.Fail(zktest.Match{Op: zktest.OpSetData, Path: base + "/orders/java", Times: zktest.Always}, zktest.CodeBadVersion)
		testrig.WantErrText(t, r.other.Edit(r.Ctx, "orders", "java", disable), "set it all the time")
		always.Remove()
	})
}

// An edit changes neither who the instance is nor for how long it stands: its node could not follow.
func TestEditOfIdentity(t *testing.T) {
	t.Parallel()
	bubble(t, discovery.Curator(), func(r *rig) {
		r.register(at("10.0.0.7", 8080))
		was, _ := r.Srv.Node(base + "/orders/a")
		for name, edit := range map[string]func(*discovery.ServiceInstance){
			"service": func(i *discovery.ServiceInstance) { i.Service = "users" },
			"ID":      func(i *discovery.ServiceInstance) { i.ID = "b" },
			"type":    func(i *discovery.ServiceInstance) { i.Type = discovery.Permanent },
		} {
			err := r.other.Edit(r.Within(time.Minute), "orders", "a", func(i *discovery.ServiceInstance) error { edit(i); return nil })
			if now, _ := r.Srv.Node(base + "/orders/a"); err == nil || !strings.Contains(err.Error(), name) || string(now.Data) != string(was.Data) {
				t.Errorf("%s: error %v, data %s", name, err, now.Data)
			}
		}
	})
}

// Services are the names below the base, also of services that nobody has registered yet.
func TestServices(t *testing.T) {
	t.Parallel()
	bubble(t, discovery.Kitex(), func(r *rig) {
		names, err := r.other.Services(r.Ctx)
		if err != nil || len(names) != 0 {
			r.Errorf("%v, %v", names, err)
		}
		for _, service := range []string{"b", "a"} {
			i := at("10.0.0.7", 8080)
			i.Service, i.ID = service, ""
			r.register(i)
		}
		if names, err = r.other.Services(r.Ctx); err != nil || strings.Join(names, " ") != "a b" {
			r.Errorf("%v, %v", names, err)
		}
		root, err := discovery.New(r.caller, "", discovery.Kitex())
		r.Check(err)
		if names, err = root.Services(r.Ctx); err != nil || strings.Join(names, " ") != "services" || root.Path("a") != "/a" {
			r.Errorf("%v, %v", names, err)
		}
		rule := r.Srv.Fail(zktest.Match{Op: zktest.OpGetChildren2, Times: zktest.Always}, zktest.CodeNoAuth)
		rule2 := r.Srv.Fail(zktest.Match{Op: zktest.OpGetChildren, Times: zktest.Always}, zktest.CodeNoAuth)
		_, err = r.other.Services(r.Ctx)
		r.Check(err, client.ErrNoAuth)
		rule.Remove()
		rule2.Remove()
	})
}
