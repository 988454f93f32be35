package kratos_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/go-kratos/kratos/v2/registry"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/docs/examples/ports/kratos"
	"github.com/docent-go/docent/zktest"
)

const patience = 20 * time.Second // for what must happen

func open(t *testing.T, srv *zktest.Server, name string) *kratos.Registry {
	t.Helper()
	c, err := client.Connect(t.Context(), "zk:2181",
		client.WithDialer(srv.Client(name).DialContext),
		client.WithSessionTimeout(10*time.Second),
		client.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return kratos.New(c, kratos.DefaultRoot)
}

func hello(id, endpoint string) *registry.ServiceInstance {
	return &registry.ServiceInstance{ID: id, Name: "hello", Version: "v1.0.0", Endpoints: []string{endpoint}}
}

// next returns the ids of the next state, without a wait if there is one.
func next(t *testing.T, w registry.Watcher) string {
	t.Helper()
	type state struct {
		all []*registry.ServiceInstance
		err error
	}
	answer := make(chan state, 1)
	go func() {
		all, err := w.Next()
		answer <- state{all, err}
	}()
	select {
	case got := <-answer:
		if got.err != nil {
			t.Fatal(got.err)
		}
		var ids []string
		for _, s := range got.all {
			ids = append(ids, s.ID+" "+s.Endpoints[0])
		}
		return strings.Join(ids, ", ")
	case <-time.After(patience):
		t.Fatal("Next does not return")
		return ""
	}
}

// await waits for a state of the watcher.
func await(t *testing.T, w registry.Watcher, want string) {
	t.Helper()
	for end := time.Now().Add(patience); ; {
		got := next(t, w)
		if got == want {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the watcher says %q, want %q", got, want)
		}
	}
}

func watch(t *testing.T, r *kratos.Registry) registry.Watcher {
	t.Helper()
	w, err := r.Watch(t.Context(), "hello")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Stop() })
	return w
}

func register(t *testing.T, r *kratos.Registry, s *registry.ServiceInstance) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := r.Register(ctx, s); err != nil {
		t.Fatal(err)
	}
}

// What Kratos' own tests ask, and the contract of its Watcher.
func TestRegistry(t *testing.T) {
	t.Parallel()
	r := open(t, zktest.NewServer(t), "a")
	if _, err := r.GetService(t.Context(), "hello"); !errors.Is(err, client.ErrNoNode) {
		t.Errorf("a service that was never registered: %v", err)
	}
	early := watch(t, r) // says nothing before there is an instance
	register(t, r, hello("1", "10.0.0.1:80"))
	if got := next(t, early); got != "1 10.0.0.1:80" {
		t.Errorf("the first Next of an early watcher says %q", got)
	}
	w := watch(t, r)
	if got := next(t, w); got != "1 10.0.0.1:80" {
		t.Errorf("the first Next says %q", got)
	}
	register(t, r, hello("2", "10.0.0.2:80"))
	await(t, w, "1 10.0.0.1:80, 2 10.0.0.2:80")
	register(t, r, hello("2", "10.0.0.3:80"))
	await(t, w, "1 10.0.0.1:80, 2 10.0.0.3:80")
	if all, err := r.GetService(t.Context(), "hello"); err != nil || len(all) != 2 || !all[0].Equal(hello(all[0].ID, all[0].Endpoints[0])) {
		t.Errorf("GetService returned %v, %v", all, err)
	}
	if err := r.Deregister(t.Context(), hello("1", "")); err != nil {
		t.Error(err)
	}
	await(t, w, "2 10.0.0.3:80")
	if err := r.Deregister(t.Context(), hello("1", "")); err == nil {
		t.Error("deregistered twice without an error")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Register(ended, hello("3", "10.0.0.3:80")); !errors.Is(err, context.Canceled) {
		t.Errorf("Register with an ended context returned %v", err)
	}
	if err := w.Stop(); err != nil {
		t.Error(err)
	}
	for {
		if _, err := w.Next(); err != nil {
			break
		}
	}
}

// The context of Register bounds the registration alone, and a lost session does not end it.
// Kratos' own registry gives up if the connection breaks while it registers again.
func TestOutlivesSession(t *testing.T) {
	t.Parallel()
	srv := zktest.NewServer(t)
	w, r := watch(t, open(t, srv, "reader")), open(t, srv, "service")
	ctx, cancel := context.WithCancel(t.Context())
	if err := r.Register(ctx, hello("1", "10.0.0.1:80")); err != nil {
		t.Fatal(err)
	}
	cancel()
	await(t, w, "1 10.0.0.1:80")
	lost := srv.LoseReply(zktest.Match{Client: "service", PathPrefix: kratos.DefaultRoot + "/hello/1"})
	if srv.Client("service").ExpireSession() != 1 {
		t.Fatal("no session to expire")
	}
	if err := lost.Wait(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	await(t, w, "1 10.0.0.1:80")
}

// A process that has started again takes over the node that its dead session has left.
func TestTakesOver(t *testing.T) {
	t.Parallel()
	srv := zktest.NewServer(t)
	register(t, open(t, srv, "killed"), hello("1", "10.0.0.1:80"))
	srv.Client("killed").Partition()
	r := open(t, srv, "again")
	register(t, r, hello("1", "10.0.0.2:80"))
	if all, err := r.GetService(t.Context(), "hello"); err != nil || len(all) != 1 || all[0].Endpoints[0] != "10.0.0.2:80" {
		t.Errorf("GetService returned %v, %v", all, err)
	}
	if n := len(srv.Sessions()); n != 2 {
		t.Errorf("%d sessions: the dead one is over, so this shows nothing", n)
	}
}
