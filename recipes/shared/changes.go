package shared

import (
	"context"
	"errors"
	"iter"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
)

// Changes yields the value at once, and then every newer one that it sees. It
// first makes a missing node, with the seed. Of values that follow each other
// quickly it may see only the last. It ends when ctx ends. It also ends when
// the client is closed or a server refuses the read; its last pair is then the
// error. It yields other errors as well and goes on: a [*CountDataError], and
// the error of a read when no server was reached for long.
//
// While the node is deleted nothing is yielded. However many follow the count
// with one client, one watch stands on the server.
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

// next is read, but it leaves a missing node for others to make: it returns a
// watch that waits for the node. After an error without a watch there is
// nothing to wait for.
func (s *SharedCount) next(ctx context.Context) (VersionedCount, *client.OneShotWatch, error) {
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
// call after the other. It ends when ctx ends, when the client is closed, when a
// server refuses the read, or when stop is called. stop waits for f to return;
// f itself must not call stop, but may end ctx. Errors are logged.
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
