package shared

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
)

// SharedCount is an integer that several processes share. It is Curator's
// SharedCount: a persistent node at the path, whose data is the number in four
// bytes, the highest byte first. Missing parents are made as containers.
//
// Curator's DistributedAtomicInteger keeps its number in the same form, so both
// may be used on one path. It reads a missing node as 0 and has no seed. Its
// increment may count twice if an answer is lost; TrySet does not. A
// DistributedAtomicLong has eight bytes and is refused; see [CountDataError].
//
// A count keeps no copy and no connection of its own: Get asks the server. An
// operator may delete the node. Get then makes it again with the seed, and Set
// with its value. Changes and Listen wait for the new node, where Curator's
// listeners hear no more.
//
// It is safe for concurrent use and needs no Close.
type SharedCount struct { //nolint:revive // Curator's name, in its package
	settings

	c    *client.Client
	path string
	seed int32
}

// NewSharedCount returns the count at path. It does no I/O: the first Get makes
// a missing node, with the value seed.
func NewSharedCount(c *client.Client, path string, seed int32, opts ...Option) (*SharedCount, error) {
	if c == nil {
		return nil, errors.New("shared: the client is nil; make one with client.Connect")
	}
	if path == "/" {
		return nil, errors.New(`shared: the path of the count is "/"; give the count a node of its own, like "/counts/workers"`)
	}
	if _, err := inner.ServerPath(c, path); err != nil {
		return nil, fmt.Errorf("shared: path of the count: %w", err)
	}
	set, err := newSettings(opts)
	if err != nil {
		return nil, fmt.Errorf("shared: %w", err)
	}
	return &SharedCount{settings: set, c: c, path: path, seed: seed}, nil
}

// VersionedCount is the value of a [SharedCount] at one moment.
type VersionedCount struct {
	Value   int32
	Version int32 // of the node: how often it was set since it was made

	// The node that was read, and its newest write. A node that is made again
	// begins with the same versions as the deleted one.
	czxid, mzxid int64
}

// Path is the path of the node.
func (s *SharedCount) Path() string { return s.path }

// Get returns the value, as new as the server that this client is connected
// to knows it. A missing node is made with the seed. The error is that of
// package client, or a [*CountDataError].
func (s *SharedCount) Get(ctx context.Context) (VersionedCount, error) {
	now, _, err := s.read(ctx, false)
	return now, err
}

// Value is Get without the version. It makes a SharedCount the number of a
// semaphore's permits.
func (s *SharedCount) Value(ctx context.Context) (int32, error) {
	now, err := s.Get(ctx)
	return now.Value, err
}

// ValueW is Value and a watch, which fires when the value may have changed, and
// like every watch when the session is over. After an error there is no watch.
func (s *SharedCount) ValueW(ctx context.Context) (int32, *client.OneShotWatch, error) {
	now, w, err := s.read(ctx, true)
	if err != nil {
		w.Stop()
		return 0, nil, err
	}
	return now.Value, w, nil
}

// read is Get, with a watch on the node if watch is set. There is a watch with
// a CountDataError, too.
func (s *SharedCount) read(ctx context.Context, watch bool) (now VersionedCount, w *client.OneShotWatch, err error) {
	for {
		var data []byte
		var stat *zk.Stat
		if watch {
			data, stat, w, err = s.c.GetW(ctx, s.path)
		} else {
			data, stat, err = s.c.Get(ctx, s.path)
		}
		switch {
		case err == nil:
			now, err = s.parse(data, stat)
			return now, w, err
		case !errors.Is(err, zk.ErrNoNode):
			return VersionedCount{}, nil, err
		}
		if err := s.create(ctx, s.seed); err != nil && !mayExist(err) {
			return VersionedCount{}, nil, err
		}
	}
}

func (s *SharedCount) parse(data []byte, stat *zk.Stat) (VersionedCount, error) {
	now := VersionedCount{Version: stat.Version, czxid: stat.Czxid, mzxid: stat.Mzxid}
	if err := s.wanted(len(data)); err != nil {
		return now, err
	}
	now.Value = int32(binary.BigEndian.Uint32(data)) //nolint:gosec // the sign is one of the bits
	return now, nil
}

func countData(v int32) []byte {
	return binary.BigEndian.AppendUint32(nil, uint32(v)) //nolint:gosec // as above
}

func (s *SharedCount) create(ctx context.Context, v int32) error {
	_, err := s.c.Create(ctx, s.path, countData(v), append(s.createOptions(), client.WithParents())...)
	return err
}

// mayExist says that after a create which failed with err the caller should
// look again.
func mayExist(err error) bool {
	return errors.Is(err, zk.ErrNodeExists) || client.UnknownOutcome(err)
}

// Set sets the value, whatever it was, and makes a missing node with it. A node
// that holds no count is refused with a [*CountDataError]; Set looks at its
// length first, which takes the right to read it.
//
// After a lost answer Set sets the value again, which may undo what another
// client set in between; TrySet does not. After an error that matches
// client.UnknownOutcome the value may have been set.
func (s *SharedCount) Set(ctx context.Context, v int32) error {
	for {
		there, stat, err := s.c.Exists(ctx, s.path)
		if err != nil {
			return err
		}
		if !there {
			if err := s.create(ctx, v); err == nil || !mayExist(err) || ctx.Err() != nil {
				return err
			}
			continue
		}
		if err := s.wanted(int(stat.DataLength)); err != nil {
			return err
		}
		if _, err := s.c.Set(ctx, s.path, countData(v), client.AnyVersion); !errors.Is(err, zk.ErrNoNode) {
			return err
		}
	}
}
