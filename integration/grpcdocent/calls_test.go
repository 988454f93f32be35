package grpcdocent_test

import (
	"bufio"
	"context"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/integration/harness"
	"github.com/docent-go/docent/recipes/discovery"
	"github.com/docent-go/docent/recipes/discovery/grpcdocent"
)

// away is for how long no server of ZooKeeper runs.
const away = time.Minute

// world is an ensemble, a service whose instances are registered there, and a caller under load.
type world struct {
	*testing.T
	ctx  context.Context
	e    *harness.Ensemble
	own  []*instance       // in this process
	at   map[string]string // the address of each, by ID
	kill func() time.Time  // ends the instance that is a process

	c     *client.Client // of the caller
	d     *discovery.ServiceDiscovery
	cache *discovery.ServiceCache // to look at; the resolver has its own
	b     *grpcdocent.Builder
	load  *load
}

func (w *world) check(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// TestCalls: a caller makes 500 calls a second, while the servers of ZooKeeper are restarted one by one, the leader is
// paused, killed and cut off, and all are away for a minute. No call fails, and in the end all instances are
// listed. Nodes that are no instances change nothing. Then an instance dies: calls that have begun
// when its connection ends may fail, and no other.
func TestCalls(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	w := &world{T: t, ctx: ctx, e: harness.StartEnsemble(ctx, t, 3), at: map[string]string{}}
	w.start()
	const all = "a b c process"
	w.settled(all)
	w.round("a rolling restart", all, func() {
		for _, n := range w.e.Nodes() {
			w.check(n.Restart(ctx))
			w.serving()
		}
	})
	for _, fault := range []struct {
		name       string
		begin, end func(*harness.Node, context.Context) error
	}{
		{"a pause of the leader", (*harness.Node).Pause, (*harness.Node).Unpause},
		{"a kill of the leader", (*harness.Node).Kill, (*harness.Node).Start},
		{"a partition of the leader", (*harness.Node).Partition, (*harness.Node).Heal},
	} {
		w.round(fault.name, all, func() {
			leader := w.serving()
			w.check(fault.begin(leader, ctx))
			w.serving(slices.DeleteFunc(w.e.Nodes(), func(n *harness.Node) bool { return n == leader })...)
			w.settled(all) // with the others
			w.check(fault.end(leader, ctx))
			w.serving()
		})
	}
	w.round("all servers away for a minute", all, func() {
		before := w.owners()
		w.each(func(n *harness.Node) error { return n.Stop(ctx) })
		over := time.After(away)
		w.stale()
		w.newClient()
		<-over // the fault lasts that long
		w.each(func(n *harness.Node) error { return n.Start(ctx) })
		w.serving()
		w.settled(all)
		w.renewed(before) // all have lost their sessions
	})
	const beside = all + ", bad skipped"
	w.round("bad nodes", beside, func() {
		path := w.d.Path("orders") + "/bad"
		for _, data := range []string{"", "{", `{"address":""}`, `{"name":"orders","id":"x","address":"x","port":0}`} {
			_, err := w.c.Create(ctx, path, []byte(data))
			w.check(err)
			w.settled(beside)
			w.check(w.c.Delete(ctx, path, client.AnyVersion))
			w.settled(all)
		}
		_, err := w.c.Create(ctx, path, []byte("hello"))
		w.check(err)
	})
	w.dies("a b c, bad skipped")
}

func (w *world) start() {
	w.Helper()
	servers := w.e.ConnectString()
	w.process(servers)
	for _, id := range []string{"a", "b", "c"} {
		i, err := newInstance(w.ctx, servers, id)
		w.check(err)
		w.own, w.at[id] = append(w.own, i), i.at
		w.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(w.ctx), 10*time.Second)
			defer cancel()
			if err := i.close(ctx); err != nil {
				w.Errorf("close %s: %v", id, err)
			}
		})
	}
	var err error
	w.c, w.d, err = connect(w.ctx, servers)
	w.check(err)
	w.Cleanup(func() { _ = w.c.Close() })
	_, err = w.c.Create(w.ctx, "/mark", nil)
	w.check(err)
	w.cache, err = w.d.Cache("orders")
	w.check(err)
	w.check(w.cache.Start(w.ctx))
	w.Cleanup(w.cache.Close)
	w.b, err = grpcdocent.NewBuilder(w.d)
	w.check(err)
	w.Cleanup(w.b.Close)
	w.load = newLoad()
	w.load.conn = w.client(grpc.WithStatsHandler(w.load))
	w.load.start(w.ctx)
	w.Cleanup(w.load.end)
}

// process starts the instance that is a process.
func (w *world) process(servers string) {
	w.Helper()
	self, err := os.Executable()
	w.check(err)
	cmd := exec.CommandContext(w.ctx, self)
	cmd.Env = append(os.Environ(), serversEnv+"="+servers)
	cmd.Stderr = os.Stderr
	_, err = cmd.StdinPipe() // it ends with this process
	w.check(err)
	out, err := cmd.StdoutPipe()
	w.check(err)
	w.check(cmd.Start())
	w.kill = func() time.Time {
		now := time.Now()
		_ = cmd.Process.Kill()
		return now
	}
	w.Cleanup(func() {
		w.kill()
		_ = cmd.Wait()
	})
	at, err := bufio.NewReader(out).ReadString('\n')
	w.check(err)
	w.at["process"] = strings.TrimSpace(at)
}

// client is a client of gRPC.
func (w *world) client(opts ...grpc.DialOption) *grpc.ClientConn {
	w.Helper()
	conn, err := grpc.NewClient("zk:///orders", append(opts, grpc.WithResolvers(w.b), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	w.check(err)
	w.Cleanup(func() { _ = conn.Close() })
	return conn
}

// round is a fault and its end. At the end all is as it should be, and no call has failed.
func (w *world) round(name, want string, play func()) {
	w.Helper()
	began := time.Now()
	play()
	w.settled(want)
	took := time.Since(began)
	made, failed := w.load.take()
	calls := 0
	for _, n := range made {
		calls += n
	}
	rate := float64(calls) / took.Seconds()
	w.Logf("%s: %v, %.0f calls a second, %v", name, took.Round(100*time.Millisecond), rate, made)
	if rate < perSecond/2 { // a machine with other work makes fewer than it is asked for
		w.Errorf("%s: %.0f calls a second, want %d", name, rate, perSecond)
	}
	if len(failed) > 0 {
		w.Errorf("%s: %d calls failed, the first began at %v: %v", name, len(failed), failed[0].began, failed[0].err)
	}
}

// serving waits until those nodes serve, all without arguments, and returns the leader.
func (w *world) serving(nodes ...*harness.Node) *harness.Node {
	w.Helper()
	leader, err := w.e.AwaitServing(w.ctx, nodes...)
	w.check(err)
	return leader
}

func (w *world) each(f func(*harness.Node) error) {
	w.Helper()
	errs := make(chan error)
	for _, n := range w.e.Nodes() {
		go func() { errs <- f(n) }()
	}
	for range w.e.Nodes() {
		w.check(<-errs)
	}
}

// settled waits until all clients have a connection, all instances stand, the directory has seen
// everything, and each instance is called.
func (w *world) settled(want string) {
	w.Helper()
	for _, i := range w.own {
		w.check(i.reg.Wait(w.ctx))
	}
	for {
		_, err := w.c.Session(w.ctx)
		w.check(err)
		stat, err := w.c.Set(w.ctx, "/mark", nil, client.AnyVersion)
		if err != nil {
			continue // its connection was lost
		}
		_, err = w.cache.Wait(w.ctx, stat.Mzxid)
		w.check(err)
		break
	}
	w.seen(want)
	ids, _, _ := strings.Cut(want, ",")
	for called := map[string]bool{}; len(called) < len(strings.Fields(ids)); {
		at, err := call(w.ctx, w.load.conn)
		w.check(err)
		called[at] = true
	}
}

// seen waits until the directory has these instances.
func (w *world) seen(want string) {
	w.Helper()
	got := ""
	for now, err := range w.cache.Changes(w.ctx) {
		w.check(err)
		var all []string
		for _, i := range now.Instances {
			all = append(all, i.ID)
		}
		got = strings.Join(all, " ")
		for _, one := range now.Skipped {
			got += ", " + one.Node + " skipped"
		}
		if got == want && !now.Stale {
			return
		}
	}
	w.Fatalf("the directory has %q, want %q: %+v", got, want, w.cache.Snapshot())
}

// stale waits until the directory says that it hears of no changes.
func (w *world) stale() {
	w.Helper()
	for now, err := range w.cache.Changes(w.ctx) {
		w.check(err)
		if now.Stale {
			return
		}
	}
	w.Fatal("the directory is not stale")
}

// newClient lets a client that is new make calls: it has the instances that were listed last.
func (w *world) newClient() {
	w.Helper()
	conn := w.client()
	defer conn.Close() //nolint:errcheck // nobody needs it any more
	for called := map[string]bool{}; len(called) < len(w.at); {
		at, err := call(w.ctx, conn)
		w.check(err)
		called[at] = true
	}
}

// owners are the sessions of the instances, by ID.
func (w *world) owners() map[string]int64 {
	w.Helper()
	all := map[string]int64{}
	for id := range maps.Keys(w.at) {
		_, stat, err := w.c.Get(w.ctx, w.d.Path("orders")+"/"+id)
		w.check(err)
		all[id] = stat.EphemeralOwner
	}
	return all
}

// renewed waits until each instance stands in another session than before. Until then the node of the old
// session may stand, as the servers give that its full timeout when they start.
func (w *world) renewed(before map[string]int64) {
	w.Helper()
	for id, session := range before {
		for {
			there, stat, changed, err := w.c.ExistsW(w.ctx, w.d.Path("orders")+"/"+id)
			w.check(err)
			if there && stat.EphemeralOwner != session {
				break
			}
			select {
			case <-changed.Done():
			case <-w.ctx.Done():
				w.Fatalf("%s has the session of before", id)
			}
		}
	}
	w.settled("a b c process")
}

// dies kills the instance that is a process.
func (w *world) dies(left string) {
	w.Helper()
	at := w.at["process"]
	node := w.d.Path("orders") + "/process"
	killed := w.kill()
	var noticed time.Time
	select {
	case noticed = <-w.load.ended(at):
	case <-w.ctx.Done():
		w.Fatal("the connection to a process that was killed has not ended")
	}
	if _, _, err := w.c.Get(w.ctx, node); err != nil {
		w.Errorf("the node has gone before its session: %v", err)
	}
	w.seen(left)
	dropped := time.Now()
	w.settled(left)
	made, failed := w.load.take()
	w.Logf("the connection ended %v after the kill, and %d calls failed; the directory dropped the instance after %v; calls: %v",
		noticed.Sub(killed), len(failed), dropped.Sub(killed), made)
	for _, f := range failed {
		if f.began.After(noticed) {
			w.Errorf("a call failed that began %v after the transport had noticed: %v", f.began.Sub(noticed), f.err)
		}
	}
	if took := dropped.Sub(killed); took < sessionTimeout/2 {
		w.Errorf("the directory dropped the instance after %v, before its session can have been over", took)
	}
}
