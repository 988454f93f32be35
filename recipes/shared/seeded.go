package shared

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/retry"
)

// seeded is a node that is made with a seed when it is missed: that of a SharedValue
// or a SharedCount.
type seeded[T any] struct {
	node[T]

	seed T
}

// read is Get, with a watch on the node if watch is set. There is a watch with
// a CountDataError, too.
func (s *seeded[T]) read(ctx context.Context, watch bool) (now Versioned[T], w *client.OneShotWatch, err error) {
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
			return Versioned[T]{}, nil, err
		}
		if err := s.create(ctx, s.kind.encode(s.seed)); err != nil && !mayExist(err) {
			return Versioned[T]{}, nil, err
		}
	}
}

// next is read, but it leaves a missing node for others to make: it returns a
// watch that waits for the node. After an error without a watch there is
// nothing to wait for.
func (s *seeded[T]) next(ctx context.Context) (Versioned[T], *client.OneShotWatch, error) {
	for {
		data, stat, w, err := s.c.GetW(ctx, s.path)
		if err == nil {
			now, err := s.parse(data, stat)
			return now, w, err
		}
		if !errors.Is(err, zk.ErrNoNode) {
			return Versioned[T]{}, nil, err
		}
		there, _, w, err := s.c.ExistsW(ctx, s.path)
		if err != nil || !there {
			return Versioned[T]{}, w, err
		}
		w.Stop()
	}
}

// lagLimit is how long the servers may be behind what was yielded. After that the ensemble was
// restored from a backup: a leader without a quorum resigns within syncLimit ticks, by default
// 10 seconds.
const lagLimit = 30 * time.Second

// changes is SharedCount.Changes.
func (s *seeded[T]) changes(ctx context.Context) iter.Seq2[Versioned[T], error] {
	return func(yield func(Versioned[T], error) bool) {
		var seen int64 // the newest write that was yielded
		var behind lag
		pauses := retry.Default().BackOff() // a client with another policy does not pause itself
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
			if w == nil {
				wait(ctx, pauses)
			} else {
				pauses.Reset()
				late := behind.late(now.mzxid != 0 && now.mzxid < seen)
				select {
				case <-w.Done():
				case <-ctx.Done():
					w.Stop()
					return
				case <-late:
					w.Stop()
					if s.c.Sync(ctx, s.path) == nil {
						seen = 0
					}
				}
			}
			now, w, err = s.next(ctx)
		}
		w.Stop()
	}
}

// lag is since when the servers are behind what was yielded.
type lag struct{ since time.Time }

// late returns what tells that they have been behind for too long, nil if they are not behind.
func (l *lag) late(behind bool) <-chan time.Time {
	if !behind {
		l.since = time.Time{}
		return nil
	}
	if l.since.IsZero() {
		l.since = time.Now()
	}
	return time.After(time.Until(l.since.Add(lagLimit)))
}

// wait waits for the next of pauses, or until ctx ends.
func wait(ctx context.Context, pauses backoff.BackOff) {
	t := time.NewTimer(pauses.NextBackOff())
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// listen is SharedCount.Listen.
func (s *seeded[T]) listen(ctx context.Context, f func(Versioned[T])) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { // ends with ctx or the client; stop waits for it
		defer close(done)
		for now, err := range s.changes(ctx) {
			switch {
			case err == nil:
				f(now)
			case !errors.Is(err, client.ErrClosed):
				inner.Logger(s.c).Warn("zookeeper: a shared "+s.kind.name+" cannot be followed", "path", s.path, "reason", err)
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}
