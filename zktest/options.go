package zktest

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/docent-go/docent/internal/zkserver"
	"github.com/docent-go/docent/internal/zoodefs"
)

// Option configures a server. Options come from the With functions.
type Option interface{ apply(*config) }

type optionFunc func(*config)

func (f optionFunc) apply(c *config) { f(c) }

// config is what options set.
type config struct {
	zkserver.Config

	profile Profile
	// noSASLScheme takes the scheme away that comes with users.
	noSASLScheme bool
	listen       string
	fatal        func(error) // set by NewServer and NewEnsemble
}

// defaultMaxFrame is ZooKeeper's default for jute.maxbuffer.
const defaultMaxFrame = 0xfffff

func newConfig(opts []Option) (config, error) {
	c := config{Config: zkserver.Config{
		Version:    zkserver.ZooKeeper39,
		Lacking:    map[zoodefs.Op]bool{},
		Tick:       2 * time.Second,
		SweepEvery: time.Minute,
		MaxFrame:   defaultMaxFrame,
		Clock:      time.Now,
		LogSize:    10_000,

		SyncLimit:    5,
		ElectionTime: 500 * time.Millisecond,
	}}
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	c.Seed = binary.BigEndian.Uint64(b[:])
	for _, o := range opts {
		o.apply(&c)
	}
	c.applyProfile()
	c.applyLogin()
	if c.MinTimeout == 0 {
		c.MinTimeout = 2 * c.Tick
	}
	if c.MaxTimeout == 0 {
		c.MaxTimeout = max(20*c.Tick, c.MinTimeout)
	}
	if !c.Version.Known() {
		return c, fmt.Errorf("zktest: there is no %v", c.Version)
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
	bad(c.Zxid < 0, "the zxid %d is negative", c.Zxid)
	bad(c.Zxid>>32 == math.MaxInt32, "the zxid %#x leaves no epoch behind it", c.Zxid)
	bad(c.profile < 0 || c.profile > ClickHouseKeeper, "there is no profile %d", c.profile)
	bad(c.Quirks&^zkserver.AllQuirks != 0, "there are no quirks %#x", uint16(c.Quirks&^zkserver.AllQuirks))
	bad(c.Tick < time.Millisecond, "tick %v is less than a millisecond", c.Tick)
	bad(c.MinTimeout <= 0 || c.MaxTimeout < c.MinTimeout,
		"session timeouts [%v, %v] are not a range", c.MinTimeout, c.MaxTimeout)
	bad(c.MinLatency < 0 || c.MaxLatency < c.MinLatency,
		"latencies [%v, %v] are not a range", c.MinLatency, c.MaxLatency)
	bad(c.SweepEvery <= 0, "container interval %v is not positive", c.SweepEvery)
	bad(c.MaxFrame <= 0, "frame limit %d is not positive", c.MaxFrame)
	bad(c.CommitDelay < 0, "commit delay %v is negative", c.CommitDelay)
	bad(c.Clock == nil, "clock is nil")
	bad(c.SyncLimit < 1, "sync limit %d is not positive", c.SyncLimit)
	bad(c.ElectionTime <= 0, "election time %v is not positive", c.ElectionTime)
	return errors.Join(append(errs, c.checkLogin())...)
}

// WithSeed sets the seed of all random draws. By default the seed is random;
// [NewServer] prints it when the test fails.
func WithSeed(seed uint64) Option { return optionFunc(func(c *config) { c.Seed = seed }) }

// WithVersion selects the ZooKeeper release whose behaviour the server shows. The
// default is [ZooKeeper39].
func WithVersion(v Version) Option {
	return optionFunc(func(c *config) { c.Version = zkserver.Version(v) })
}

// WithTick sets ZooKeeper's tickTime, by default 2 s. Sessions expire at multiples
// of the tick: between their timeout and one tick later. The limits of session
// timeouts follow from the tick unless [WithSessionTimeouts] sets them.
func WithTick(d time.Duration) Option { return optionFunc(func(c *config) { c.Tick = d }) }

// WithSessionTimeouts sets the range into which the server clamps requested session
// timeouts, by default 2 to 20 ticks. A zero keeps the default of its side.
func WithSessionTimeouts(lo, hi time.Duration) Option {
	return optionFunc(func(c *config) { c.MinTimeout, c.MaxTimeout = lo, hi })
}

// WithLatency makes every frame of every in-memory connection take a time drawn
// uniformly from [lo, hi]. Each direction draws on its own and keeps the order of
// its frames. The default is no latency. It applies to connections over TCP as
// well.
//
// With a latency the same seed gives the same run, because no two directions of any
// connections deliver at one instant. Frames of one direction arrive at least 16
// nanoseconds and usually 2 µs apart. For that, a frame may take 4 µs longer than
// drawn, and more if many are sent at once.
func WithLatency(lo, hi time.Duration) Option {
	return optionFunc(func(c *config) { c.MinLatency, c.MaxLatency = lo, hi })
}

// WithWallClock sets the clock that stamps nodes and ages TTL nodes, by default
// time.Now. Sessions use the monotonic clock instead.
func WithWallClock(now func() time.Time) Option { return optionFunc(func(c *config) { c.Clock = now }) }

// WithContainerInterval sets how often the server looks for empty containers and
// expired TTL nodes, by default once a minute.
func WithContainerInterval(d time.Duration) Option {
	return optionFunc(func(c *config) { c.SweepEvery = d })
}

// WithMaxFrame sets jute.maxbuffer, the length in bytes of the longest frame that
// the server reads, by default 1,048,575. A connection that announces a longer
// frame is closed without an answer.
func WithMaxFrame(n int) Option { return optionFunc(func(c *config) { c.MaxFrame = n }) }

// WithExtendedTypes allows TTL nodes, as zookeeper.extendedTypesEnabled does.
// Without it the create of a TTL node fails with [CodeUnimplemented].
func WithExtendedTypes() Option { return optionFunc(func(c *config) { c.ExtendedTypes = true }) }

// WithEnforcedQuotas makes the hard limits of quotas refuse writes with
// [CodeQuotaExceeded], as zookeeper.enforceQuota does. Without it the server counts what a
// tree with a quota has, and refuses nothing.
func WithEnforcedQuotas() Option { return optionFunc(func(c *config) { c.EnforceQuota = true }) }

// WithReconfig enables reconfig, as reconfigEnabled does. Without it a reconfig is refused
// with [CodeReconfigDisabled]. An ensemble then takes a new configuration from a client
// that may write /zookeeper/config, and a server on its own answers [CodeUnimplemented].
// The configuration is all that changes: the members go on as before.
func WithReconfig() Option { return optionFunc(func(c *config) { c.Reconfig = true }) }

// WithReadOnlyMode makes a member of an ensemble that finds no leader serve reads, as
// readonlymode.enabled does: when it has been alone for 2 s, or for a tick if that is
// longer. It serves clients that ask for a read-only server. Their sessions are local, and
// end when the member finds a leader. See [Server.SetReadOnly] for a server on its own.
func WithReadOnlyMode() Option { return optionFunc(func(c *config) { c.ReadOnlyMode = true }) }

// WithoutLocalSessions makes a read-only server have no session for anybody, as a real one
// does without localSessionsEnabled. It answers a handshake with the 16 bytes of a reply
// header with [CodeNotReadOnly], and says no more on the connection.
func WithoutLocalSessions() Option {
	return optionFunc(func(c *config) { c.GlobalSessions = true })
}

// WithCommitDelay makes every write wait between its place in the log and its
// effect, as a slow disk does. Writes overlap then, and a read of a connection
// waits for the writes before it. See also [Server.SlowLog].
func WithCommitDelay(d time.Duration) Option {
	return optionFunc(func(c *config) { c.CommitDelay = d })
}

// WithSuperDigest sets the digest "user:base64". A client that proves it may do
// everything.
func WithSuperDigest(digest string) Option {
	return optionFunc(func(c *config) { c.SuperDigest = digest })
}

// WithListen makes the server listen on a TCP address from its start. Without it
// the server starts to listen with the first call of [Server.Addr] or
// [Server.Listen], and never in a simulation.
func WithListen(address string) Option { return optionFunc(func(c *config) { c.listen = address }) }

// WithZxid sets the zxid before that of the first transaction, by default 0. With a greater one
// than before, fencing tokens grow over the restart of a server that has lost its data. A smaller
// one does what a backup of another ensemble does. An ensemble begins with the epoch behind it, so
// [Start] refuses 0x7fffffff00000000 and more, and numbers below 0.
func WithZxid(zxid int64) Option { return optionFunc(func(c *config) { c.Zxid = zxid }) }

// WithLogSize sets how many requests [Server.Log] keeps, by default 10,000.
func WithLogSize(n int) Option { return optionFunc(func(c *config) { c.LogSize = n }) }

// WithSyncLimit sets ZooKeeper's syncLimit, by default 5. A member of an ensemble
// goes on serving for so many ticks after it last heard from its leader, or a
// leader from its followers. A server on its own ignores it.
func WithSyncLimit(ticks int) Option { return optionFunc(func(c *config) { c.SyncLimit = ticks }) }

// WithElectionTime sets how long an election takes, and how long a member takes to
// find the leader that there is. The time counts from when enough members can talk
// to each other. The default is half a second. A server on its own ignores it.
func WithElectionTime(d time.Duration) Option {
	return optionFunc(func(c *config) { c.ElectionTime = d })
}
