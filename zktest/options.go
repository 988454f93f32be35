package zktest

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// Option configures a server. Options come from the With functions.
type Option interface{ apply(*config) }

type optionFunc func(*config)

func (f optionFunc) apply(c *config) { f(c) }

// config is what options set.
type config struct {
	ctx                    context.Context //nolint:containedctx // parent of the server's own
	seed                   uint64
	version                Version
	traits                 traits // of the version
	profile                Profile
	quirks                 Quirk
	lacking                map[Op]bool
	tick                   time.Duration
	minTimeout, maxTimeout time.Duration
	latencyMin, latencyMax time.Duration
	sweepEvery             time.Duration
	maxFrame               int
	extended               bool
	logDelay               time.Duration
	superDigest            string
	clock                  func() time.Time
	listen                 string
	logSize                int
	syncLimit              int
	electionTime           time.Duration
	fatal                  func(error) // set by NewServer
}

// defaultMaxFrame is ZooKeeper's default for jute.maxbuffer.
const defaultMaxFrame = 0xfffff

func newConfig(opts []Option) (config, error) {
	c := config{
		ctx:        lifetime{},
		version:    ZooKeeper39,
		lacking:    map[Op]bool{},
		tick:       2 * time.Second,
		sweepEvery: time.Minute,
		maxFrame:   defaultMaxFrame,
		clock:      time.Now,
		logSize:    10_000,

		syncLimit:    5,
		electionTime: 500 * time.Millisecond,
	}
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	c.seed = binary.BigEndian.Uint64(b[:])
	for _, o := range opts {
		o.apply(&c)
	}
	c.applyProfile()
	if c.minTimeout == 0 {
		c.minTimeout = 2 * c.tick
	}
	if c.maxTimeout == 0 {
		c.maxTimeout = max(20*c.tick, c.minTimeout)
	}
	var known bool
	if c.traits, known = c.version.traits(); !known {
		return c, fmt.Errorf("zktest: there is no %v", c.version)
	}
	return c, c.check()
}

func (c *config) check() error {
	var errs []error
	bad := func(cond bool, format string, args ...any) {
		if cond {
			errs = append(errs, fmt.Errorf("zktest: "+format, args...))
		}
	}
	bad(c.profile < 0 || c.profile > ClickHouseKeeper, "there is no profile %d", c.profile)
	bad(c.quirks&^allQuirks != 0, "there are no quirks %#x", uint16(c.quirks&^allQuirks))
	bad(c.tick < time.Millisecond, "tick %v is less than a millisecond", c.tick)
	bad(c.minTimeout <= 0 || c.maxTimeout < c.minTimeout,
		"session timeouts [%v, %v] are no range", c.minTimeout, c.maxTimeout)
	bad(c.latencyMin < 0 || c.latencyMax < c.latencyMin,
		"latencies [%v, %v] are no range", c.latencyMin, c.latencyMax)
	bad(c.sweepEvery <= 0, "container interval %v is not positive", c.sweepEvery)
	bad(c.maxFrame <= 0, "frame limit %d is not positive", c.maxFrame)
	bad(c.logDelay < 0, "commit delay %v is negative", c.logDelay)
	bad(c.clock == nil, "clock is nil")
	bad(c.syncLimit < 1, "sync limit %d is not positive", c.syncLimit)
	bad(c.electionTime <= 0, "election time %v is not positive", c.electionTime)
	return errors.Join(errs...)
}

// lifetime is the root of the contexts that hooks get: it never ends by
// itself, the server's Close ends what is derived from it.
type lifetime struct{}

func (lifetime) Deadline() (time.Time, bool) { return time.Time{}, false }
func (lifetime) Done() <-chan struct{}       { return nil }
func (lifetime) Err() error                  { return nil }
func (lifetime) Value(any) any               { return nil }

// WithSeed sets the seed of all random draws. The default is a random one,
// which [NewServer] prints when the test fails.
func WithSeed(seed uint64) Option { return optionFunc(func(c *config) { c.seed = seed }) }

// WithVersion selects the ZooKeeper release to behave like; the default is
// [ZooKeeper39].
func WithVersion(v Version) Option { return optionFunc(func(c *config) { c.version = v }) }

// WithTick sets ZooKeeper's tickTime, by default 2 s. Sessions expire at
// multiples of the tick, so between their timeout and one tick later, and the
// limits of session timeouts follow from it unless WithSessionTimeouts sets
// them.
func WithTick(d time.Duration) Option { return optionFunc(func(c *config) { c.tick = d }) }

// WithSessionTimeouts sets the range into which requested session timeouts are
// clamped, by default 2 to 20 ticks. A zero keeps the default of its side.
func WithSessionTimeouts(lo, hi time.Duration) Option {
	return optionFunc(func(c *config) { c.minTimeout, c.maxTimeout = lo, hi })
}

// WithLatency makes every frame of every in-memory connection take a time
// drawn uniformly from [lo, hi], each direction on its own, in order. The
// default is none. Frames of one direction arrive at least 16 nanoseconds and
// usually 2 µs apart, and no two directions of any connections deliver at one
// instant, which is what makes the same seed give the same run; a frame may take
// 4 µs longer than drawn for that, and more when many are sent at once.
// It applies to connections over TCP as well.
func WithLatency(lo, hi time.Duration) Option {
	return optionFunc(func(c *config) { c.latencyMin, c.latencyMax = lo, hi })
}

// WithWallClock sets the clock that stamps nodes and ages TTL nodes, by
// default time.Now. Sessions go by the monotonic clock and do not use it.
func WithWallClock(now func() time.Time) Option { return optionFunc(func(c *config) { c.clock = now }) }

// WithContainerInterval sets how often empty containers and expired TTL nodes
// are looked for, by default once a minute.
func WithContainerInterval(d time.Duration) Option {
	return optionFunc(func(c *config) { c.sweepEvery = d })
}

// WithMaxFrame sets jute.maxbuffer, the longest frame the server reads, by
// default 1,048,575 bytes. A connection that announces a longer one is closed
// without an answer.
func WithMaxFrame(n int) Option { return optionFunc(func(c *config) { c.maxFrame = n }) }

// WithExtendedTypes allows TTL nodes, as zookeeper.extendedTypesEnabled does.
// Without it creating one fails with [CodeUnimplemented].
func WithExtendedTypes() Option { return optionFunc(func(c *config) { c.extended = true }) }

// WithCommitDelay makes every write wait between its place in the log and its
// effect, as a slow disk does. Writes overlap then, and a read of a connection
// waits for the writes before it. See also [Server.SlowLog].
func WithCommitDelay(d time.Duration) Option { return optionFunc(func(c *config) { c.logDelay = d }) }

// WithSuperDigest sets the digest, "user:base64", whose owner may do
// everything.
func WithSuperDigest(digest string) Option {
	return optionFunc(func(c *config) { c.superDigest = digest })
}

// WithListen makes Start and NewServer listen on a TCP address at once.
// Without it the server listens when [Server.Addr] or [Server.Listen] is first
// called, and not at all in a simulation.
func WithListen(address string) Option { return optionFunc(func(c *config) { c.listen = address }) }

// WithLogSize sets how many requests [Server.Log] keeps, by default 10,000.
func WithLogSize(n int) Option { return optionFunc(func(c *config) { c.logSize = n }) }

// WithSyncLimit sets ZooKeeper's syncLimit, by default 5: for how many ticks a
// member of an ensemble goes on serving without having heard from its leader,
// or a leader from its followers. A server on its own ignores it.
func WithSyncLimit(ticks int) Option { return optionFunc(func(c *config) { c.syncLimit = ticks }) }

// WithElectionTime sets how long the members of an ensemble need to agree on a
// leader, or to find the one there is, once enough of them can talk to each
// other; by default half a second. A server on its own ignores it.
func WithElectionTime(d time.Duration) Option {
	return optionFunc(func(c *config) { c.electionTime = d })
}
