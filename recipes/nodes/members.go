package nodes

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/internal/inside"
	"github.com/docent-go/docent/retry"
)

// ErrStale says that the members may be old: the client has no connection, or some of
// them cannot be read. It comes with the reason.
var ErrStale = errors.New("nodes: the members are stale")

var errNotConnected = errors.New("the client has no connection")

// MemberChanges yields the members at once, and then again whenever they or their data
// have changed. Of changes that follow each other quickly it may show only the last.
// Each map is the caller's own, with its data.
//
// With an error that matches [ErrStale] it yields the members that were read last, nil if
// none were: they may be old, or not all. When they are all known again it yields them
// without an error, also if nothing has changed. A connection that is cut without a sign
// is noticed after up to two thirds of the session timeout.
//
// A member that cannot be read has the data that was read last, or is missing. It is read
// again with pauses of up to 2 s, and the others are followed meanwhile. MemberChanges ends
// when ctx ends. It also ends when the client is closed; the error of its last pair then
// matches client.ErrClosed as well.
//
// However many follow the group with one client, the server has one watch on the group
// and one on each member. After a change only what has changed is read.
func (g *Group) MemberChanges(ctx context.Context) iter.Seq2[Members, error] {
	ctxerr.Require(ctx)
	if g == nil || g.c == nil {
		return func(yield func(Members, error) bool) { yield(nil, errNoGroup) }
	}
	return func(yield func(Members, error) bool) {
		v := view{Group: g, seen: map[string]member{}}
		defer v.stop()
		pauses := retry.Default().BackOff()
		for ctx.Err() == nil {
			now := inner.Contact(g.c)
			err := v.update(ctx, now)
			if err != nil && arrived(now.Changed) {
				continue // the connection is gone: that is the reason
			}
			if ctx.Err() != nil || !v.tell(yield, err) || now.Closed {
				return
			}
			pause := time.Duration(0)
			if err == nil {
				pauses.Reset()
			} else if now.Connected {
				pause = pauses.NextBackOff()
			}
			v.wait(ctx, now, pause)
		}
	}
}

// clone returns a copy that shares nothing with m.
func (m Members) clone() Members {
	own := maps.Clone(m)
	for id, data := range own {
		own[id] = bytes.Clone(data)
	}
	return own
}

// view is what one reader of MemberChanges knows of the group.
type view struct {
	*Group

	list *client.OneShotWatch // on the children of the group, or on the missing group
	seen map[string]member

	told   bool // something was yielded
	last   Members
	stale  bool
	closed bool // the client is closed, and that was said
}

// update brings the view up to date, if there is a connection. The client fires all watches
// of a connection before it says that there is another.
func (v *view) update(ctx context.Context, now inside.Contact) error {
	switch {
	case now.Closed:
		return client.ErrClosed
	case !now.Connected:
		return cmp.Or(now.Err, errNotConnected)
	}
	reading, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // ends with the reading
		select {
		case <-now.Changed:
			cancel()
		case <-reading.Done():
		}
	}()
	return v.read(reading)
}

// tell yields the members, if they have changed or have become stale or current.
func (v *view) tell(yield func(Members, error) bool, why error) bool {
	now := v.members()
	closed := errors.Is(why, client.ErrClosed)
	if v.told && v.stale == (why != nil) && v.closed == closed && maps.EqualFunc(now, v.last, bytes.Equal) {
		return true
	}
	v.told, v.last, v.stale, v.closed = true, now, why != nil, closed
	if why != nil {
		why = fmt.Errorf("%w: %w", ErrStale, why)
	}
	return yield(now.clone(), why)
}

// fired reports whether what w watches must be read.
func fired(w *client.OneShotWatch) bool {
	return w == nil || arrived(w.Done())
}

func arrived(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// read brings the view up to date.
func (v *view) read(ctx context.Context) error {
	for {
		if fired(v.list) {
			if err := v.relist(ctx); err != nil {
				return err
			}
		}
		if err := v.reread(ctx); err != nil || v.list != nil {
			return err
		}
	}
}

// reread reads the members that have changed. If one is gone the list must be read.
func (v *view) reread(ctx context.Context) error {
	var ids []string
	for id, m := range v.seen {
		if fired(m.w) {
			ids = append(ids, id)
		}
	}
	now, errs := make([]member, len(ids)), make([]error, len(ids))
	each(len(ids), func(i int) {
		data, stat, w, err := v.c.GetW(ctx, v.child(ids[i]))
		if err == nil {
			now[i] = member{data: data, czxid: stat.Czxid, w: w}
		}
		errs[i] = err
	})
	var failed error
	for i, id := range ids {
		old := v.seen[id]
		switch {
		case errs[i] == nil:
			v.seen[id] = now[i]
		case errors.Is(errs[i], zk.ErrNoNode): // the list tells of it too, and of its return
			delete(v.seen, id)
			v.list.Stop()
			v.list = nil
		default:
			v.seen[id] = member{data: old.data, czxid: old.czxid}
			failed = cmp.Or(failed, errs[i])
		}
	}
	return failed
}

// relist reads which members there are.
func (v *view) relist(ctx context.Context) error {
	v.list = nil
	names, _, w, err := v.c.ChildrenW(ctx, v.path)
	if errors.Is(err, zk.ErrNoNode) {
		var there bool
		if there, _, w, err = v.c.ExistsW(ctx, v.path); err == nil && there {
			w.Stop()
			return v.relist(ctx)
		}
		names = nil
	}
	if err != nil {
		return err
	}
	v.list = w
	now := make(map[string]member, len(names))
	for _, id := range names {
		now[id] = v.seen[id]
		delete(v.seen, id)
	}
	for _, m := range v.seen {
		m.w.Stop()
	}
	v.seen = now
	return nil
}

// members are those that are known, nil if none were read.
func (v *view) members() Members {
	if v.last == nil && v.list == nil {
		return nil
	}
	now := Members{}
	for id, m := range v.seen {
		if m.stands() {
			now[id] = m.data
		}
	}
	return now
}

// wait waits until something must be read, for a pause at most if it is not zero.
func (v *view) wait(ctx context.Context, now inside.Contact, pause time.Duration) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	waits := []reflect.SelectCase{arrival(now.Changed)}
	if pause > 0 {
		t := time.AfterFunc(pause, cancel)
		defer t.Stop()
	}
	if now.Connected {
		waits = v.watches(waits)
	}
	var all sync.WaitGroup
	for part := range slices.Chunk(waits, most) {
		all.Go(func() { // ends with the first arrival, or with ctx
			defer cancel()
			_, _, _ = reflect.Select(append(slices.Clip(part), arrival(ctx.Done())))
		})
	}
	all.Wait()
}

// watches adds what tells that something must be read.
func (v *view) watches(waits []reflect.SelectCase) []reflect.SelectCase {
	if v.list != nil {
		waits = append(waits, arrival(v.list.Done()))
	}
	for _, m := range v.seen {
		if m.w != nil {
			waits = append(waits, arrival(m.w.Done()))
		}
	}
	return waits
}

// most is how many channels one goroutine waits for. reflect.Select takes 65,536.
const most = 1 << 15

func arrival(c <-chan struct{}) reflect.SelectCase {
	return reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(c)}
}

func (v *view) stop() {
	v.list.Stop()
	for _, m := range v.seen {
		m.w.Stop()
	}
}
