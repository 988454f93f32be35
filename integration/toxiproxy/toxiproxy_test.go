// Package toxiproxy_test puts a real toxiproxy between clients and the servers of zkcontainer.
package toxiproxy_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2/client"
	"github.com/go-zookeeper/zk"
	"github.com/moby/moby/api/types/container"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/network"

	"github.com/docent-go/docent/integration/harness"
	"github.com/docent-go/docent/integration/zkcontainer"
)

const (
	server    = "github.com/Shopify/toxiproxy/v2/cmd/server"
	apiPort   = 8474
	firstPort = 8666
	members   = 3
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// start runs the server of toxiproxy in a container that is made of the image of ZooKeeper,
// in the network nw. It returns a client of it, and where each member's proxy is.
func start(ctx context.Context, t *testing.T, nw *testcontainers.DockerNetwork) (*toxiproxy.Client, []string) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "toxiproxy-server")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, server)
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build toxiproxy: %v\n%s", err, said)
	}
	ports := []string{fmt.Sprintf("%d/tcp", apiPort)}
	for i := range members {
		ports = append(ports, fmt.Sprintf("%d/tcp", firstPort+i))
	}
	c, err := testcontainers.Run(ctx, harness.Image(),
		testcontainers.WithHostConfigModifier(func(h *container.HostConfig) { h.Binds = []string{program + ":/toxiproxy-server:ro"} }),
		testcontainers.WithEntrypoint("/toxiproxy-server", "-host", "0.0.0.0"),
		testcontainers.WithExposedPorts(ports...),
		network.WithNetwork([]string{"toxiproxy"}, nw))
	testcontainers.CleanupContainer(t, c)
	check(t, err)
	var addrs []string
	for _, port := range ports {
		mapped, err := c.MappedPort(ctx, port)
		check(t, err)
		addrs = append(addrs, net.JoinHostPort("127.0.0.1", mapped.Port()))
	}
	api := toxiproxy.NewClient("http://" + addrs[0])
	_, err = zkcontainer.Await(ctx, func(context.Context) (map[string]*toxiproxy.Proxy, error) { return api.Proxies() })
	check(t, err)
	return api, addrs[1:]
}

// A toxiproxy in a network of the caller's reaches the members by their names, also after a
// member was killed and started again, and does to a client what it does to others.
func TestToxiproxy(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	nw, err := network.New(ctx)
	testcontainers.CleanupNetwork(t, nw)
	check(t, err)
	e := zkcontainer.StartEnsemble(t, harness.Image(), members, zkcontainer.WithHost("127.0.0.1"), network.WithNetwork(nil, nw))
	api, addrs := start(ctx, t, nw)
	for i := range members {
		_, err := api.CreateProxy(fmt.Sprintf("zk%d", i+1), fmt.Sprintf("0.0.0.0:%d", firstPort+i), fmt.Sprintf("zk%d:2181", i+1))
		check(t, err)
	}
	conn, events := harness.Dial(ctx, t, 8*time.Second, addrs...)

	toxic := func(kind, stream string, attributes toxiproxy.Attributes) {
		t.Helper()
		for i := range members {
			p, err := api.Proxy(fmt.Sprintf("zk%d", i+1))
			check(t, err)
			_, err = p.AddToxic("toxic", kind, stream, 1, attributes)
			check(t, err)
		}
	}
	pure := func() { // ends all toxics
		t.Helper()
		check(t, api.ResetState())
	}
	toxic("latency", "downstream", toxiproxy.Attributes{"latency": 300})
	began := time.Now()
	_, _, err = conn.Exists("/")
	check(t, err)
	if took := time.Since(began); took < 300*time.Millisecond {
		t.Errorf("a request took %v with a latency of 300ms", took)
	}
	pure()

	toxic("timeout", "upstream", toxiproxy.Attributes{"timeout": 0}) // nothing arrives, nothing is closed
	check(t, harness.AwaitState(ctx, events, zk.StateDisconnected))
	pure()
	check(t, harness.AwaitState(ctx, events, zk.StateHasSession))

	c := e.Member(2) // the address of its proxy survives it
	check(t, c.Kill(ctx))
	check(t, c.Start(ctx))
	_, err = e.AwaitServing(ctx)
	check(t, err)
	alone, _ := harness.Dial(ctx, t, 8*time.Second, addrs[1])
	_, _, err = alone.Exists("/")
	check(t, err)
}
