package harness

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	tcnetwork "github.com/testcontainers/testcontainers-go/network"
)

// subnet is a container network with addresses of our choosing. Docker hands a
// restarted container whatever address is free, and a partition must go on holding.
type subnet struct {
	name   string
	prefix netip.Prefix
}

// address is that of node id, counted from 1.
func (s subnet) address(id int) netip.Addr {
	a := s.prefix.Addr().As4()
	a[3] = byte(10 + id)
	return netip.AddrFrom4(a)
}

// newSubnet makes a network and removes it when the test ends. Another process may
// take the same range between the look and the creation, so it tries several.
func newSubnet(ctx context.Context, t testing.TB) (subnet, error) {
	t.Helper()
	var last error
	for range 20 {
		prefix := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(128 + rand.IntN(100)), byte(rand.IntN(256)), 0}), 24)
		if inUse(prefix) {
			continue
		}
		made, err := tcnetwork.New(ctx, tcnetwork.CustomizeNetworkOption(func(o *client.NetworkCreateOptions) error {
			maps.Copy(o.Labels, labels(t))
			o.IPAM = &network.IPAM{Driver: "default", Config: []network.IPAMConfig{{Subnet: prefix}}}
			return nil
		}))
		if err == nil {
			cleanup(ctx, t, "remove network", made.Remove)
			return subnet{name: made.Name, prefix: prefix}, nil
		}
		last = err
		if !strings.Contains(err.Error(), "overlap") {
			break
		}
	}
	return subnet{}, fmt.Errorf("create network: %w", errors.Join(last, ctx.Err()))
}

// inUse reports whether an interface of this host has an address in the range.
func inUse(prefix netip.Prefix) bool {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	for _, a := range addrs {
		other, err := netip.ParsePrefix(a.String())
		if err == nil && other.Overlaps(prefix) {
			return true
		}
	}
	return false
}

// freePort is a port of 127.0.0.1 without a listener. It lies below the range that
// the kernel takes for outgoing connections, so that it is still free when its node
// is started again.
func freePort(ctx context.Context) (int, error) {
	var last error
	for range 50 {
		port := 20000 + rand.IntN(12000)
		l, err := new(net.ListenConfig).Listen(ctx, "tcp4", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			last = err
			continue
		}
		if err := l.Close(); err != nil {
			return 0, fmt.Errorf("close probe of port %d: %w", port, err)
		}
		return port, nil
	}
	return 0, fmt.Errorf("find a free port: %w", last)
}
