package nodes

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"iter"
	"maps"
	"reflect"
	"slices"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/retry"
)

// MemberChanges yields the members at once, and then again whenever they or their data
// have changed. Of changes that follow each other quickly it may show only the last.
// Each map is the caller's own, with its data. It ends when ctx ends. It also ends when the client
// is closed or a server refuses a read; its last pair is then the error. It yields
// other errors as well and goes on.
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
		var last Members
		pauses := retry.Default().BackOff() // a client with another policy does not pause itself
		for ctx.Err() == nil {
			err := v.read(ctx)
			switch {
			case ctx.Err() != nil:
				return
			case err != nil:
				if !yield(nil, err) || refused(err) || errors.Is(err, client.ErrClosed) {
					return
				}
				wait(ctx, pauses)
				continue
			}
			pauses.Reset()
			if now := v.members(); last == nil || !maps.EqualFunc(now, last, bytes.Equal) {
				last = now
				if !yield(now.clone(), nil) {
					return
				}
			}
			v.wait(ctx)
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
}

// fired reports whether what w watches must be read.
func fired(w *client.OneShotWatch) bool {
	if w == nil {
		return true
	}
	select {
	case <-w.Done():
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
		switch {
		case errs[i] == nil:
			v.seen[id] = now[i]
		case errors.Is(errs[i], zk.ErrNoNode): // the list tells of it too, and of its return
			delete(v.seen, id)
			v.list.Stop()
			v.list = nil
		default:
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

func (v *view) members() Members {
	now := Members{}
	for id, m := range v.seen {
		if m.stands() {
			now[id] = m.data
		}
	}
	return now
}

// wait waits until something must be read.
func (v *view) wait(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	waits := []reflect.SelectCase{arrival(v.list.Done())}
	for _, m := range v.seen {
		waits = append(waits, arrival(m.w.Done()))
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
