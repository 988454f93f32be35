package zkcontainer

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
)

// Label is on every container and network that this package makes. Its value is another
// for each [Run] and [RunEnsemble].
const Label = "docent.zkcontainer"

// maxMembers is what the addresses of the peers' network suffice for.
const maxMembers = 9

// Run starts one standalone server from the image and returns when it serves. Own
// options and those of testcontainers may be mixed; see the package's documentation for
// what it does not take.
//
// ctx bounds the start only. On an error the container is returned too, as far as it was
// made, so call [testcontainers.TerminateContainer] or [testcontainers.CleanupContainer]
// with it before looking at the error.
func Run(ctx context.Context, img string, opts ...testcontainers.ContainerCustomizer) (*Container, error) {
	e, err := RunEnsemble(ctx, img, 1, opts...)
	if e == nil {
		return nil, err
	}
	return e.members[0], err
}

// RunEnsemble starts n servers from the image, 1 to 9, and returns when one of them leads
// and every other follows, and each has answered a request. The servers start side by
// side. One server is standalone. Each option applies to every member.
//
// ctx bounds the start only. On an error the ensemble is returned too, as far as it was
// made, so call [Ensemble.Terminate] before looking at the error; it may be called on nil.
func RunEnsemble(ctx context.Context, img string, n int, opts ...testcontainers.ContainerCustomizer) (*Ensemble, error) {
	if n < 1 || n > maxMembers {
		return nil, fmt.Errorf("zkcontainer: an ensemble has 1 to %d members, not %d", maxMembers, n)
	}
	set, err := newSettings(opts)
	if err != nil {
		return nil, fmt.Errorf("zkcontainer: %w", err)
	}
	r, err := newRun(ctx, img, set, opts)
	if err != nil {
		return nil, fmt.Errorf("zkcontainer: %w", err)
	}
	e := &Ensemble{run: r}
	for id := 1; id <= n; id++ {
		e.members = append(e.members, &Container{id: id, run: r, ensemble: e})
	}
	bounded, cancel := context.WithTimeout(ctx, set.startLimit)
	defer cancel()
	if err := e.start(bounded); err != nil {
		return e, fmt.Errorf("zkcontainer: start %s: %w", img, err)
	}
	return e, nil
}

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
