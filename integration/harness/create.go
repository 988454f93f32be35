package harness

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/testcontainers/testcontainers-go"
	tclog "github.com/testcontainers/testcontainers-go/log"
)

// create makes and starts the node's container. The port found free can be taken
// before the engine binds it, so it tries some.
func (n *Node) create(ctx context.Context, t testing.TB, cfg *config, networkName string, ips []string) error {
	t.Helper()
	var last error
	for range 5 {
		port, err := freePort(ctx)
		if err != nil {
			return err
		}
		n.port = port
		if cfg.keys != nil {
			if n.secure, err = freePort(ctx); err != nil {
				return err
			}
		}
		made, err := testcontainers.GenericContainer(ctx, testcontainers.GenericContainerRequest{
			ContainerRequest: n.request(t, cfg, networkName, ips),
			Started:          true,
			Logger:           tclog.NewNoopLogger(),
		})
		if made != nil {
			n.container = made
			cleanup(ctx, t, "clean up", func(ctx context.Context) error { return n.remove(ctx, t) })
		}
		if err == nil {
			return nil
		}
		last = fmt.Errorf("create node %d: %w", n.id, err)
		if !portTaken(err) {
			break
		}
	}
	return last
}

func portTaken(err error) bool {
	text := err.Error()
	return strings.Contains(text, "already allocated") || strings.Contains(text, "address already in use")
}

func (n *Node) request(t testing.TB, cfg *config, networkName string, ips []string) testcontainers.ContainerRequest {
	t.Helper()
	var exposed []string
	bindings := network.PortMap{}
	for inside, port := range n.ports() {
		exposed = append(exposed, inside.String())
		bindings[inside] = []network.PortBinding{{HostIP: netip.AddrFrom4([4]byte{127, 0, 0, 1}), HostPort: strconv.Itoa(port)}}
	}
	return testcontainers.ContainerRequest{
		Image:        cfg.image,
		Entrypoint:   []string{"/bin/bash", "/docent/start.sh"},
		Cmd:          []string{},
		Labels:       labels(t),
		Env:          map[string]string{"JVMFLAGS": cfg.jvmFlags(), "JMXDISABLE": "true"},
		ExposedPorts: exposed,
		Networks:     []string{networkName},
		Files: append([]testcontainers.ContainerFile{
			{Reader: bytes.NewReader(startScript), ContainerFilePath: "/docent/start.sh", FileMode: 0o755},
			{Reader: bytes.NewReader(cfg.zooCfg(ips)), ContainerFilePath: "/conf/zoo.cfg", FileMode: 0o644},
			{Reader: strings.NewReader(strconv.Itoa(n.id)), ContainerFilePath: "/data/myid", FileMode: 0o644},
		}, cfg.keyFiles(n.id)...),
		ConfigModifier:     func(c *container.Config) { c.Hostname = "zk" + strconv.Itoa(n.id) },
		HostConfigModifier: func(h *container.HostConfig) { h.PortBindings = bindings },
		EndpointSettingsModifier: func(s map[string]*network.EndpointSettings) {
			if own := s[networkName]; own != nil {
				own.IPAMConfig = &network.EndpointIPAMConfig{IPv4Address: netip.MustParseAddr(n.ip)}
			}
		},
	}
}
