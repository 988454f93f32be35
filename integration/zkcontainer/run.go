package zkcontainer

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
)

// Label is on every container and network that this package makes. Its value is another
// for each [Run] and [RunEnsemble].
const Label = "docent.zkcontainer"

// requestLimit is how long what is asked of the engine may take when the caller's
// context does not bound it.
const requestLimit = time.Minute

// run is what one call of RunEnsemble has made, and what it needs for that.
type run struct {
	label  string
	img    string
	set    *settings
	opts   []testcontainers.ContainerCustomizer // all of the caller's
	docker client.APIClient
	host   string // where clients reach the published ports
	peers  subnet // the zero value with one member

	credentials *Credentials // nil unless the keys were made here

	mu    sync.Mutex // guards the rest
	links []*Link
	ended bool
}

// subnet is the network between the members. It has addresses of our choosing, because
// Docker hands a container that comes back whatever address is free. It is internal:
// Docker never publishes ports over such a network, so the clients' ports hang on the
// other one, and stay while a member is cut off from this one.
type subnet struct {
	name   string
	prefix netip.Prefix
}

func newRun(ctx context.Context, img string, set *settings, opts []testcontainers.ContainerCustomizer) (*run, error) {
	found, err := testcontainers.ProviderDefault.GetProvider()
	if err != nil {
		return nil, fmt.Errorf("reach the engine: %w", err)
	}
	provider, ok := found.(*testcontainers.DockerProvider)
	if !ok {
		return nil, fmt.Errorf("reach the engine: testcontainers has a provider %T, which is not Docker's", found)
	}
	r := &run{label: rand.Text(), img: img, set: set, opts: opts, docker: provider.Client(), host: set.host}
	if r.host == "" {
		if r.host, err = provider.DaemonHost(ctx); err != nil {
			return nil, errors.Join(fmt.Errorf("find the engine's host: %w", err), provider.Close())
		}
	}
	if r.host == "localhost" { // of several addresses, only this one is published
		r.host = "127.0.0.1"
	}
	return r, nil
}

// bind is the address of the engine's machine at which ports are published.
func (r *run) bind() net.IP {
	if loopback(r.host) {
		return net.IPv4(127, 0, 0, 1)
	}
	return net.IPv4zero
}

// keep notes a link, which ends with the servers. It reports false when they have ended.
func (r *run) keep(l *Link) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return false
	}
	r.links = append(r.links, l)
	return true
}
