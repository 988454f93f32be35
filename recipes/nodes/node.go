package nodes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/retry"
)

// PersistentNode is a node that is made again whenever it is gone: after a lost
// session, and after another client has deleted it. It is Curator's PersistentNode on
// the wire. Missing parents are made as containers.
//
// A node that still stands after a reconnection is not written. Where Curator sets the
// data of any node that it finds at the path, this one looks whose node it is; see the
// package comment.
//
// It is safe for concurrent use. One goroutine keeps the node, from Start to Close.
type PersistentNode struct {
	settings

	c         *client.Client
	mode      Mode
	ttl       time.Duration // of a persistentTTL
	base      string        // the path as the caller gave it
	recipe    string        // the type that the caller has made, for observers
	dir, name string        // its parts

	wake chan struct{} // holds a token when there may be new data, or the end

	mu      sync.Mutex // guards what follows; never held across I/O
	started bool       // also after the end, and not after a failed Start
	life    *life      // the newest; nil before Start
	status  Status
	in      *client.Session // of an ephemeral node that stands
	changed chan struct{}   // closed at the next change of status, written or started
	over    bool            // the status is the last
	closing bool            // Close was called
	data    []byte
	gen     int // counts the data that Set has given
	written int // the gen that the node has

	work // of the goroutine
}

// life is what lies between Start and the end of its goroutine.
type life struct {
	end   context.CancelFunc
	ended chan struct{}                                // closed when nothing runs any more
	limit func() (context.Context, context.CancelFunc) // of Close
	err   error                                        // why the node could not be removed; read after ended
}

// work is what the goroutine of a node knows. No other goroutine touches it.
type work struct {
	k       keeper
	path    string          // of the node that stands, stood or may stand; "" if it is not known
	prefix  string          // of the protected node that is to be made, until it is known to stand
	next    string          // where a create in doubt has made the node, if it has
	number  string          // the ten digits of a sequential node, once they are known
	session *client.Session // the last
	past    []ghost         // of lost sessions in which this object had a node, or may have had one; the newest last
	stat    *zk.Stat        // of the newest look
	watch   *client.OneShotWatch
	stood   time.Time // since when the node stands, zero if it does not
	bytes   []byte    // the data of the newest create
	hungUp  bool      // the servers have hung up on the newest create or set, see cool
	touch   touch

	pauses backoff.BackOff
}

// ghost is a node that a lost session of this object has left, or may have left.
type ghost struct {
	session int64
	czxid   int64 // 0 if it is not known
}

// NewPersistentNode returns a node that is not yet kept. It does no I/O. If data is
// nil the node gets the client's default data; see client.WithDefaultData.
func NewPersistentNode(c *client.Client, mode Mode, path string, data []byte, opts ...Option) (*PersistentNode, error) {
	if mode < Ephemeral || mode > Container {
		return nil, fmt.Errorf("nodes: there is no mode %d", int(mode))
	}
	return newNode(c, mode, 0, path, data, opts)
}

func newNode(c *client.Client, mode Mode, ttl time.Duration, path string, data []byte, opts []Option) (*PersistentNode, error) {
	if c == nil {
		return nil, errors.New("nodes: the client is nil; make one with client.Connect")
	}
	set, err := newSettings(opts)
	if err != nil {
		return nil, fmt.Errorf("nodes: %w", err)
	}
	if mode == PersistentSequential && !set.protected {
		return nil, errors.New("nodes: PersistentSequential takes WithProtection: a node that a lost answer leaves could not be told from others, and would stay")
	}
	if path == "/" {
		return nil, errors.New(`nodes: the path of the node is "/"; give it a path of its own, like "/workers/w1"`)
	}
	if _, err := inner.ServerPath(c, path); err != nil {
		return nil, fmt.Errorf("nodes: path of the node: %w", err)
	}
	n := &PersistentNode{
		settings: set, c: c, mode: mode, ttl: ttl, base: path, recipe: "PersistentNode",
		wake: make(chan struct{}, 1), changed: make(chan struct{}),
		data: bytes.Clone(data), gen: 1,
		work: work{k: newKeeper(mode, set), pauses: retry.Default().BackOff()},
	}
	if err := n.carries(data); err != nil {
		return nil, err
	}
	at := strings.LastIndexByte(path, '/')
	n.dir, n.name = max(path[:at], "/"), path[at+1:]
	if n.named() {
		n.path = path
		n.status.Path = path
	}
	return n, nil
}

// named reports whether the caller's path is that of the node.
func (n *PersistentNode) named() bool { return !n.protected && !n.mode.sequential() }

// unmade reports whether no constructor has made n.
func (n *PersistentNode) unmade() bool { return n == nil || n.c == nil }

var errUnmade = errors.New("nodes: the node is a zero value; make it with NewPersistentNode, NewPersistentTtlNode or NewGroupMember")

// besideData is how many bytes of a request are kept free for what is no data and no path.
const besideData = 1 << 10

// carries returns an error if data is too large for a request that makes the node. A
// ghost's replacement has the path twice.
func (n *PersistentNode) carries(data []byte) error {
	if data == nil {
		data = inner.DefaultData(n.c)
	}
	full, err := inner.ServerPath(n.c, n.base)
	if limit := inner.MaxRequest(n.c); err == nil && len(data)+2*len(full)+besideData > limit {
		err = fmt.Errorf("%d bytes of data are %w: requests have %d bytes at most; raise jute.maxbuffer on the servers and client.WithMaxRequest here, or store less", len(data), client.ErrTooLarge, limit)
	}
	if err != nil {
		return &nodeError{n.base, err}
	}
	return nil
}

// Set gives the node new data, and waits until it stands with that data. It may be
// called at any time. The newest data is kept for every node that is made later.
// Before Start it only keeps the data. If data is nil the node gets the client's
// default data.
//
// Data that no request can carry is refused at once, with an error that matches
// client.ErrTooLarge; the data before is kept.
//
// A lost answer is resolved: the node is read and set again. After an error the data
// is still kept, and is written as soon as that is possible; see [PersistentNode.Wait]
// for the error.
func (n *PersistentNode) Set(ctx context.Context, data []byte) error {
	ctxerr.Require(ctx)
	wait, err := n.SetLater(data)
	if err != nil {
		return err
	}
	return wait(ctx)
}

// SetLater is [PersistentNode.Set] in two parts. It keeps the data, and returns what waits until the
// node stands with that data. It is for a caller that orders its calls by a lock of its own, and
// waits without it.
func (n *PersistentNode) SetLater(data []byte) (wait func(context.Context) error, err error) {
	gen, started, err := n.keep(data)
	return func(ctx context.Context) error {
		ctxerr.Require(ctx)
		if err != nil || !started {
			return err
		}
		return n.await(ctx, gen, false)
	}, err
}

// keep keeps new data, and wakes the goroutine of a node that is started.
func (n *PersistentNode) keep(data []byte) (gen int, started bool, err error) {
	if n.unmade() {
		return 0, false, errUnmade
	}
	if err := n.carries(data); err != nil {
		return 0, false, err
	}
	data = bytes.Clone(data)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.data = data
	n.gen++
	if !n.started && !n.over {
		return n.gen, false, nil
	}
	select {
	case n.wake <- struct{}{}:
	default:
	}
	return n.gen, true, nil
}

// Data returns a copy of the newest data.
func (n *PersistentNode) Data() []byte {
	if n.unmade() {
		return nil
	}
	data, _ := n.wanted()
	return bytes.Clone(data)
}

// wanted is the newest data, and its gen.
func (n *PersistentNode) wanted() ([]byte, int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.data == nil {
		return inner.DefaultData(n.c), n.gen
	}
	return n.data, n.gen
}
