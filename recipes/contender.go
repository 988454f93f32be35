package recipes

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
	"unicode"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/seqqueue"
)

// Contender is a node that holds a lock or waits for it, of this library, of
// Curator or of anybody else who uses the same names.
type Contender struct {
	Path         string    // of the node
	Sequence     int64     // its place: lower goes first
	Holder       bool      // it holds the lock
	Session      int64     // that made it and takes it with it; 0 for a node that stays
	Since        time.Time // when it was made, by the server's clock
	FencingToken int64     // czxid
	Data         []byte    // what its owner wrote: by default the address of its host
}

// String is for people.
func (c Contender) String() string {
	what := "waiter"
	if c.Holder {
		what = "holder"
	}
	s := fmt.Sprintf("%s %s, session 0x%x, since %s", what, c.Path, uint64(c.Session), c.Since.Format(time.RFC3339)) //nolint:gosec // bits, not a quantity
	if text := string(c.Data); text != "" && len(text) <= 64 && printable(text) {
		s += ", " + text
	}
	return s
}

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

// contenders reads the nodes of a line. Those that vanish meanwhile are left
// out.
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
			all = append(all, *f)
		}
	}
	return all, nil
}

// lookUp returns nil for a node that is gone.
func lookUp(ctx context.Context, c *client.Client, path string, n seqqueue.Node) (*Contender, error) {
	data, stat, err := c.Get(ctx, path)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil //nolint:nilnil // gone is a result
	}
	if err != nil {
		return nil, err
	}
	return &Contender{
		Path:         path,
		Sequence:     n.Sequence(),
		Session:      stat.EphemeralOwner,
		Since:        time.UnixMilli(stat.Ctime),
		FencingToken: stat.Czxid,
		Data:         data,
	}, nil
}
