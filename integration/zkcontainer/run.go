package zkcontainer

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"reflect"
	"slices"
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

	life context.Context //nolint:containedctx // ends with Terminate
	end  context.CancelCauseFunc

	mu    sync.Mutex // guards the rest
	links []*Link
	ended bool
	read  map[io.Reader][]byte // the caller's files
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
	r.host = published(r.host)
	return r, nil
}

// published is the host itself, or of the several addresses of localhost the one at which ports
// are published.
func published(host string) string {
	if host == "localhost" {
		return "127.0.0.1"
	}
	return host
}

// readFiles gives the request readers of its own. Those of the caller's options are the same for
// every member and every attempt, and can be read once.
func (r *run) readFiles(req *testcontainers.GenericContainerRequest) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	req.Files = slices.Clone(req.Files)
	for i, f := range req.Files {
		if f.Reader == nil || reflect.ValueOf(f.Reader).Kind() != reflect.Pointer {
			continue
		}
		content, ok := r.read[f.Reader]
		if !ok {
			var err error
			if content, err = io.ReadAll(f.Reader); err != nil {
				return fmt.Errorf("read what becomes %s: %w", f.ContainerFilePath, err)
			}
			if r.read == nil {
				r.read = map[io.Reader][]byte{}
			}
			r.read[f.Reader] = content
		}
		req.Files[i].Reader = bytes.NewReader(content)
	}
	return nil
}

// bind is the address of the engine's machine at which ports are published.
func (r *run) bind() netip.Addr {
	if at, err := netip.ParseAddr(r.host); err == nil && at.IsLoopback() {
		return at
	}
	return netip.IPv4Unspecified()
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
