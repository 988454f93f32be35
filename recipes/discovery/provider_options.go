package discovery

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/docent-go/docent/recipes/discovery/internal/choosing"
)

// ProviderOption configures a [ServiceProvider].
type ProviderOption interface {
	applyProvider(s *providerSettings) error
}

type providerSettings struct {
	rules  choosing.Rules
	filter func(*ServiceInstance) bool
	cache  []CacheOption
}

func newProviderSettings() *providerSettings {
	return &providerSettings{rules: choosing.Rules{
		Errors: DefaultDownInstancePolicy.Errors, Aside: DefaultDownInstancePolicy.Aside, MaxAside: DefaultDownInstancePolicy.MaxAside,
		Panic: 0.5, Intn: rand.IntN,
	}}
}

type providerOption func(s *providerSettings) error

func (o providerOption) applyProvider(s *providerSettings) error { return o(s) }

// Strategy is an order in which a [ServiceProvider] picks instances: Curator's ProviderStrategy.
type Strategy int

// The strategies.
const (
	// RoundRobin picks one after the other, in the order of their nodes' names. Each provider
	// begins anywhere. It is the default.
	RoundRobin Strategy = iota
	// Random picks any. An instance with twice the Weight is picked twice as often. One without
	// a Weight counts as one with 1, and a Weight above 65,536 as that.
	Random
	// LeastLoaded draws two as Random does, and picks the one with fewer calls of this provider
	// under way and failures in a row, in relation to their weights. Without a DownInstancePolicy
	// failures do not count: an instance that fails at once is then picked the most.
	LeastLoaded
)

// WithStrategy sets the strategy.
func WithStrategy(strategy Strategy) ProviderOption {
	return providerOption(func(s *providerSettings) error {
		switch strategy {
		case RoundRobin:
			s.rules.Strategy = choosing.RoundRobin
		case Random:
			s.rules.Strategy = choosing.Random
		case LeastLoaded:
			s.rules.Strategy = choosing.LeastLoaded
		default:
			return fmt.Errorf("discovery: unknown strategy %d", strategy)
		}
		return nil
	})
}

// WithSticky makes the provider stay with the instance that it has picked, until that goes, is
// disabled, is set aside, or is excepted. It is Curator's StickyStrategy; the strategy picks the next.
func WithSticky() ProviderOption {
	return providerOption(func(s *providerSettings) error {
		s.rules.Sticky = true
		return nil
	})
}

// WithZone picks instances of that zone for as long as one of them may be picked, and others only
// then. It looks at [ServiceInstance.Zone].
func WithZone(zone string) ProviderOption {
	return providerOption(func(s *providerSettings) error {
		s.rules.Zone = zone
		return nil
	})
}

// DownInstancePolicy says when an instance is set aside: Curator's class of that name.
//
// After Errors failures in a row, none of which is later than Aside after the one before, the
// instance is not picked for Aside. Then one call tries it. If that call fails, the instance is
// set aside for twice as long, up to MaxAside. If any call to it succeeds, it is as good as new.
// A try that has not ended after Aside lets another call try.
type DownInstancePolicy struct {
	Errors   int           // 0: instances are never set aside, and failures do not count
	Aside    time.Duration // positive
	MaxAside time.Duration // at least Aside
}

// DefaultDownInstancePolicy is that of a provider without [WithDownInstancePolicy]. The first two
// numbers are Curator's.
var DefaultDownInstancePolicy = DownInstancePolicy{Errors: 2, Aside: 30 * time.Second, MaxAside: 5 * time.Minute} //nolint:gochecknoglobals // a constant

// WithDownInstancePolicy sets when an instance is set aside.
func WithDownInstancePolicy(policy DownInstancePolicy) ProviderOption {
	return providerOption(func(s *providerSettings) error {
		if policy.Errors < 0 || policy.Errors > 0 && (policy.Aside <= 0 || policy.MaxAside < policy.Aside) {
			return fmt.Errorf("discovery: DownInstancePolicy %+v: Errors must not be negative, Aside must be positive, and MaxAside at least Aside", policy)
		}
		s.rules.Errors, s.rules.Aside, s.rules.MaxAside = policy.Errors, policy.Aside, policy.MaxAside
		return nil
	})
}

// WithPanicThreshold sets from which share of the instances on, from 0 to 1, nothing counts as set
// aside. If more than that share is set aside, Pick takes any instance of any zone: probably the
// fault is not theirs. Two rules stay. A Pick that excepts somebody, as after a failure, first takes
// an instance that is not set aside. Instances that did not answer a dial of package discoveryhttp
// come last.
//
// The default is 0.5. With 1 Pick never takes an instance that is set aside, and if all are, it
// returns [ErrNoInstance].
func WithPanicThreshold(share float64) ProviderOption {
	return providerOption(func(s *providerSettings) error {
		if !(share >= 0 && share <= 1) {
			return fmt.Errorf("discovery: panic threshold %v: it must be from 0 to 1", share)
		}
		s.rules.Panic = share
		return nil
	})
}

// WithLastKnown goes on with the last instances for that long after the list has become empty.
// It is for services whose instances never all go. Without it an empty list is what Pick reports.
// It has nothing to do with a lost connection, during which the list never changes.
func WithLastKnown(d time.Duration) ProviderOption {
	return providerOption(func(s *providerSettings) error {
		if d < 0 {
			return fmt.Errorf("discovery: last known instances for %v: it must not be negative", d)
		}
		s.rules.Keep = d
		return nil
	})
}

// WithFilter leaves out the instances for which accept is false: Curator's InstanceFilter. It is
// called once for each instance of each list, under a lock of the provider: it must not block, nor
// call the provider.
func WithFilter(accept func(*ServiceInstance) bool) ProviderOption {
	return providerOption(func(s *providerSettings) error {
		if accept == nil {
			return errors.New("discovery: WithFilter needs a function")
		}
		s.filter = accept
		return nil
	})
}

// WithCache configures the directory of the provider.
func WithCache(opts ...CacheOption) ProviderOption {
	return providerOption(func(s *providerSettings) error {
		s.cache = append(s.cache, opts...)
		return nil
	})
}
