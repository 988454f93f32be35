package zkserver

import (
	"time"

	"github.com/docent-go/docent/internal/zoodefs"
)

// Config is what a server or an ensemble is made with. Package zktest fills it
// in and checks it; a zero is a default only where a field says so.
type Config struct {
	Seed    uint64  // of all random draws
	Version Version // the release to behave like
	Quirks  Quirk   // what is different from Apache ZooKeeper
	// Keeper makes the four-letter words name ClickHouse Keeper as the product.
	Keeper bool
	// Lacking has the requests that the server does not know.
	Lacking map[zoodefs.Op]bool

	Tick                   time.Duration // ZooKeeper's tickTime, a millisecond at least
	MinTimeout, MaxTimeout time.Duration // the range of session timeouts
	MinLatency, MaxLatency time.Duration // of a frame; zero means none
	SweepEvery             time.Duration // between two looks for empty containers
	CommitDelay            time.Duration // of a write in the log; zero means none

	MaxFrame      int    // jute.maxbuffer
	LogSize       int    // how many requests the log keeps; zero means none
	ExtendedTypes bool   // whether there are TTL nodes
	SuperDigest   string // "user:base64" of the super user; empty means none
	Clock         func() time.Time

	SyncLimit    int           // in ticks; for an ensemble
	ElectionTime time.Duration // for an ensemble
}

// config is a Config with what follows from it.
type config struct {
	Config

	traits traits // of the version
}

func newConfig(c Config) config {
	t, known := c.Version.traits()
	if !known {
		panic("zkserver: " + c.Version.String() + " is not known")
	}
	return config{Config: c, traits: t}
}

// has reports whether a quirk is on.
func (c *config) has(q Quirk) bool { return c.Quirks&q != 0 }

// lacks reports whether op is a request that other servers know and this one
// does not.
func (c *config) lacks(op zoodefs.Op) bool { return c.Lacking[op] || c.Version.unknownTo(op) }

// lifetime is the root of the contexts that hooks get. It never ends by itself;
// [Server.Close] ends the contexts that are derived from it.
type lifetime struct{}

// Deadline reports that there is none.
func (lifetime) Deadline() (time.Time, bool) { return time.Time{}, false }

// Done returns nil: a lifetime does not end.
func (lifetime) Done() <-chan struct{} { return nil }

// Err returns nil: a lifetime does not end.
func (lifetime) Err() error { return nil }

// Value returns nil: a lifetime carries nothing.
func (lifetime) Value(any) any { return nil }
