package discovery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/docent-go/docent/recipes/discovery/internal/choosing"
)

// ServiceProvider picks the instance of a service that gets the next call. It is Curator's class
// of that name, and hears of success as well as of failure.
//
//	call, err := orders.Pick(ctx)
//	if err != nil {
//		return err
//	}
//	err = send(ctx, call.Instance.HostPort())
//	call.Done(err)
//
// An instance whose calls fail is set aside for a while, see [DownInstancePolicy]. What has
// failed is forgotten when the instance comes back with another address or another time of
// registration.
//
// While ZooKeeper is away the provider goes on with the instances that it has read last.
//
// It is safe for concurrent use. It has no goroutine of its own but those of its directory.
type ServiceProvider struct {
	cache  *ServiceCache
	base   string
	filter func(*ServiceInstance) bool
	start  time.Time
	closed atomic.Bool

	mu      sync.Mutex
	seen    *Snapshot // whose list the chooser has
	passed  int       // its instances that pass the filter
	chooser *choosing.Chooser[*ServiceInstance]
}

// Provider returns a provider of the instances of a service, with a directory of its own. It does
// no I/O before Start. Without options it picks one instance after the other.
func (d *ServiceDiscovery) Provider(service string, opts ...ProviderOption) (*ServiceProvider, error) {
	s := newProviderSettings()
	for _, opt := range opts {
		if opt == nil {
			continue
		}
		if err := opt.applyProvider(s); err != nil {
			return nil, err
		}
	}
	cache, err := d.Cache(service, s.cache...)
	if err != nil {
		return nil, err
	}
	return &ServiceProvider{
		cache: cache, base: d.Base(), filter: s.filter, start: time.Now(),
		chooser: choosing.Of[*ServiceInstance](s.rules),
	}, nil
}

// Start starts the directory, see [ServiceCache.Start]: it returns with the first list of
// instances, which may be empty.
func (p *ServiceProvider) Start(ctx context.Context) error { return p.cache.Start(ctx) }

// Close ends the provider and its directory. Every later Pick returns [ErrClosed]. Calls that were
// picked before may go on.
func (p *ServiceProvider) Close() {
	p.closed.Store(true)
	p.cache.Close()
}

// Cache is the directory of the provider, to look at. Close of the provider closes it.
func (p *ServiceProvider) Cache() *ServiceCache { return p.cache }

// Pick picks an instance, other than those whose Node is among except. It waits until the service
// has been read for the first time, and for nothing else.
//
// If there is no instance, the error matches [ErrNoInstance] and is a [*NoInstanceError]. It is
// that of ctx if ctx ends while Pick waits, and [ErrClosed] after Close. Before Start Pick fails at once.
func (p *ServiceProvider) Pick(ctx context.Context, except ...string) (*Call, error) {
	if p.closed.Load() {
		return nil, ErrClosed
	}
	if p.cache.Snapshot().Zxid == 0 {
		if err := p.cache.unstarted(); err != nil {
			return nil, err
		}
		if _, err := p.cache.Wait(ctx, 0); err != nil {
			return nil, err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Since(p.start)
	snapshot := p.cache.Snapshot()
	p.follow(now, snapshot)
	picked, ok := p.chooser.Pick(now, except...)
	if !ok {
		return nil, p.none(snapshot, except)
	}
	return &Call{Instance: picked.Value, provider: p, picked: picked}, nil
}

// maxWeight bounds weights: anybody may write a node, and sums of weights must not overflow.
const maxWeight = 1 << 16

// follow gives the chooser a new list.
func (p *ServiceProvider) follow(now time.Duration, snapshot *Snapshot) {
	if snapshot == p.seen {
		return
	}
	same := p.seen != nil && slices.Equal(p.seen.Instances, snapshot.Instances)
	p.seen = snapshot
	if same {
		return
	}
	list := make([]choosing.Instance[*ServiceInstance], 0, len(snapshot.Instances))
	for _, i := range snapshot.Instances {
		if p.filter == nil || p.filter(i) {
			list = append(list, choosing.Instance[*ServiceInstance]{
				ID: i.Node, Address: i.HostPort(), Zone: i.Zone, Birth: i.Registered.UnixMilli(), Weight: min(max(1, i.Weight), maxWeight), Value: i,
			})
		}
	}
	p.passed = len(list)
	p.chooser.List(now, list)
}

// none is the error of a pick.
func (p *ServiceProvider) none(s *Snapshot, except []string) error {
	listed, ready := p.chooser.Size()
	return &NoInstanceError{
		Service: p.cache.Service(), Base: p.base,
		Filtered: len(s.Instances) - p.passed, Disabled: len(s.Disabled), Skipped: len(s.Skipped),
		Aside: listed - ready, Excepted: min(ready, len(except)),
		Stale: s.Stale, Since: s.Since, Err: s.Err,
	}
}

// Call is a call to an instance that a [ServiceProvider] has picked.
type Call struct {
	Instance *ServiceInstance

	provider *ServiceProvider
	picked   choosing.Picked[*ServiceInstance]
	done     atomic.Bool
}

// Done says that the call has ended, and how. It must be called; the first time counts.
//
//   - nil: the instance has answered. So give nil also for an answer that is an error of the
//     caller, such as "not found".
//   - an error that matches [context.Canceled]: the caller has given up, which says nothing of
//     the instance.
//   - every other error: the instance has failed, also by an answer that did not come in time.
//
// It never blocks, and may be called after Close.
func (c *Call) Done(err error) {
	if !c.done.CompareAndSwap(false, true) {
		return
	}
	verdict := choosing.Failed
	switch {
	case err == nil:
		verdict = choosing.Succeeded
	case errors.Is(err, context.Canceled):
		verdict = choosing.None
	case errors.Is(err, choosing.ErrSilent):
		verdict = choosing.Silent
	}
	p := c.provider
	p.mu.Lock()
	defer p.mu.Unlock()
	p.chooser.Done(time.Since(p.start), c.picked, verdict)
}

// ErrNoInstance is matched by every [*NoInstanceError].
var ErrNoInstance = errors.New("discovery: no instance")

// NoInstanceError says that a service has no instance that may be picked, and what it has instead.
type NoInstanceError struct {
	Service string
	Base    string // the path of the services

	Filtered int // instances that the filter refuses
	Disabled int
	Skipped  int // nodes that are no usable instance, see [Snapshot]
	Aside    int // instances that are set aside, because their calls have failed
	Excepted int // instances that the caller has excepted

	// Stale, Since and Err are those of the directory: there may be instances that it has not
	// heard of.
	Stale bool
	Since time.Time
	Err   error
}

// Error says what there is instead of an instance.
func (e *NoInstanceError) Error() string {
	var instead []string
	for _, part := range []struct {
		n    int
		text string
	}{
		{e.Aside, "set aside after failed calls"},
		{e.Excepted, "excepted by the caller"},
		{e.Disabled, "disabled"},
		{e.Filtered, "refused by the filter"},
		{e.Skipped, "unreadable (see Skipped of the snapshot)"},
	} {
		if part.n > 0 {
			instead = append(instead, fmt.Sprintf("%d %s", part.n, part.text))
		}
	}
	text := "none is registered"
	if len(instead) > 0 {
		text = strings.Join(instead, ", ")
	}
	text = fmt.Sprintf("discovery: no instance of %s below %s: %s", e.Service, e.Base, text)
	if e.Stale {
		text += "; the directory is stale"
		if e.Err != nil {
			text += ": " + e.Err.Error()
		}
	}
	return text
}

// Is reports whether target is [ErrNoInstance].
func (e *NoInstanceError) Is(target error) bool { return target == ErrNoInstance }

// Unwrap returns why the directory is stale.
func (e *NoInstanceError) Unwrap() error { return e.Err }
