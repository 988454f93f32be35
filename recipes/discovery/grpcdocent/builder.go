package grpcdocent

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/resolver"

	"github.com/docent-go/docent/recipes/discovery"
)

// Scheme is the scheme of targets, as in zk:///orders.
const Scheme = "zk"

const roundRobin = `{"loadBalancingConfig":[{"round_robin":{}}]}`

// Builder is the [resolver.Builder] of the services below one base path. One builder serves any
// number of clients: those of one service share a directory. It is safe for concurrent use.
//
// A client that has been idle ends its resolver, and makes another one at its next call. So a
// directory that nobody uses stays for a while, see [WithLinger].
type Builder struct {
	d         *discovery.ServiceDiscovery
	authority string
	config    string
	lastKnown time.Duration
	linger    time.Duration
	cache     []discovery.CacheOption
	address   func(i *discovery.ServiceInstance, tls bool) string

	mu     sync.Mutex
	closed bool
	shared map[string]*directory
}

var _ resolver.Builder = (*Builder)(nil)

// directory is that of a service, and how many resolvers use it.
type directory struct {
	cache *discovery.ServiceCache
	users int
	idle  *time.Timer // closes it; set while users is 0
}

// Option configures a [Builder].
type Option interface{ apply(b *Builder) error }

type option func(b *Builder) error

func (o option) apply(b *Builder) error { return o(b) }

// WithAuthority names the ZooKeeper of the builder: targets may say zk://name/orders then. Without
// it, and for every other name, such a target is refused. It has no influence on TLS.
func WithAuthority(name string) Option {
	return option(func(b *Builder) error { b.authority = name; return nil })
}

// WithServiceConfig sets the service config that clients get, in JSON. It takes the place of
// round_robin. NewBuilder refuses what gRPC refuses, such as a balancing policy that is not
// registered yet.
func WithServiceConfig(config string) Option {
	return option(func(b *Builder) error {
		if config == "" {
			return errors.New("grpcdocent: an empty service config: use WithoutServiceConfig for none")
		}
		if err := valid(config); err != nil {
			return fmt.Errorf("grpcdocent: WithServiceConfig: correct the config: %w", err)
		}
		b.config = config
		return nil
	})
}

// valid returns why gRPC refuses a service config. Only a client of gRPC can tell; this one is never used.
func valid(config string) error {
	conn, err := grpc.NewClient("passthrough:///", grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultServiceConfig(config))
	if err != nil {
		return err
	}
	return conn.Close()
}

// WithoutServiceConfig leaves the service config to the client: to its option
// WithDefaultServiceConfig, or else to gRPC, which sends all calls to one instance.
func WithoutServiceConfig() Option {
	return option(func(b *Builder) error { b.config = ""; return nil })
}

// WithLastKnown goes on with the last instances for that long after the last one has gone. Without
// it calls fail at once, and connections are closed.
func WithLastKnown(d time.Duration) Option {
	return option(func(b *Builder) error {
		if d < 0 {
			return fmt.Errorf("grpcdocent: last known instances for %v: it must not be negative", d)
		}
		b.lastKnown = d
		return nil
	})
}

// WithLinger sets for how long a directory stays that no client uses. The default is 5 minutes.
func WithLinger(d time.Duration) Option {
	return option(func(b *Builder) error {
		if d < 0 {
			return fmt.Errorf("grpcdocent: a linger of %v: it must not be negative", d)
		}
		b.linger = d
		return nil
	})
}

// WithAddress says at which "host:port" an instance speaks gRPC; it is left out if that is empty.
// tls is whether the client's credentials are others than insecure ones. By default it is that of
// the first of Endpoints with the scheme grpc or grpcs, a host and a port, if there is one. Otherwise it is the address
// with the TLS port if tls is true and there is one, and else with the port. address runs on a
// goroutine of the builder and must not block.
func WithAddress(address func(i *discovery.ServiceInstance, tls bool) string) Option {
	return option(func(b *Builder) error {
		if address == nil {
			return errors.New("grpcdocent: WithAddress needs a function")
		}
		b.address = address
		return nil
	})
}

// WithCache configures the directories.
func WithCache(opts ...discovery.CacheOption) Option {
	return option(func(b *Builder) error { b.cache = append(b.cache, opts...); return nil })
}

// NewBuilder returns a builder for the services of d. It does no I/O.
func NewBuilder(d *discovery.ServiceDiscovery, opts ...Option) (*Builder, error) {
	if d == nil {
		return nil, errors.New("grpcdocent: the ServiceDiscovery is nil; make one with discovery.New")
	}
	b := &Builder{d: d, config: roundRobin, linger: 5 * time.Minute, address: addressOf, shared: map[string]*directory{}}
	for _, opt := range opts {
		if opt == nil {
			continue
		}
		if err := opt.apply(b); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// Scheme is [Scheme].
func (b *Builder) Scheme() string { return Scheme }

// Close ends the directories and waits for their goroutines. Clients that are still there keep their
// instances, and hear of no change any more. Close does not close the client of ZooKeeper.
func (b *Builder) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for service, dir := range b.shared {
		if dir.idle != nil {
			dir.idle.Stop()
		}
		delete(b.shared, service)
		dir.cache.Close()
	}
}

// background is the context of what lasts for longer than a call of gRPC.
func background() context.Context {
	return context.Background() //nolint:forbidigo // gRPC gives its resolvers no context
}

// use returns the directory of a service for one more resolver.
func (b *Builder) use(ctx context.Context, service string) (*directory, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, fmt.Errorf("grpcdocent: the builder is closed: %w", discovery.ErrClosed)
	}
	dir := b.shared[service]
	if dir == nil {
		cache, err := b.d.Cache(service, append(slices.Clone(b.cache), discovery.WithLazyStart())...)
		if err == nil {
			err = cache.Start(ctx) // returns at once
		}
		if err != nil {
			return nil, fmt.Errorf("grpcdocent: %w", err)
		}
		dir = &directory{cache: cache}
		b.shared[service] = dir
	}
	if dir.idle != nil {
		dir.idle.Stop()
		dir.idle = nil
	}
	dir.users++
	return dir, nil
}

// leave says that a resolver does not use a directory any more.
func (b *Builder) leave(service string, dir *directory) {
	b.mu.Lock()
	defer b.mu.Unlock()
	dir.users--
	if dir.users > 0 || b.closed {
		return
	}
	var idle *time.Timer
	idle = time.AfterFunc(b.linger, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if dir.idle != idle { // somebody uses it again
			return
		}
		delete(b.shared, service)
		dir.cache.Close()
	})
	dir.idle = idle
}

// Build is for gRPC: it returns the resolver of a target. It never waits. Its error is one of the
// target: the authority is another than that of [WithAuthority], or there is no name of a service.
func (b *Builder) Build(target resolver.Target, cc resolver.ClientConn, opts resolver.BuildOptions) (resolver.Resolver, error) {
	if host := target.URL.Host; host != "" && host != b.authority {
		return nil, fmt.Errorf("grpcdocent: the target %v names the ZooKeeper %q, and this builder has none of that name: write %s:///%s, or use WithAuthority",
			&target.URL, host, Scheme, target.Endpoint())
	}
	service := strings.TrimPrefix(target.Endpoint(), "/")
	if target.URL.Opaque != "" { // zk:orders; only a path comes unescaped
		var err error
		if service, err = url.PathUnescape(service); err != nil {
			return nil, fmt.Errorf("grpcdocent: the target %v: %w", &target.URL, err)
		}
	}
	if service == "" {
		return nil, fmt.Errorf("grpcdocent: the target %v names no service: write %s:///service", &target.URL, Scheme)
	}
	if target.URL.RawQuery != "" {
		return nil, fmt.Errorf("grpcdocent: the target %v has a query, which has no meaning here", &target.URL)
	}
	if target.URL.Fragment != "" {
		return nil, fmt.Errorf("grpcdocent: the target %v has a fragment, which has no meaning here", &target.URL)
	}
	dir, err := b.use(background(), service)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(background())
	r := &watching{b: b, service: service, dir: dir, cc: cc, cancel: cancel, done: make(chan struct{})}
	if b.config != "" && !opts.DisableServiceConfig {
		r.config = cc.ParseServiceConfig(b.config)
	}
	if opts.DialCreds != nil {
		r.tls = opts.DialCreds.Info().SecurityProtocol != "insecure"
	}
	go r.run(ctx)
	return r, nil
}
