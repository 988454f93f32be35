package gokit_test

import (
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/go-kit/kit/sd"
	kit "github.com/go-kit/kit/sd/zk"
	"github.com/go-kit/log"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/docs/examples/ports/gokit"
	"github.com/docent-go/docent/zktest"
)

const (
	patience = 20 * time.Second // for what must happen
	at       = "/gokit.test"
)

func connect(t *testing.T, srv *zktest.Server, name string) *client.Client {
	t.Helper()
	c, err := client.Connect(t.Context(), "zk:2181",
		client.WithDialer(srv.Client(name).DialContext),
		client.WithSessionTimeout(4*time.Second),
		client.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func open(t *testing.T, c *client.Client) *gokit.Client {
	t.Helper()
	k := gokit.New(t.Context(), c)
	t.Cleanup(k.Stop)
	return k
}

// follow returns go-kit's own instancer on the client, and a function that waits for instances.
func follow(t *testing.T, c kit.Client) (await func(want ...string)) {
	t.Helper()
	instancer, err := kit.NewInstancer(c, at+"/adder", log.NewNopLogger())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(instancer.Stop)
	events := make(chan sd.Event, 64)
	instancer.Register(events)
	return func(want ...string) {
		t.Helper()
		end := time.After(patience)
		for {
			select {
			case e := <-events:
				slices.Sort(e.Instances)
				if e.Err == nil && slices.Equal(e.Instances, want) {
					return
				}
			case <-end:
				t.Fatalf("the instances are not %q", want)
			}
		}
	}
}

func service(data string) *kit.Service {
	return &kit.Service{Path: at, Name: "adder", Data: []byte(data)}
}

// go-kit's own instancer and registrar work with the client.
func TestDiscovery(t *testing.T) {
	t.Parallel()
	srv := zktest.NewServer(t)
	await, k := follow(t, open(t, connect(t, srv, "reader"))), open(t, connect(t, srv, "service"))
	await()
	a := kit.NewRegistrar(k, *service("10.0.0.1:80"), log.NewNopLogger())
	b := kit.NewRegistrar(k, *service("10.0.0.2:80"), log.NewNopLogger())
	a.Register()
	b.Register()
	await("10.0.0.1:80", "10.0.0.2:80")
	a.Deregister() // which go-kit's own client cannot while there is another instance
	await("10.0.0.2:80")
	if err := k.Deregister(service("other")); !errors.Is(err, kit.ErrNotRegistered) {
		t.Errorf("Deregister of what is not registered returned %v", err)
	}
	k.Stop()
	await()
	if err := k.CreateParentNodes(at); !errors.Is(err, kit.ErrClientClosed) {
		t.Errorf("after Stop CreateParentNodes returned %v", err)
	}
}

// A service comes back after a lost session, which with go-kit's own client it never does.
// The instancer follows through an outage that is longer than the session.
func TestOutage(t *testing.T) {
	t.Parallel()
	srv := zktest.NewServer(t)
	reader := connect(t, srv, "reader")
	await, k := follow(t, open(t, reader)), open(t, connect(t, srv, "service"))
	if err := k.Register(service("10.0.0.1:80")); err != nil {
		t.Fatal(err)
	}
	await("10.0.0.1:80")
	srv.Client("reader").Refuse()
	srv.Client("reader").Cut()
	srv.Client("service").ExpireSession()
	for change := range reader.States(t.Context()) {
		if change.State == client.Lost {
			break
		}
	}
	srv.Client("reader").Accept()
	if err := k.Register(service("10.0.0.2:80")); err != nil {
		t.Fatal(err)
	}
	await("10.0.0.1:80", "10.0.0.2:80")
	for _, name := range srv.Children(at + "/adder") {
		if node, ok := srv.Node(at + "/adder/" + name); !ok || node.Stat.EphemeralOwner == 0 {
			t.Errorf("%s outlives its process: %v, %v", name, node, ok)
		}
	}
}
