package shared

import (
	"context"
	"iter"

	"github.com/docent-go/docent/client"
)

// SharedCount is an integer that several processes share. It is Curator's
// SharedCount: a persistent node at the path, whose data is the number in four
// bytes, the highest byte first. Missing parents are made as containers.
//
// A [DistributedAtomicInteger], here and in Curator, keeps its number in the same
// form, so both may be used on one path. It reads a missing node as 0 and has no
// seed. A [DistributedAtomicLong] has eight bytes and is refused; see
// [CountDataError].
//
// A count keeps no copy and no connection of its own: Get asks the server. An
// operator may delete the node. Get then makes it again with the seed, and Set
// with its value. Changes and Listen wait for the new node, where Curator's
// listeners hear no more.
//
// It is safe for concurrent use and needs no Close.
type SharedCount struct { //nolint:revive // Curator's name, in its package
	node seeded[int32]
}

// VersionedCount is the value of a [SharedCount] at one moment.
type VersionedCount = Versioned[int32]

// NewSharedCount returns the count at path. It does no I/O: the first Get makes
// a missing node, with the value seed.
func NewSharedCount(c *client.Client, path string, seed int32, opts ...Option) (*SharedCount, error) {
	n, err := newNode(c, path, countKind(), opts)
	if err != nil {
		return nil, err
	}
	return &SharedCount{seeded[int32]{node: n, seed: seed}}, nil
}

// Path is the path of the node.
func (s *SharedCount) Path() string { return s.node.path }

// Get returns the value, as new as the server that this client is connected
// to knows it. A missing node is made with the seed. The error is that of
// package client, or a [*CountDataError].
func (s *SharedCount) Get(ctx context.Context) (VersionedCount, error) {
	now, _, err := s.node.read(ctx, false)
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
	now, w, err := s.node.read(ctx, true)
	if err != nil {
		w.Stop()
		return 0, nil, err
	}
	return now.Value, w, nil
}

// Set sets the value, whatever it was, and makes a missing node with it. A node
// that holds no count is refused with a [*CountDataError]; Set looks at its
// length first, which takes the right to read it.
//
// After a lost answer Set sets the value again, which may undo what another
// client set in between; TrySet does not. After an error that matches
// client.UnknownOutcome the value may have been set.
func (s *SharedCount) Set(ctx context.Context, v int32) error { return s.node.set(ctx, v) }

// TrySet sets the value if nothing was written since Get or Changes read prev.
// A node that was deleted and made again since is another node. TrySet reports
// whether it set the value. It is certain of that, also when an answer was
// lost: an increment by Get and TrySet counts once.
//
// After an error that matches client.UnknownOutcome the value may have been
// set. TrySet says so if the session or ctx ended before the answer came. It
// also says so if the answer was lost and the mark, which would tell, was deleted
// by another client or may not be read. After any other error the value was not
// set. A node that holds no count is refused with a [*CountDataError].
//
// The mark is an ephemeral child of the node. It stands for the time of the
// call and a moment longer, and the node cannot be deleted meanwhile. TrySet
// takes the rights to create and delete children there.
//
// Curator's trySetCount compares the version alone and repeats a set whose
// answer was lost, so it may report false for a set that was applied. Both may
// be used on one path.
func (s *SharedCount) TrySet(ctx context.Context, prev VersionedCount, v int32) (bool, error) {
	return s.node.trySet(ctx, prev, v)
}

// Changes yields the value at once, and then every newer one that it sees. It
// first makes a missing node, with the seed. Of values that follow each other
// quickly it may see only the last. It ends when ctx ends. It also ends when
// the client is closed or a server refuses the read; its last pair is then the
// error. It yields other errors as well and goes on: a [*CountDataError], and
// the error of a read when no server was reached for long.
//
// While the node is deleted nothing is yielded. When an ensemble was restored from a
// backup, the older value is yielded after 30 seconds. However many follow the count
// with one client, one watch stands on the server.
func (s *SharedCount) Changes(ctx context.Context) iter.Seq2[VersionedCount, error] {
	return s.node.changes(ctx)
}

// Listen runs f with what [SharedCount.Changes] yields, on one goroutine, one
// call after the other. It ends when ctx ends, when the client is closed, when a
// server refuses the read, or when stop is called. stop waits for f to return;
// f itself must not call stop, but may end ctx. Errors are logged.
func (s *SharedCount) Listen(ctx context.Context, f func(VersionedCount)) (stop func()) {
	return s.node.listen(ctx, f)
}
