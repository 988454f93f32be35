package zkcontainer

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"sync"

	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
)

// address is that of member id, counted from 1. The first ones are the engine's.
func (s subnet) address(id int) netip.Addr {
	a := s.prefix.Addr()
	for range 10 + id {
		a = a.Next()
	}
	return a
}

// alias is the name of a member in the networks that it is in.
func alias(id int) string { return "zk" + strconv.Itoa(id) }

// choosing lets one start of this process choose a range at a time.
var choosing sync.Mutex //nolint:gochecknoglobals // what it guards, the engine's ranges, is global

// newSubnet makes the network. The engine takes the addresses of a container only in a
// range that was asked for, and only the engine knows which ranges are free. So the engine
// chooses one for a first network, which makes way for the second. Another process may
// take the range in between; then it is done again.
func (r *run) newSubnet(ctx context.Context) error {
	choosing.Lock()
	defer choosing.Unlock()
	var last error
	for range 20 {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if last = r.trySubnet(ctx); last == nil {
			break
		}
		if strings.Contains(last.Error(), "address pool") { // the engine has no range left
			last = fmt.Errorf("%w (docker network prune removes networks that nobody uses)", last)
			break
		}
		if !strings.Contains(last.Error(), "overlap") {
			break
		}
	}
	if last != nil {
		return fmt.Errorf("create network: %w", last)
	}
	return nil
}

// trySubnet does not end with ctx: of a request that was given up the engine may make
// something afterwards.
func (r *run) trySubnet(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestLimit)
	defer cancel()
	probe, err := r.createNetwork(ctx, nil)
	if err != nil {
		return err
	}
	prefix, err := r.range4(ctx, probe)
	_, removing := r.docker.NetworkRemove(ctx, probe, client.NetworkRemoveOptions{})
	if err = errors.Join(err, removing); err != nil {
		return err
	}
	name, err := r.createNetwork(ctx, &network.IPAM{Driver: "default", Config: []network.IPAMConfig{{Subnet: prefix}}})
	if err != nil {
		return err
	}
	r.peers = subnet{name: name, prefix: prefix}
	return nil
}

// createNetwork returns the name of the network.
func (r *run) createNetwork(ctx context.Context, ipam *network.IPAM) (string, error) {
	name := "zkcontainer-" + rand.Text()
	labels := testcontainers.GenericLabels()
	labels[Label] = r.label
	_, err := r.docker.NetworkCreate(ctx, name, client.NetworkCreateOptions{Driver: "bridge", Internal: true, Labels: labels, IPAM: ipam})
	return name, err
}

// range4 is the range of IPv4 addresses of a network.
func (r *run) range4(ctx context.Context, id string) (netip.Prefix, error) {
	made, err := r.docker.NetworkInspect(ctx, id, client.NetworkInspectOptions{})
	if err != nil {
		return netip.Prefix{}, err
	}
	for _, c := range made.Network.IPAM.Config {
		if c.Subnet.Addr().Is4() && c.Subnet.Bits() <= 27 {
			return c.Subnet.Masked(), nil
		}
	}
	return netip.Prefix{}, fmt.Errorf("network %s has no range of 32 IPv4 addresses", id)
}

// connect puts a member's container into the network between the members.
func (r *run) connect(ctx context.Context, id int, containerID string) error {
	_, err := r.docker.NetworkConnect(ctx, r.peers.name, client.NetworkConnectOptions{
		Container: containerID,
		EndpointConfig: &network.EndpointSettings{
			Aliases:    []string{alias(id)},
			IPAMConfig: &network.EndpointIPAMConfig{IPv4Address: r.peers.address(id)},
		},
	})
	if err != nil {
		return fmt.Errorf("connect member %d to its peers: %w", id, err)
	}
	return nil
}
