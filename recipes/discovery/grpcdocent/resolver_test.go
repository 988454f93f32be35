package grpcdocent_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/resolver"

	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/discovery"
	"github.com/docent-go/docent/recipes/discovery/grpcdocent"
	"github.com/docent-go/docent/zktest"
)

// settled lets everything happen that happens within a second.
func settled() {
	time.Sleep(time.Second)
	synctest.Wait()
}

func (r *rig) want(s *seen, want string) {
	r.Helper()
	settled()
	if got := s.take(); got != want {
		r.Errorf("the client was told %q, want %q", got, want)
	}
}

// The list is reported in order, once for each address, and again only if it differs.
func TestReports(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.at("b")
		a := r.at("a")
		r.register(discovery.ServiceInstance{ID: "z", Address: "a", Port: 80})
		s, res := r.build(r.builder())
		r.want(s, "[a:80 b:80]")
		r.at("c")
		r.want(s, "[a:80 b:80 c:80]")
		_, err := r.writer.Create(r.Ctx, "/services/orders/bad", []byte("{"))
		r.Check(err)
		r.want(s, "")
		r.Check(a.Close())
		r.want(s, "[a:80 b:80 c:80]") // z is there now, another instance
		res.ResolveNow(resolver.ResolveNowOptions{})
		r.want(s, "")
		res.Close()
		testrig.WantNoGoroutine(r.T, ourFrames)
		r.at("d")
		r.want(s, "")
	})
}

// A policy sees the instance of an endpoint. Metadata that change leave the address as it is.
func TestInstanceOf(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		reg := r.register(discovery.ServiceInstance{ID: "a", Address: "a", Port: 80, Zone: "x", Weight: 3, Metadata: map[string]string{"k": "v"}})
		s, res := r.build(r.builder())
		defer res.Close()
		settled()
		before := s.states[0].Endpoints[0]
		if i, ok := grpcdocent.InstanceOf(before.Attributes); !ok || i.ID != "a" || i.Zone != "x" || i.Weight != 3 || i.Metadata["k"] != "v" {
			t.Errorf("got %+v, %v", i, ok)
		}
		changed := reg.Instance()
		changed.Metadata = map[string]string{"k": "w"}
		r.Check(reg.Update(r.Ctx, changed))
		settled()
		after := s.states[1].Endpoints[0]
		if i, _ := grpcdocent.InstanceOf(after.Attributes); i.Metadata["k"] != "w" || after.Attributes.Equal(before.Attributes) {
			t.Errorf("got %+v", i)
		}
		if !after.Addresses[0].Equal(before.Addresses[0]) {
			t.Error("the address differs, so gRPC would connect anew")
		}
		if i, ok := grpcdocent.InstanceOf(nil); ok {
			t.Errorf("no attributes have %v", i)
		}
	})
}

// Build does not wait. Without ZooKeeper nothing is reported at first, then why.
func TestReportsErrorBeforeFirstList(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.at("a")
		r.Srv.Client("reader").Partition()
		began := time.Now()
		s, res := r.build(r.builder())
		defer res.Close()
		if took := time.Since(began); took != 0 {
			t.Errorf("Build has waited for %v", took)
		}
		time.Sleep(3 * time.Second)
		r.want(s, "")
		time.Sleep(2 * time.Second)
		r.want(s, "error")
		time.Sleep(time.Minute)
		r.want(s, "")
		r.Srv.Client("reader").Heal()
		time.Sleep(time.Minute)
		r.want(s, "[a:80]")
	})
}

// While ZooKeeper is away nothing is reported; what has changed meanwhile is reported later.
func TestReportsNothingWhileStale(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a := r.at("a")
		r.at("b")
		s, res := r.build(r.builder())
		defer res.Close()
		r.want(s, "[a:80 b:80]")
		for _, change := range []struct {
			do   func()
			want string
		}{
			{func() {}, ""},
			{func() { r.at("c") }, "[a:80 b:80 c:80]"},
			{func() { r.Check(a.Disable(r.Ctx)) }, "[b:80 c:80]"},
		} {
			r.Srv.Client("reader").Partition()
			time.Sleep(time.Second)
			change.do()
			time.Sleep(time.Minute) // the session is lost
			r.want(s, "")
			r.Srv.Client("reader").Heal()
			time.Sleep(10 * time.Second)
			r.want(s, change.want)
		}
	})
}

// An instance that the directory holds goes while ZooKeeper is away. That is told later.
func TestReportsNothingOfHeldWhileStale(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a := r.at("a")
		r.at("b")
		s, res := r.build(r.builder(grpcdocent.WithCache(discovery.WithHold(30 * time.Second))))
		defer res.Close()
		r.want(s, "[a:80 b:80]")
		r.Check(a.Close())
		r.want(s, "")
		r.Srv.Client("reader").Partition()
		time.Sleep(time.Minute)
		r.want(s, "")
		r.Srv.Client("reader").Heal()
		time.Sleep(30 * time.Second)
		r.want(s, "[b:80]")
	})
}

// Close waits for a report that is under way.
func TestCloseWaits(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.at("a")
		s := &seen{busy: make(chan struct{})}
		res, err := r.builder().Build(targetOf(t, "zk:///orders"), s, resolver.BuildOptions{})
		r.Check(err)
		settled()
		closed := make(chan struct{})
		go func() {
			res.Close()
			close(closed)
		}()
		settled()
		select {
		case <-closed:
			t.Error("Close has not waited")
		default:
		}
		close(s.busy)
		<-closed
	})
}

// That the last instance has gone is told at once, or later if the user wants so.
func TestLastKnown(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a := r.at("a")
		honest, res := r.build(r.builder())
		defer res.Close()
		kept, res := r.build(r.builder(grpcdocent.WithLastKnown(time.Minute)))
		defer res.Close()
		r.want(honest, "[a:80]")
		r.want(kept, "[a:80]")
		r.Check(a.Close())
		r.want(honest, "[]")
		r.want(kept, "")
		time.Sleep(30 * time.Second)
		b := r.at("b")
		r.want(honest, "[b:80]")
		r.want(kept, "[b:80]")
		time.Sleep(10 * time.Minute)
		r.want(kept, "")
		r.Check(b.Close())
		time.Sleep(57 * time.Second)
		r.want(kept, "")
		time.Sleep(2 * time.Second)
		r.want(kept, "[]")
	})
}

// A service that nobody offers is known to be empty: calls need not wait.
func TestNoService(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		s, res := r.build(r.builder(grpcdocent.WithLastKnown(time.Minute)))
		defer res.Close()
		r.want(s, "error")
		r.at("a")
		r.want(s, "[a:80]")
	})
}

// reads is how many requests a directory makes.
func (r *rig) reads() int {
	n := 0
	for op, count := range r.Srv.Counts() {
		if slices.Contains([]zktest.Op{zktest.OpGetData, zktest.OpGetChildren, zktest.OpGetChildren2, zktest.OpMultiRead, zktest.OpAddWatch, zktest.OpSync}, op) {
			n += count
		}
	}
	return n
}

// wantNoWatch checks that the client that looks has no watch on the server.
func (r *rig) wantNoWatch() {
	r.Helper()
	for _, watch := range r.Srv.Watches() {
		if watch.Client == "reader" {
			r.Errorf("a watch is left: %+v", watch)
		}
	}
}

// Resolvers of one service share a directory, and so does one that is built after the last has
// been closed: also while ZooKeeper is away. After the linger nothing is left.
func TestShared(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.at("a")
		b := r.builder(grpcdocent.WithLinger(10 * time.Minute))
		s, res := r.build(b)
		r.want(s, "[a:80]")
		before := r.reads()
		second, other := r.build(b)
		r.want(second, "[a:80]")
		res.Close()
		other.Close()
		for range 3 {
			time.Sleep(9 * time.Minute)
			s, res = r.build(b)
			r.want(s, "[a:80]")
			res.Close()
		}
		if now := r.reads(); now != before {
			t.Errorf("%d reads, want none", now-before)
		}
		r.at("b")
		settled()
		s, res = r.build(b)
		r.want(s, "[a:80 b:80]")
		res.Close()
		r.Srv.Client("reader").Partition()
		time.Sleep(time.Minute)
		s, res = r.build(b)
		r.want(s, "[a:80 b:80]")
		res.Close()
		r.Srv.Client("reader").Heal()
		time.Sleep(11 * time.Minute)
		r.wantNoWatch()
		s, res = r.build(b)
		r.want(s, "[a:80 b:80]")
		res.Close()
		if r.reads() == before {
			t.Error("no reads after the linger")
		}
	})
}

// The linger begins with the last resolver, and ends with the next.
func TestSharedStays(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.at("a")
		b := r.builder(grpcdocent.WithLinger(10 * time.Minute))
		_, first := r.build(b)
		s, second := r.build(b)
		r.want(s, "[a:80]")
		first.Close()
		time.Sleep(11 * time.Minute)
		r.at("b")
		r.want(s, "[a:80 b:80]")
		second.Close()
		time.Sleep(5 * time.Minute)
		s, third := r.build(b)
		defer third.Close()
		r.want(s, "[a:80 b:80]")
		time.Sleep(11 * time.Minute)
		r.at("c")
		r.want(s, "[a:80 b:80 c:80]")
	})
}

// Close ends everything, under resolvers that are still there.
func TestBuilderClose(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.at("a")
		b := r.builder()
		s, res := r.build(b)
		r.want(s, "[a:80]")
		b.Close()
		r.at("b")
		r.want(s, "")
		res.Close()
		_, err := b.Build(targetOf(t, "zk:///orders"), s, resolver.BuildOptions{})
		testrig.WantErr(t, err, discovery.ErrClosed)
		time.Sleep(10 * time.Minute)
		r.wantNoWatch()
		testrig.WantNoGoroutine(r.T, ourFrames)
	})
}

// If the builder is closed before the first list, calls hear that.
func TestBuilderClosedEarly(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.Srv.Client("reader").Partition()
		b := r.builder()
		s, res := r.build(b)
		b.Close()
		r.want(s, "error")
		res.Close()
		r.Srv.Client("reader").Heal()
	})
}

func TestTargets(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		for target, want := range map[string]string{
			"zk:orders":             "",
			"zk:///orders":          "",
			"zk://main/orders":      "",
			"zk://other/orders":     "zk:///orders",
			"zk:///":                "names no service",
			"zk:///orders?tag=blue": "has a query",
			"zk:///orders#1":        "has a fragment",
		} {
			b := r.builder(grpcdocent.WithAuthority("main"))
			res, err := b.Build(targetOf(t, target), &seen{}, resolver.BuildOptions{})
			if want != "" {
				testrig.WantErrText(t, err, want)
				continue
			}
			r.Check(err)
			res.Close()
		}
		_, err := r.builder().Build(targetOf(t, "zk://main/orders"), &seen{}, resolver.BuildOptions{})
		testrig.WantErrText(t, err, `"main"`, "WithAuthority")
		for text, opt := range map[string]grpcdocent.Option{
			"WithoutServiceConfig": grpcdocent.WithServiceConfig(""),
			"correct the config":   grpcdocent.WithServiceConfig("{"),
			"no supported":         grpcdocent.WithServiceConfig(`{"loadBalancingConfig":[{"round_robbin":{}}]}`),
			"last known":           grpcdocent.WithLastKnown(-1),
			"linger":               grpcdocent.WithLinger(-1),
			"WithAddress":          grpcdocent.WithAddress(nil),
		} {
			_, err := grpcdocent.NewBuilder(r.d, opt)
			testrig.WantErrText(t, err, text)
		}
		_, err = grpcdocent.NewBuilder(nil)
		testrig.WantErrText(t, err, "the ServiceDiscovery is nil; make one with discovery.New")
	})
}

// The policy is round_robin, unless somebody says otherwise.
func TestServiceConfig(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.at("a")
		for name, tt := range map[string]struct {
			opts []grpcdocent.Option
			off  bool
			want string
		}{
			"default":  {want: `{"loadBalancingConfig":[{"round_robin":{}}]}`},
			"own":      {opts: []grpcdocent.Option{grpcdocent.WithServiceConfig("{}")}, want: "{}"},
			"none":     {opts: []grpcdocent.Option{grpcdocent.WithoutServiceConfig()}},
			"disabled": {off: true},
		} {
			s, res := r.build(r.builder(tt.opts...), resolver.BuildOptions{DisableServiceConfig: tt.off})
			settled()
			if s.parsed != tt.want || (s.states[0].ServiceConfig != nil) != (tt.want != "") {
				t.Errorf("%s: parsed %q, want %q", name, s.parsed, tt.want)
			}
			res.Close()
		}
	})
}

// Where an instance speaks gRPC depends on the credentials, unless it says so itself.
func TestAddresses(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.register(discovery.ServiceInstance{ID: "a", Address: "a", Port: 80, TLSPort: 443})
		r.register(discovery.ServiceInstance{ID: "b", Address: "b", Port: 80})
		own := grpcdocent.WithAddress(func(i *discovery.ServiceInstance, _ bool) string {
			if i.ID == "b" {
				return ""
			}
			return i.Address + ":9000"
		})
		for want, tt := range map[string]struct {
			creds credentials.TransportCredentials
			opts  []grpcdocent.Option
		}{
			"[a:80 b:80]":  {creds: insecure.NewCredentials()},
			"[a:443 b:80]": {creds: credentials.NewTLS(nil)},
			"[a:9000]":     {creds: insecure.NewCredentials(), opts: []grpcdocent.Option{own}},
		} {
			s, res := r.build(r.builder(tt.opts...), resolver.BuildOptions{DialCreds: tt.creds})
			r.want(s, want)
			res.Close()
		}
		kratos, err := discovery.New(r.writer, "/microservices", discovery.Kratos())
		r.Check(err)
		reg, err := kratos.Register(r.Ctx, discovery.ServiceInstance{Service: "orders", ID: "k", Endpoints: []string{"http://k:8000", "grpc://k:9000?isSecure=false"}})
		r.Check(err)
		defer func() { _ = reg.Close() }()
		b, err := grpcdocent.NewBuilder(kratos)
		r.Check(err)
		defer b.Close()
		s, res := r.build(b)
		defer res.Close()
		r.want(s, "[k:9000]")
	})
}

// An endpoint without a host is none: gRPC would call the own host.
func TestEndpointWithoutHost(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		kratos, err := discovery.New(r.writer, "/microservices", discovery.Kratos())
		r.Check(err)
		reg, err := kratos.Register(r.Ctx, discovery.ServiceInstance{Service: "orders", ID: "k", Endpoints: []string{"grpc://:9000", "http://k:8000", "grpc://k:9001"}})
		r.Check(err)
		defer func() { _ = reg.Close() }()
		b, err := grpcdocent.NewBuilder(kratos)
		r.Check(err)
		defer b.Close()
		s, res := r.build(b)
		defer res.Close()
		r.want(s, "[k:9001]")
	})
}

// The last instances are kept too if those that are left do not speak gRPC.
func TestLastKnownWithoutAddresses(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a := r.at("a")
		r.at("b")
		only := grpcdocent.WithAddress(func(i *discovery.ServiceInstance, _ bool) string {
			if i.ID == "b" {
				return ""
			}
			return i.HostPort()
		})
		s, res := r.build(r.builder(only, grpcdocent.WithLastKnown(time.Minute)))
		defer res.Close()
		r.want(s, "[a:80]")
		r.Check(a.Close())
		r.want(s, "")
		time.Sleep(time.Minute)
		r.want(s, "[]")
	})
}

// A name is the same in both forms of a target.
func TestEscapedTargets(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		reg, err := r.d.Register(r.Ctx, discovery.ServiceInstance{Service: "team/a b", ID: "a", Address: "a", Port: 80})
		r.Check(err)
		defer func() { _ = reg.Close() }()
		for _, target := range []string{"zk:///team/a%20b", "zk:///team%2Fa%20b", "zk:team/a%20b", "zk:team%2Fa%20b"} {
			s := &seen{}
			res, err := r.builder().Build(targetOf(t, target), s, resolver.BuildOptions{})
			r.Check(err)
			settled()
			if got := s.take(); got != "[a:80]" {
				t.Errorf("%s: the client was told %q", target, got)
			}
			res.Close()
		}
	})
}
