// Package discovery_test lets services of Docent's and of Curator's find each other on a real server.
package discovery_test

import (
	"context"
	"embed"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/integration/harness"
	"github.com/docent-go/docent/integration/peers"
	"github.com/docent-go/docent/integration/sessions"
	"github.com/docent-go/docent/recipes/discovery"
	"github.com/docent-go/docent/recipes/nodes"
)

//go:embed java/*.java
var sources embed.FS

// kind is a class of payloads, and the codec for it.
type kind struct {
	name  string
	codec discovery.Codec
	load  func(*discovery.ServiceInstance)
	text  string // the payload, as Java shows it
	off   string // of a disabled instance
	mark  string // how Curator shows that it is disabled
}

func kinds() []kind {
	zone := func(i *discovery.ServiceInstance) { i.Zone = "a" }
	return []kind{
		{"Void", discovery.Curator(), func(*discovery.ServiceInstance) {}, "null", "null", " disabled"},
		{"Map", discovery.CuratorMap(), zone, "{zone=a}", "{zone=a}", " disabled"},
		{"String", discovery.CuratorString(), func(i *discovery.ServiceInstance) { i.Payload = "zone=a" }, "zone=a", "zone=a", " disabled"},
		{"Spring", discovery.SpringCloud(), zone, "orders{instance_status=UP, zone=a}", "orders{instance_status=OUT_OF_SERVICE, zone=a}", ""},
	}
}

const base = "/services"

// world is a server, with a service and a directory of Docent's, and a service of Curator's with its
// readers.
type world struct {
	*testing.T
	kind

	ctx    context.Context
	addr   string
	raw    *zk.Conn
	c      *client.Client
	d      *discovery.ServiceDiscovery
	cache  *discovery.ServiceCache
	script *peers.Script
}

func (w *world) check(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// java runs a command, and returns the answer.
func (w *world) java(command string) string {
	w.Helper()
	w.check(w.script.Tell(command))
	answer, err := w.script.Next(w.ctx)
	w.check(err)
	return answer
}

// await waits until Java answers a question like that. Its readers follow in their own time.
func (w *world) await(question, want string) {
	w.Helper()
	for {
		got := w.java(question)
		if got == want {
			return
		}
		select {
		case <-time.After(20 * time.Millisecond): // no event tells of all that is waited for
		case <-w.ctx.Done():
			w.Fatalf("%s: Java answers %q, want %q", question, got, want)
		}
	}
}

// seen waits until the directory of Docent's has these instances.
func (w *world) seen(want string) *discovery.Snapshot {
	w.Helper()
	got := ""
	for now, err := range w.cache.Changes(w.ctx) {
		w.check(err)
		var all []string
		for _, i := range now.Instances {
			all = append(all, fmt.Sprintf("%s=%s zone %q payload %v", i.ID, i.HostPort(), i.Zone, i.Payload))
		}
		for _, i := range now.Disabled {
			all = append(all, i.ID+" disabled")
		}
		for _, one := range now.Skipped {
			all = append(all, one.Node+" skipped")
		}
		if got = strings.Join(all, ", "); got == want && !now.Stale {
			return now
		}
	}
	w.Fatalf("Docent sees %q, want %q", got, want)
	return nil
}

// here is an instance as Docent sees it.
func (w *world) here(id, at string) string {
	i := discovery.ServiceInstance{}
	w.load(&i)
	return fmt.Sprintf("%s=%s zone %q payload %v", id, at, i.Zone, i.Payload)
}

// there is an instance as Java sees it.
func (w *world) there(id, at string) string { return id + "=" + at + " " + w.text }

// all waits until all of Java's readers have these instances, which may all be called.
func (w *world) all(want ...string) {
	w.Helper()
	text := "[" + strings.Join(want, ", ") + "]"
	w.await("query", text)
	w.await("cache", text)
	w.await("provider", text+" one "+strconv.FormatBool(len(want) > 0))
}

// TestCurator: a service of Docent's and one of Curator's register, change their addresses, are
// disabled, lose their sessions, and leave. Each finds the other, with its payload, by the directory here and
// by ServiceDiscovery, ServiceCache and ServiceProvider there. No query of Java's ever fails.
func TestCurator(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	server := harness.StartServer(ctx, t)
	raw, _ := harness.Dial(ctx, t, 10*time.Second, server.Addr())
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(ctx, 90*time.Second)
			defer cancel()
			w := &world{T: t, kind: k, ctx: ctx, addr: server.Addr(), raw: raw}
			w.start()
			w.play()
		})
	}
}

func (w *world) start() {
	w.Helper()
	at := base + "/" + strings.ToLower(w.name)
	var err error
	w.c, err = client.Connect(w.ctx, w.addr, client.WithSessionTimeout(10*time.Second), client.WithLogger(slog.New(slog.DiscardHandler)))
	w.check(err)
	w.Cleanup(func() { _ = w.c.Close() })
	w.d, err = discovery.New(w.c, at, w.codec)
	w.check(err)
	w.cache, err = w.d.Cache("orders")
	w.check(err)
	w.check(w.cache.Start(w.ctx))
	w.Cleanup(w.cache.Close)
	w.script = peers.StartCuratorScript(w.ctx, w.T, sources, "Discovery", w.addr, at, w.name)
	ready, err := w.script.Next(w.ctx)
	if w.check(err); ready != "ready" {
		w.Fatalf("Java says %q", ready)
	}
}

func (w *world) play() {
	w.Helper()
	w.all()
	if got := w.java("ask"); got != "done" {
		w.Fatal(got)
	}
	// Both register, and find each other.
	own := discovery.ServiceInstance{Service: "orders", ID: "go", Address: "10.0.0.1", Port: 8080, URISpec: "{scheme}://{address}:{port}"}
	w.load(&own)
	g, err := w.d.Register(w.ctx, own)
	w.check(err)
	w.done("register java 10.0.0.2 9090")
	w.seen(w.here("go", "10.0.0.1:8080") + ", " + w.here("java", "10.0.0.2:9090"))
	w.all(w.there("go", "10.0.0.1:8080"), w.there("java", "10.0.0.2:9090"))
	if uris := w.java("uri"); len(strings.Fields(uris)) != 2 || !strings.Contains(uris, "http://10.0.0.1:8080 ") {
		w.Errorf("Java calls %s", uris)
	}
	// Both change their addresses.
	own.Address, own.Port = "10.0.0.3", 8081
	w.check(g.Update(w.ctx, own))
	w.done("update java 10.0.0.4 9091 true")
	w.seen(w.here("go", "10.0.0.3:8081") + ", " + w.here("java", "10.0.0.4:9091"))
	w.all(w.there("go", "10.0.0.3:8081"), w.there("java", "10.0.0.4:9091"))
	// Both are disabled, and enabled.
	w.check(g.Disable(w.ctx))
	w.done("update java 10.0.0.4 9091 false")
	w.seen("go disabled, java disabled")
	w.await("query", fmt.Sprintf("[go=10.0.0.3:8081%s %s, java=10.0.0.4:9091%[1]s %[2]s]", w.mark, w.off))
	if w.mark != "" { // in Spring the readers look at the metadata
		w.await("provider", "[] one false")
	}
	w.check(g.Enable(w.ctx))
	w.done("update java 10.0.0.4 9091 true")
	w.seen(w.here("go", "10.0.0.3:8081") + ", " + w.here("java", "10.0.0.4:9091"))
	w.all(w.there("go", "10.0.0.3:8081"), w.there("java", "10.0.0.4:9091"))
	// An operator disables Java's by what Docent keeps of it, and enables it again.
	for _, off := range []bool{true, false} {
		w.check(w.d.Edit(w.ctx, "orders", "java", func(i *discovery.ServiceInstance) error { i.Disabled = off; return nil }))
	}
	w.all(w.there("go", "10.0.0.3:8081"), w.there("java", "10.0.0.4:9091"))
	// Both lose their sessions, and come back. Java's session ends while its query thread asks, so a query may fail
	// for want of a connection: that thread stops here.
	w.asked()
	s, err := w.c.Session(w.ctx)
	w.check(err)
	w.check(sessions.KillSession(w.ctx, w.addr, s.ID()))
	w.java("query") // Java's client has a connection
	id, err := strconv.ParseUint(w.java("session"), 16, 64)
	w.check(err)
	w.check(sessions.KillSession(w.ctx, w.addr, int64(id)))
	w.back("go", s.ID())
	w.back("java", int64(id))
	w.check(g.Wait(w.ctx))
	w.seen(w.here("go", "10.0.0.3:8081") + ", " + w.here("java", "10.0.0.4:9091"))
	w.all(w.there("go", "10.0.0.3:8081"), w.there("java", "10.0.0.4:9091"))
	// A bad node stands beside them: it fails Java's query, and nothing here. Both caches go on.
	_, err = w.raw.Create(w.d.Path("orders")+"/bad", []byte("hello"), 0, zk.WorldACL(zk.PermAll))
	w.check(err)
	w.seen(w.here("go", "10.0.0.3:8081") + ", " + w.here("java", "10.0.0.4:9091") + ", bad skipped")
	if got := w.java("query"); !strings.HasPrefix(got, "error ") {
		w.Errorf("with a bad node Java's query says %q", got)
	}
	own.Port = 8082
	w.check(g.Update(w.ctx, own))
	w.seen(w.here("go", "10.0.0.3:8082") + ", " + w.here("java", "10.0.0.4:9091") + ", bad skipped")
	w.await("cache", "["+w.there("go", "10.0.0.3:8082")+", "+w.there("java", "10.0.0.4:9091")+"]")
	w.check(w.raw.Delete(w.d.Path("orders")+"/bad", -1))
	w.all(w.there("go", "10.0.0.3:8082"), w.there("java", "10.0.0.4:9091"))
	// Java's queries while the service here changes, and is deleted by an operator.
	w.done("ask")
	for n := range 50 {
		own.Port = 9000 + n
		w.check(g.Update(w.ctx, own))
		if n%10 == 0 {
			w.check(w.raw.Delete(w.d.Path("orders")+"/go", -1))
			w.check(g.Wait(w.ctx))
		}
	}
	w.asked()
	w.check(g.CloseContext(w.ctx))
	if there, _, err := w.raw.Exists(w.d.Path("orders") + "/go"); err != nil || there {
		w.Errorf("the instance is there after Close: %v", err)
	}
	w.seen(w.here("java", "10.0.0.4:9091"))
	w.done("unregister java")
	w.seen("")
	w.all()
	// Of the types that stay and of sequential ones.
	own.Type = discovery.Permanent
	permanent, err := w.d.Register(w.ctx, own)
	w.check(err)
	own.Type, own.ID = discovery.DynamicSequential, "seq"
	sequential, err := w.d.Register(w.ctx, own, nodes.WithPersistentParents())
	w.check(err)
	w.all(w.there("go", "10.0.0.3:9049"), w.there("seq", "10.0.0.3:9049"))
	w.check(permanent.CloseContext(w.ctx))
	w.check(sequential.CloseContext(w.ctx))
	w.all()
}

// done runs a command that is answered with "done".
func (w *world) done(command string) {
	w.Helper()
	if got := w.java(command); !strings.HasPrefix(got, "done") {
		w.Fatalf("%s: %s", command, got)
	}
}

// asked checks that no query of Java's has failed since it was told to ask.
func (w *world) asked() {
	w.Helper()
	if got := w.java("asked"); got != "true []" {
		w.Errorf("Java's queries: %s", got)
	}
}

// back waits until the node of an instance is of another session than that one.
func (w *world) back(id string, session int64) {
	w.Helper()
	for {
		there, stat, err := w.raw.Exists(w.d.Path("orders") + "/" + id)
		w.check(err)
		if there && stat.EphemeralOwner != session {
			return
		}
		select {
		case <-time.After(20 * time.Millisecond): // it may be deleted and made again
		case <-w.ctx.Done():
			w.Fatalf("%s is not back: %v, %+v", id, there, stat)
		}
	}
}
