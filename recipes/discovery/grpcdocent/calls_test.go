package grpcdocent_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/discovery"
	"github.com/docent-go/docent/recipes/discovery/grpcdocent"
	"github.com/docent-go/docent/zktest"
)

// fleet starts servers and registers them.
func (r *rig) fleet(ids ...string) {
	r.Helper()
	for _, id := range ids {
		r.serve(id + ":80")
		r.at(id)
	}
}

// connected returns a client that is connected to all instances.
func (r *rig) connected(b *grpcdocent.Builder, opts ...grpc.DialOption) *grpc.ClientConn {
	r.Helper()
	conn := r.client(b, opts...)
	conn.Connect()
	settled()
	return conn
}

// The first call waits for the list and no longer; then calls go to all instances in turn.
func TestCalls(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.fleet("a", "b")
		conn := r.client(r.builder())
		if _, err := r.call(r.Ctx, conn); err != nil {
			t.Error(err)
		}
		settled()
		if got := r.calls(conn, 10); got != "a:80:5 b:80:5" {
			t.Errorf("answers: %s", got)
		}
		r.fleet("c")
		settled()
		if got := r.calls(conn, 9); got != "a:80:3 b:80:3 c:80:3" {
			t.Errorf("answers: %s", got)
		}
	})
}

// Without a service config of the builder gRPC has its own default, or that of the client.
func TestCallsWithoutServiceConfig(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.fleet("a", "b")
		b := r.builder(grpcdocent.WithoutServiceConfig())
		if got := r.calls(r.connected(b), 10); got != "a:80:10" && got != "b:80:10" {
			t.Errorf("answers: %s, want pick_first", got)
		}
		own := grpc.WithDefaultServiceConfig(`{"loadBalancingConfig":[{"round_robin":{}}]}`)
		if got := r.calls(r.connected(b, own), 10); got != "a:80:5 b:80:5" {
			t.Errorf("answers: %s, want round_robin", got)
		}
	})
}

// load calls perSecond times a second until it is stopped, and returns what has failed.
func (r *rig) load(conn *grpc.ClientConn) (stop func() (made int, failed []error)) {
	ctx, cancel := context.WithCancel(r.Ctx)
	var made atomic.Int64
	var mu sync.Mutex
	var failed []error
	var group sync.WaitGroup
	group.Go(func() {
		ticker := time.NewTicker(time.Second / perSecond)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			group.Go(func() {
				made.Add(1)
				within, done := context.WithTimeout(r.Ctx, time.Second)
				defer done()
				if _, err := r.call(within, conn); err != nil {
					mu.Lock()
					defer mu.Unlock()
					failed = append(failed, err)
				}
			})
		}
	})
	return func() (int, []error) {
		cancel()
		group.Wait()
		return int(made.Load()), failed
	}
}

// ZooKeeper is away for a minute, and no call fails. If all sessions are over when it comes back,
// all instances register anew; with WithLastKnown no call fails then either.
func TestCallsWhileZooKeeperIsAway(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		quirks []zktest.Quirk
		opts   []grpcdocent.Option
	}{
		"sessions go on":    {},
		"sessions are over": {[]zktest.Quirk{zktest.QuirkCloseOnStop}, []grpcdocent.Option{grpcdocent.WithLastKnown(time.Minute)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				r.fleet("a", "b", "c")
				conn := r.connected(r.builder(tt.opts...))
				stop := r.load(conn)
				time.Sleep(time.Second)
				r.Srv.Stop()
				time.Sleep(time.Minute)
				r.Srv.Resume()
				time.Sleep(20 * time.Second)
				made, failed := stop()
				if made < 80*perSecond || len(failed) > 0 {
					t.Errorf("of %d calls failed %d: %v", made, len(failed), errors.Join(failed[:min(5, len(failed))]...))
				}
				r.fleet("d") // the directory still follows
				settled()
				if got := r.calls(conn, 8); got != "a:80:2 b:80:2 c:80:2 d:80:2" {
					t.Errorf("answers: %s", got)
				}
			}, zktest.WithQuirks(tt.quirks...))
		})
	}
}

// A process that dies takes only the calls with it that it has. gRPC itself leaves it out, until
// its session is over; then the directory does, and gRPC dials it no more.
func TestCallsWhileAnInstanceDies(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.fleet("a", "b")
		die := r.serve("c:80")
		c := r.Connect("c")
		d, err := discovery.New(c, "/services", discovery.CuratorMap())
		r.Check(err)
		_, err = d.Register(r.Ctx, discovery.ServiceInstance{Service: "orders", ID: "c", Address: "c", Port: 80})
		r.Check(err)
		conn := r.connected(r.builder())
		if got := r.calls(conn, 9); got != "a:80:3 b:80:3 c:80:3" {
			t.Errorf("answers: %s", got)
		}
		stop := r.load(conn)
		time.Sleep(time.Second)
		die()
		r.Srv.Client("c").Partition()
		time.Sleep(8 * time.Second) // of a session timeout of 10 s
		if _, stands := r.Srv.Node("/services/orders/c"); !stands {
			t.Error("the node has gone before its session")
		}
		again := r.dialled("c:80")
		if again < 2 {
			t.Error("gRPC did not try the instance again, so it was not told of it")
		}
		time.Sleep(time.Minute)
		_, failed := stop()
		if len(failed) > 3 {
			t.Errorf("%d calls failed: %v", len(failed), failed[0])
		}
		last := r.dialled("c:80")
		time.Sleep(10 * time.Minute)
		if now := r.dialled("c:80"); now != last {
			t.Errorf("dialled %d times after the session was over", now-last)
		}
	})
}

// A node that is no instance changes nothing for calls to the others.
func TestCallsBesideABadNode(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.fleet("a", "b")
		conn := r.connected(r.builder())
		stop := r.load(conn)
		for _, data := range []string{"", "{", `{"address":""}`, `{"name":"orders","id":"x","address":"x","port":0}`} {
			_, err := r.writer.Create(r.Ctx, "/services/orders/bad", []byte(data))
			r.Check(err)
			time.Sleep(time.Second)
			r.Check(r.writer.Delete(r.Ctx, "/services/orders/bad", client.AnyVersion))
		}
		if _, failed := stop(); len(failed) > 0 {
			t.Errorf("%d calls failed: %v", len(failed), failed[0])
		}
		if got := r.calls(conn, 4); got != "a:80:2 b:80:2" {
			t.Errorf("answers: %s", got)
		}
	})
}

// A client that was idle has its instances at once, also while ZooKeeper is away.
func TestCallsAfterIdling(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.fleet("a", "b")
		conn := r.connected(r.builder(grpcdocent.WithLinger(time.Hour)), grpc.WithIdleTimeout(time.Minute))
		r.calls(conn, 2)
		before := r.reads()
		time.Sleep(2 * time.Minute)
		if state := conn.GetState().String(); state != "IDLE" {
			t.Fatalf("the client is %s, want IDLE", state)
		}
		r.calls(conn, 2)
		if now := r.reads(); now != before {
			t.Errorf("%d reads, want none", now-before)
		}
		r.Srv.Stop()
		time.Sleep(5 * time.Minute)
		if state := conn.GetState().String(); state != "IDLE" {
			t.Fatalf("the client is %s, want IDLE", state)
		}
		within, cancel := context.WithTimeout(r.Ctx, time.Second)
		defer cancel()
		if who, err := r.call(within, conn); err != nil {
			t.Errorf("%s, %v", who, err)
		}
		r.Srv.Resume()
	})
}

// Without an instance calls fail at once, and say so; those that wait for ready get the first.
func TestCallsWithoutInstances(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		conn := r.connected(r.builder())
		_, err := r.call(r.Ctx, conn)
		if status.Code(err) != codes.Unavailable {
			t.Errorf("got %v", err)
		}
		got := make(chan error, 1)
		go func() {
			_, err := r.call(r.Ctx, conn, grpc.WaitForReady(true))
			got <- err
		}()
		synctest.Wait()
		r.fleet("a")
		r.Check(<-got)
	})
}

// Without ZooKeeper calls wait at the start, and then fail with the reason.
func TestCallsWithoutZooKeeper(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.fleet("a")
		r.Srv.Client("reader").Partition()
		conn := r.client(r.builder())
		began := time.Now()
		_, err := r.call(r.Within(time.Minute), conn)
		if took := time.Since(began); status.Code(err) != codes.Unavailable || took > 10*time.Second {
			t.Errorf("after %v: %v", took, err)
		}
		testrig.WantErrText(t, err, "discovery: client: not connected")
		r.Srv.Client("reader").Heal()
		time.Sleep(30 * time.Second)
		if got := r.calls(conn, 2); got != "a:80:2" {
			t.Errorf("answers: %s", got)
		}
	})
}

// Without the option gRPC takes the target for a name of DNS: what a user sees who forgets it.
func TestForgottenResolver(t *testing.T) {
	t.Parallel()
	conn, err := grpc.NewClient("zk:///orders", grpc.WithTransportCredentials(insecure.NewCredentials()))
	testrig.Check(t, err)
	defer func() { _ = conn.Close() }()
	if !strings.HasPrefix(conn.CanonicalTarget(), "dns:") {
		t.Errorf("the target is %s; the package's comment warns of dns", conn.CanonicalTarget())
	}
}

// A call to a service that has no instance yet says why, and the first instance gets the next calls.
func TestCallWithoutInstance(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.serve("a:80")
		conn := r.client(r.builder())
		_, err := r.call(r.Ctx, conn)
		if status.Code(err) != codes.Unavailable {
			t.Errorf("got %v, want Unavailable", err)
		}
		testrig.WantErrText(t, err, "no instance of orders below /services: none is registered")
		a := r.register(discovery.ServiceInstance{ID: "a", Address: "a", Port: 80, Disabled: true})
		settled()
		_, err = r.call(r.Ctx, conn)
		testrig.WantErrText(t, err, "1 disabled")
		r.Check(a.Enable(r.Ctx))
		settled()
		if got := r.calls(conn, 3); got != "a:80:3" {
			t.Errorf("got %s", got)
		}
		speechless := r.client(r.builder(grpcdocent.WithAddress(func(*discovery.ServiceInstance, bool) string { return "" })))
		_, err = r.call(r.Ctx, speechless)
		testrig.WantErrText(t, err, "none of the 1 instances of orders has an address for gRPC; see WithAddress")
	})
}

// Once there was an instance, gRPC itself says that there is none; its versions say it differently.
func TestCallAfterLastInstance(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.serve("a:80")
		a := r.at("a")
		conn := r.client(r.builder())
		r.calls(conn, 1)
		r.Check(a.Close())
		settled()
		_, err := r.call(r.Ctx, conn)
		if text := status.Convert(err).Message(); status.Code(err) != codes.Unavailable ||
			!strings.Contains(text, "produced zero addresses") && !strings.Contains(text, "no children to pick from") {
			t.Errorf("got %v", err)
		}
	})
}
