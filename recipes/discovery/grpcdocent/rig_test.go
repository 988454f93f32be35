package grpcdocent_test

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"
	"google.golang.org/grpc/test/bufconn"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/discovery"
	"github.com/docent-go/docent/recipes/discovery/grpcdocent"
	"github.com/docent-go/docent/zktest"
)

// rig is ZooKeeper in a bubble of virtual time, with a client that registers and one that looks.
type rig struct {
	*testrig.Rig
	d, w   *discovery.ServiceDiscovery
	writer *client.Client

	mu        sync.Mutex
	listeners map[string]*bufconn.Listener // by address
	dials     map[string]int
}

func bubble(t *testing.T, f func(*rig), opts ...zktest.Option) {
	t.Helper()
	testrig.Bubble(t, func(in *testrig.Rig) {
		r := &rig{Rig: in, writer: in.Connect("writer"), listeners: map[string]*bufconn.Listener{}, dials: map[string]int{}}
		var err error
		r.w, err = discovery.New(r.writer, "/services", discovery.CuratorMap())
		r.Check(err)
		r.d, err = discovery.New(r.Connect("reader"), "/services", discovery.CuratorMap())
		r.Check(err)
		f(r)
	}, opts...)
}

func (r *rig) register(i discovery.ServiceInstance) *discovery.Registration {
	r.Helper()
	i.Service = "orders"
	reg, err := r.w.Register(r.Ctx, i)
	r.Check(err)
	r.Cleanup(func() { _ = reg.Close() })
	return reg
}

// at registers an instance whose ID is its address.
func (r *rig) at(id string) *discovery.Registration {
	r.Helper()
	return r.register(discovery.ServiceInstance{ID: id, Address: id, Port: 80})
}

func (r *rig) builder(opts ...grpcdocent.Option) *grpcdocent.Builder {
	r.Helper()
	b, err := grpcdocent.NewBuilder(r.d, opts...)
	r.Check(err)
	r.Cleanup(b.Close)
	return b
}

// seen is what a client of gRPC is told.
type seen struct {
	resolver.ClientConn

	busy chan struct{} // UpdateState waits for its end, if it is not nil

	mu     sync.Mutex
	states []resolver.State
	errs   []error
	parsed string
}

func (s *seen) UpdateState(state resolver.State) error {
	if s.busy != nil {
		<-s.busy
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.states = append(s.states, state)
	return nil
}

func (s *seen) ReportError(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.errs = append(s.errs, err)
}

func (s *seen) ParseServiceConfig(config string) *serviceconfig.ParseResult {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parsed = config
	return &serviceconfig.ParseResult{}
}

// take returns the reports since the last call, one word for each.
func (s *seen) take() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, state := range s.states {
		var addresses []string
		for i, e := range state.Endpoints {
			addresses = append(addresses, e.Addresses[0].Addr)
			want := resolver.Address{Addr: e.Addresses[0].Addr, BalancerAttributes: e.Attributes} //nolint:staticcheck // see report
			if !state.Addresses[i].Equal(want) {
				addresses = append(addresses, "differs")
			}
		}
		all = append(all, "["+strings.Join(addresses, " ")+"]")
	}
	for range s.errs {
		all = append(all, "error")
	}
	s.states, s.errs = nil, nil
	return strings.Join(all, " ")
}

func targetOf(t testing.TB, target string) resolver.Target {
	t.Helper()
	u, err := url.Parse(target)
	testrig.Check(t, err)
	return resolver.Target{URL: *u}
}

func (r *rig) build(b *grpcdocent.Builder, opts ...resolver.BuildOptions) (*seen, resolver.Resolver) {
	r.Helper()
	s := &seen{}
	res, err := b.Build(targetOf(r, "zk:///orders"), s, append(opts, resolver.BuildOptions{})[0])
	r.Check(err)
	return s, res
}

var ourFrames = regexp.MustCompile(`docent/recipes/discovery/grpcdocent\.\(`)

// serve starts a gRPC server at an address, and returns what ends it at once.
func (r *rig) serve(address string) (die func()) {
	r.Helper()
	l := bufconn.Listen(1 << 16)
	r.mu.Lock()
	r.listeners[address] = l
	r.mu.Unlock()
	s := grpc.NewServer()
	grpc_health_v1.RegisterHealthServer(s, health.NewServer())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(l)
	}()
	die = sync.OnceFunc(func() {
		r.mu.Lock()
		delete(r.listeners, address)
		r.mu.Unlock()
		s.Stop()
		<-done
	})
	r.Cleanup(die)
	return die
}

type addressed struct {
	net.Conn
	address string
}

func (a addressed) RemoteAddr() net.Addr { return named(a.address) }

type named string

func (n named) Network() string { return "bufconn" }
func (n named) String() string  { return string(n) }

// dial is the network of gRPC clients.
func (r *rig) dial(ctx context.Context, address string) (net.Conn, error) {
	r.mu.Lock()
	l := r.listeners[address]
	r.dials[address]++
	r.mu.Unlock()
	if l == nil {
		return nil, fmt.Errorf("%s: connection refused", address)
	}
	conn, err := l.DialContext(ctx)
	if err != nil {
		return nil, err
	}
	return addressed{conn, address}, nil
}

func (r *rig) dialled(address string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dials[address]
}

// client is a client of gRPC.
func (r *rig) client(b *grpcdocent.Builder, opts ...grpc.DialOption) *grpc.ClientConn {
	r.Helper()
	conn, err := grpc.NewClient("zk:///orders", append([]grpc.DialOption{
		grpc.WithResolvers(b), grpc.WithContextDialer(r.dial), grpc.WithTransportCredentials(insecure.NewCredentials()),
	}, opts...)...)
	r.Check(err)
	r.Cleanup(func() { _ = conn.Close() })
	return conn
}

// call makes a call, and returns the address of who has answered.
func (r *rig) call(ctx context.Context, conn *grpc.ClientConn, opts ...grpc.CallOption) (string, error) {
	var from peer.Peer
	_, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{}, append(opts, grpc.Peer(&from))...)
	if err != nil {
		return "", err
	}
	return from.Addr.String(), nil
}

// calls makes n calls, none of which may fail, and returns how many each has answered.
func (r *rig) calls(conn *grpc.ClientConn, n int) string {
	r.Helper()
	count := map[string]int{}
	for range n {
		who, err := r.call(r.Ctx, conn)
		r.Check(err)
		count[who]++
	}
	var all []string
	for who, n := range count {
		all = append(all, fmt.Sprintf("%s:%d", who, n))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}
