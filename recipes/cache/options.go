package cache

import (
	"errors"
	"fmt"
)

// Option configures a cache.
type Option interface{ apply(*settings) error }

// settings are what the options say.
type settings struct {
	depth   int  // below the path; -1 for all
	fixed   bool // the kind of the cache says the depth
	filter  func(path string) bool
	levels  opened // of a typed tree
	limits  Limits
	oneShot bool
	drop    bool
	lazy    bool
	narrow  bool   // the cache hears nothing of nodes below its own
	recipe  string // for observers, "" for the type
	loose   bool   // snapshots need not be states that the tree had
}

type optionFunc func(*settings) error

func (f optionFunc) apply(s *settings) error { return f(s) }

func newSettings(depth int, opts []Option) (settings, error) {
	s := settings{depth: depth, fixed: depth >= 0, limits: DefaultLimits}
	var err error
	for _, o := range opts {
		if o != nil {
			err = errors.Join(err, o.apply(&s))
		}
	}
	return s, err
}

// Limits bound what a cache keeps. Zero means the default of its field, a negative
// value no limit.
type Limits struct {
	Nodes int   // how many nodes
	Bytes int64 // the data of all nodes together, before decoding
	Depth int   // how many levels below the path
}

// DefaultLimits are the limits of a cache without [WithLimits].
var DefaultLimits = Limits{Nodes: 100_000, Bytes: 256 << 20, Depth: 128} //nolint:gochecknoglobals // a constant

// WithLimits bounds what the cache keeps. A tree that exceeds a limit makes the cache
// stale with a [*LimitError]; nothing is left out silently.
func WithLimits(l Limits) Option {
	return optionFunc(func(s *settings) error {
		if l.Nodes == 0 {
			l.Nodes = DefaultLimits.Nodes
		}
		if l.Bytes == 0 {
			l.Bytes = DefaultLimits.Bytes
		}
		if l.Depth == 0 {
			l.Depth = DefaultLimits.Depth
		}
		s.limits = l
		return nil
	})
}

// WithDepth leaves out nodes more than n levels below the path. With 0 there is only
// the node at the path. It is the maxDepth of Curator's TreeCache, and has no effect
// on a [Value], on [Children] or on a typed tree.
func WithDepth(n int) Option {
	return optionFunc(func(s *settings) error {
		if n < 0 {
			return fmt.Errorf("cache: depth %d is negative", n)
		}
		if !s.fixed {
			s.depth = n
		}
		return nil
	})
}

// WithFilter leaves out the nodes for which accept is false, and all below them. The
// node at the path of the cache is never left out. accept must always say the same of
// the same path. If it changes its mind, nodes that it now refuses stay as they were,
// and others are missing, until the cache reads their directory again. It runs on the
// goroutine of the cache, so it must not block or close the cache. Its panic ends the
// program.
func WithFilter(accept func(path string) bool) Option {
	return optionFunc(func(s *settings) error {
		if accept == nil {
			return errors.New("cache: WithFilter without a function")
		}
		s.filter = accept
		return nil
	})
}

// WithOneShotWatches makes the cache use one-shot watches where the servers have
// persistent ones too. Each node then costs two watches on the server, and a read of its own.
// While nodes change in every round of reads there is no new snapshot, and the cache is Stale;
// a [LooseTree] is not.
// It is for clients that watch the same paths by other means on servers before ZooKeeper 3.9.
func WithOneShotWatches() Option {
	return optionFunc(func(s *settings) error { s.oneShot = true; return nil })
}

// DropUndecodable gives a node whose data cannot be decoded a zero value. Without it
// the node keeps its last good value. Either way its Err is set.
func DropUndecodable() Option {
	return optionFunc(func(s *settings) error { s.drop = true; return nil })
}

// WithLazyStart makes Start return at once; the cache reads the nodes in the background, and
// tries again for as long as it lives. Until then the snapshot is empty and the state is
// [Syncing], with the reason. It is for a service that starts without its servers, with
// client.WithLazyConnect.
func WithLazyStart() Option {
	return optionFunc(func(s *settings) error { s.lazy = true; return nil })
}

// WithRecipe names the recipe that is built on the cache, for client.CacheInfo.Recipe and so for
// metrics. The default is the type of the cache.
func WithRecipe(name string) Option {
	return optionFunc(func(s *settings) error {
		s.recipe = name
		return nil
	})
}
