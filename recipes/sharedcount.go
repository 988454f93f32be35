package recipes

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
)

// ErrCountData says that the node of a [SharedCount] holds less than the four
// bytes of a count. [SharedCount.Set] repairs it.
var ErrCountData = errors.New("the node holds no count of 4 bytes")

// SharedCount is an integer that all who name its path share. It is Curator's
// SharedCount: a persistent node at the path whose data is the number in four
// bytes, the highest first. What is missing above it is made as containers.
//
// A count keeps no copy and no connection of its own: Get asks the server. The
// node may be deleted. Get then makes it anew with the seed, Set with its
// value, and Changes and Listen, where Curator's goes blind, tell of the value
// it has when somebody makes it anew.
//
// It is safe for concurrent use and needs no Close.
type SharedCount struct {
	settings

	c    *client.Client
	path string
	seed int32
}

// NewSharedCount returns the count at path. It does no I/O: a node that is
// missing is made, with the value seed, by the first Get.
func NewSharedCount(c *client.Client, path string, seed int32, opts ...LockOption) (*SharedCount, error) {
	if _, err := lockPath(c, path); err != nil {
		return nil, err
	}
	set := newSettings(opts)
	return &SharedCount{settings: set, c: c, path: path, seed: seed}, nil
}

// VersionedCount is the value of a [SharedCount] at one moment.
type VersionedCount struct {
	Value   int32
	Version int32 // of the node: how often it was set since it was made

	// The node that was read, and its newest write. A node that is made anew
	// has the versions of the last one again.
	czxid, mzxid int64
}

// Path is the path of the node.
func (s *SharedCount) Path() string { return s.path }

// Get returns the value, as new as the server that this client is connected
// to knows it. A missing node is made with the seed. The error is that of
// package client, or matches [ErrCountData].
func (s *SharedCount) Get(ctx context.Context) (VersionedCount, error) {
	now, _, err := s.read(ctx, false)
	return now, err
}

// read is Get, with a watch on the node if watch is set, also if it returns
// ErrCountData.
func (s *SharedCount) read(ctx context.Context, watch bool) (now VersionedCount, w *client.Watch, err error) {
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
	if len(data) < 4 {
		return now, fmt.Errorf("recipes: count %s: %w but %d", s.path, ErrCountData, len(data))
	}
	now.Value = int32(binary.BigEndian.Uint32(data)) //nolint:gosec // the sign is one of the bits; more bytes than four are nobody's, as in Curator
	return now, nil
}

func countData(v int32) []byte {
	return binary.BigEndian.AppendUint32(nil, uint32(v)) //nolint:gosec // as above
}

func (s *SharedCount) create(ctx context.Context, v int32) error {
	_, err := s.c.Create(ctx, s.path, countData(v), append(s.createOptions(), client.WithParents())...)
	return err
}

// mayExist says that after a create which failed with err looking again tells
// more.
func mayExist(err error) bool {
	return errors.Is(err, zk.ErrNodeExists) || client.UnknownOutcome(err)
}

// Set sets the value, whatever it was, and makes a missing node with it. After
// a lost answer it sets it again, which may undo what somebody else set in
// between; see TrySet. After an error that matches client.UnknownOutcome it may
// have been set.
func (s *SharedCount) Set(ctx context.Context, v int32) error {
	for {
		_, err := s.c.Set(ctx, s.path, countData(v), client.AnyVersion)
		if !errors.Is(err, zk.ErrNoNode) {
			return err
		}
		if err := s.create(ctx, v); err == nil || !mayExist(err) {
			return err
		}
		if ctx.Err() != nil {
			return err
		}
	}
}

// Changes yields the value at once, made with the seed if it is missing, and
// then every newer one that it sees. Of values that follow each other quickly
// it may see the last alone. It ends when ctx does, and with the error as its
// last pair when the client is closed or a server refuses the read. Other
// errors, which match [ErrCountData] or say that no server was reached for long,
// are yielded as well, and it goes on.
//
// While the node is deleted nothing is yielded. One watch stands on the server
// as long as somebody waits.
func (s *SharedCount) Changes(ctx context.Context) iter.Seq2[VersionedCount, error] {
	return func(yield func(VersionedCount, error) bool) {
		var seen int64 // the newest write that was yielded
		now, w, err := s.read(ctx, true)
		for ctx.Err() == nil {
			switch {
			case w == nil && (!yield(now, err) || refused(err) || errors.Is(err, client.ErrClosed)):
				return
			case w != nil && now.mzxid > seen:
				seen = now.mzxid
				if !yield(now, err) {
					w.Stop()
					return
				}
			}
			if w != nil {
				select {
				case <-w.Done():
				case <-ctx.Done():
					w.Stop()
					return
				}
			}
			now, w, err = s.next(ctx)
		}
		w.Stop()
	}
}

// next is read for a node that is not made anew here: it waits for whoever
// does. After an error without a watch there is nothing to wait for.
func (s *SharedCount) next(ctx context.Context) (VersionedCount, *client.Watch, error) {
	for {
		data, stat, w, err := s.c.GetW(ctx, s.path)
		if err == nil {
			now, err := s.parse(data, stat)
			return now, w, err
		}
		if !errors.Is(err, zk.ErrNoNode) {
			return VersionedCount{}, nil, err
		}
		there, _, w, err := s.c.ExistsW(ctx, s.path)
		if err != nil || !there {
			return VersionedCount{}, w, err
		}
		w.Stop()
	}
}

// Listen runs f with what [SharedCount.Changes] yields, on one goroutine, one
// call after the other, until ctx ends, the client is closed, a server refuses
// the read, or stop is called.
// stop waits for f to return; f itself must not call it, but may end ctx.
// Errors are logged.
func (s *SharedCount) Listen(ctx context.Context, f func(VersionedCount)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { // ends with ctx or the client; stop waits for it
		defer close(done)
		for now, err := range s.Changes(ctx) {
			switch {
			case err == nil:
				f(now)
			case !errors.Is(err, client.ErrClosed):
				inner.Logger(s.c).Warn("zookeeper: a shared count cannot be followed", "path", s.path, "reason", err)
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}
