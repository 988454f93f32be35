package grpcdocent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"

	"github.com/docent-go/docent/recipes/discovery"
)

// patience is for how long calls wait for the first list before they fail with a reason.
const patience = 5 * time.Second

// watching is a resolver: it reports the instances of a service to one client.
//
//	                                     before the first report     after it
//	a list, not stale                    report it                   report it if it differs
//	a list, stale                        report it                   nothing
//	an empty list                        ReportError, with why       as any list, after WithLastKnown
//	no list for as long as patience      ReportError                 cannot be
//	the directory has ended              ReportError                 nothing
//
// A list that is stale is that of a directory which has served another resolver before. It is
// all that is known while ZooKeeper is away, and mostly still right.
type watching struct {
	b       *Builder
	service string
	dir     *directory
	cc      resolver.ClientConn
	config  *serviceconfig.ParseResult
	tls     bool
	cancel  context.CancelFunc
	done    chan struct{}

	reported []resolver.Endpoint // last; nil before the first report
}

// ResolveNow does nothing: the directory hears of every change by itself.
func (*watching) ResolveNow(resolver.ResolveNowOptions) {}

// Close ends the resolver and waits for its goroutines. The client hears nothing after it.
func (w *watching) Close() {
	w.cancel()
	<-w.done
	w.b.leave(w.service, w.dir)
}

func (w *watching) run(ctx context.Context) {
	defer close(w.done)
	newest := make(chan *discovery.Snapshot, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- w.follow(ctx, newest)
		close(ended)
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	var empty *discovery.Snapshot // what is reported when the timer goes, after the first report
	for {
		select {
		case s := <-newest:
			switch {
			case s.Stale && w.reported != nil:
			case w.b.lastKnown > 0 && len(w.reported) > 0 && len(w.endpoints(s.Instances)) == 0:
				if empty == nil {
					timer.Reset(w.b.lastKnown)
				}
				empty = s
			default:
				timer.Stop()
				empty = nil
				w.report(s)
			}
		case <-timer.C:
			if empty != nil {
				w.report(empty)
				empty = nil
			} else if w.reported == nil {
				w.cc.ReportError(w.reason())
			}
		case err := <-ended:
			if w.reported == nil && ctx.Err() == nil && err != nil {
				w.cc.ReportError(err)
			}
			<-ended
			return
		}
	}
}

// follow hands on the newest snapshot, until ctx or the directory ends.
func (w *watching) follow(ctx context.Context, newest chan *discovery.Snapshot) error {
	for s, err := range w.dir.cache.Changes(ctx) {
		if err != nil {
			return err
		}
		select {
		case <-newest:
		default:
		}
		newest <- s
	}
	return ctx.Err()
}

// reason is why there is no list.
func (w *watching) reason() error {
	if err := w.dir.cache.Snapshot().Err; err != nil {
		return err
	}
	return errors.New("grpcdocent: the instances of " + w.service + " have not been read yet")
}

// report tells the client of a list, if it is another one.
func (w *watching) report(s *discovery.Snapshot) {
	endpoints := w.endpoints(s.Instances)
	if len(endpoints) == 0 && len(w.reported) == 0 { // gRPC would not say why there is none
		w.reported = endpoints
		w.cc.ReportError(w.none(s))
		return
	}
	if w.reported != nil && slices.EqualFunc(endpoints, w.reported, func(a, b resolver.Endpoint) bool {
		return a.Addresses[0].Equal(b.Addresses[0]) && a.Attributes.Equal(b.Attributes)
	}) {
		return
	}
	state := resolver.State{Endpoints: endpoints, Addresses: make([]resolver.Address, len(endpoints)), ServiceConfig: w.config}
	for i, e := range endpoints { // for policies that do not know Endpoints yet
		state.Addresses[i] = e.Addresses[0]
		state.Addresses[i].BalancerAttributes = e.Attributes //nolint:staticcheck // those policies look there
	}
	w.reported = endpoints
	_ = w.cc.UpdateState(state) // an error means that no call can be made; gRPC has told its callers
}

// none is why there is nothing to report.
func (w *watching) none(s *discovery.Snapshot) error {
	if n := len(s.Instances); n > 0 {
		return fmt.Errorf("grpcdocent: none of the %d instances of %s has an address for gRPC; see WithAddress", n, w.service)
	}
	return &discovery.NoInstanceError{
		Service: w.service, Base: w.b.d.Base(), Disabled: len(s.Disabled), Skipped: len(s.Skipped),
		Stale: s.Stale, Since: s.Since, Err: s.Err,
	}
}

// endpoints are those of a list, in the order of their addresses. Of instances with one address
// the first counts.
func (w *watching) endpoints(instances []*discovery.ServiceInstance) []resolver.Endpoint {
	all := make([]resolver.Endpoint, 0, len(instances))
	for _, i := range instances {
		if address := w.b.address(i, w.tls); address != "" {
			all = append(all, resolver.Endpoint{
				Addresses:  []resolver.Address{{Addr: address}},
				Attributes: attributesOf(i),
			})
		}
	}
	byAddress := func(a, b resolver.Endpoint) int { return strings.Compare(a.Addresses[0].Addr, b.Addresses[0].Addr) }
	slices.SortStableFunc(all, byAddress)
	return slices.CompactFunc(all, func(a, b resolver.Endpoint) bool { return byAddress(a, b) == 0 })
}

// addressOf is the default of WithAddress.
func addressOf(i *discovery.ServiceInstance, tls bool) string {
	for _, endpoint := range i.Endpoints {
		if u, err := url.Parse(endpoint); err == nil && (u.Scheme == "grpc" || u.Scheme == "grpcs") && u.Hostname() != "" && u.Port() != "" {
			return u.Host
		}
	}
	port := i.Port
	if (tls || port == 0) && i.TLSPort != 0 {
		port = i.TLSPort
	}
	if i.Address == "" || port == 0 {
		return ""
	}
	return net.JoinHostPort(i.Address, strconv.Itoa(port))
}
