package recipes

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"
	"unicode"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/internal/seqqueue"
)

// Contender is a node that holds a lock or waits for it, of this library, of
// Curator or of anybody else who uses the same names.
type Contender struct {
	Path         string // of the node
	Sequence     int64  // its place: lower goes first
	Mode         Mode
	Holder       bool      // it holds the lock; of another library, as that one sees its own
	Session      int64     // that made it and takes it with it; 0 for a node that stays
	Since        time.Time // when it was made, by the server's clock
	FencingToken int64     // czxid
	Data         []byte    // what its owner wrote: by default the address of its host
	Owner        Owner     // what the data says, zero if nothing
	Family       Family    // the library that made it, by its name

	// Unreadable is set if the ACL of the node does not let this client read it.
	// What its name tells is known then. Session, Since, FencingToken, Data and
	// Owner are not, and are zero.
	Unreadable bool
}

// Mode is what a contender wants of a lock.
type Mode int

// The modes.
const (
	ModeExclusive Mode = iota + 1 // a mutex
	ModeRead                      // shared by readers
	ModeWrite                     // exclusive among readers and writers
	ModeLease                     // one permit of a semaphore
)

// String is the mode in a word.
func (m Mode) String() string {
	switch m {
	case ModeExclusive:
		return "exclusive"
	case ModeRead:
		return "read"
	case ModeWrite:
		return "write"
	case ModeLease:
		return "lease"
	default:
		return "unknown"
	}
}

// modeOf tells by the text in front of the number.
func modeOf(tag string) Mode {
	switch tag {
	case readTag, kazooRead:
		return ModeRead
	case writeTag:
		return ModeWrite
	case leaseTag:
		return ModeLease
	default:
		return ModeExclusive // kazoo's WriteLock has the names of its Lock
	}
}

// Age is how long the contender has been there at the time now, and 0 if it is
// Unreadable. It compares two hosts' clocks, so it may be off, and negative, by
// what they differ.
func (c Contender) Age(now time.Time) time.Duration {
	if c.Unreadable {
		return 0
	}
	return now.Sub(c.Since)
}

// ReleaseRequested reports whether the owner was asked to release, see
// [RequestRelease]. The request, in Curator's protocol, stands where the
// owner's data was: what that said is lost.
func (c Contender) ReleaseRequested() bool { return isRevocation(c.Data) }

// String is for people. It ends with the data, if that is a short text.
func (c Contender) String() string {
	what := "waiter"
	if c.Holder {
		what = "holder"
	}
	if c.Unreadable {
		return fmt.Sprintf("%s %s, %s by %s, which this client may not read", what, c.Path, c.Mode, c.Family)
	}
	s := fmt.Sprintf("%s %s, session 0x%x, since %s, %s by %s", what, c.Path,
		uint64(c.Session), c.Since.Format(time.RFC3339), c.Mode, c.Family) //nolint:gosec // bits, not a quantity
	text := string(c.Data)
	switch {
	case c.ReleaseRequested():
		s += ", asked to release"
	case text != "" && len(text) <= maxText && printable(text):
		s += ", " + text
	}
	return s
}

// maxText bounds the data that is shown: an address and a client's name fit.
const maxText = 256

func printable(s string) bool {
	for _, r := range s {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return false
		}
	}
	return true
}

// lookups bounds the reads in flight for one inspection.
const lookups = 16

// contenders reads the nodes of a line and says who of them holds the lock:
// whom nobody ahead blocks. Those that vanish meanwhile are left out.
func contenders(ctx context.Context, c *client.Client, q *seqqueue.Queue, line []seqqueue.Node) ([]Contender, error) {
	found := make([]*Contender, len(line))
	errs := make([]error, len(line))
	slots := make(chan struct{}, lookups)
	var wg sync.WaitGroup
	for i, n := range line {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			found[i], errs[i] = lookUp(ctx, c, q.Path(n), n)
		})
	}
	wg.Wait()
	all := make([]Contender, 0, len(line))
	for i, f := range found {
		if errs[i] != nil {
			return nil, errs[i]
		}
		if f != nil {
			blocks := rule(line[i].Tag)
			f.Holder = !slices.ContainsFunc(line[:i], func(o seqqueue.Node) bool {
				return o.Library == line[i].Library && o.Key < line[i].Key && blocks(o) // a downgraded read has the write's number
			})
			all = append(all, *f)
		}
	}
	return all, nil
}

// sessionOf returns the session that a node goes with, 0 if it stays. ClickHouse
// Keeper shows an owner of containers, which is no session's id there or on
// ZooKeeper (EphemeralType.CONTAINER_EPHEMERAL_OWNER). Other negative owners are
// sessions: those that servers with an id from 128 on have made.
func sessionOf(stat *zk.Stat) int64 {
	if stat.EphemeralOwner == math.MinInt64 {
		return 0
	}
	return stat.EphemeralOwner
}

// lookUp returns nil for a node that is gone.
func lookUp(ctx context.Context, c *client.Client, path string, n seqqueue.Node) (*Contender, error) {
	data, stat, err := c.Get(ctx, path)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil //nolint:nilnil // gone is a result
	}
	found := &Contender{Path: path, Sequence: n.Sequence(), Mode: modeOf(n.Tag), Family: familyOf(path)}
	if errors.Is(err, zk.ErrNoAuth) {
		found.Unreadable = true // a missing node is told from it
		return found, nil
	}
	if err != nil {
		return nil, err
	}
	found.Session = sessionOf(stat)
	found.Since = time.UnixMilli(stat.Ctime)
	found.FencingToken = stat.Czxid
	found.Data = data
	found.Owner = parseOwner(data)
	return found, nil
}
