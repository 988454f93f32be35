package zkconn

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
)

// sight is what a read shows of a node.
type sight struct {
	there bool
	stat  zk.Stat
}

// missed is the event of a watch that was set at the one sight and did not see the other,
// as a server decides it for a client that comes back. It is 0 if the watch would not have
// fired.
//
//	set on  | of       | now
//	a node  | its data | deleted: NodeDeleted; another Mzxid: NodeDataChanged
//	no node | its data | there: NodeCreated
//	a node  | children | deleted: NodeDeleted; another Pzxid: NodeChildrenChanged
func missed(was, now sight, children bool) zk.EventType {
	switch {
	case was.there && !now.there:
		return zk.EventNodeDeleted
	case !was.there && now.there:
		return zk.EventNodeCreated
	case children && was.stat.Pzxid != now.stat.Pzxid:
		return zk.EventNodeChildrenChanged
	case !children && was.stat.Mzxid != now.stat.Mzxid:
		return zk.EventNodeDataChanged
	default:
		return 0
	}
}

// kind is what a watch is on.
type kind int

const (
	ofData kind = iota
	ofExistence
	ofChildren
)

// reading is a read that leaves a watch.
type reading struct {
	sight

	data  []byte
	names []string
	watch *client.OneShotWatch
}

func (k kind) read(ctx context.Context, s *client.Session, path string) (r reading, err error) {
	var stat *zk.Stat
	switch k {
	case ofExistence:
		r.there, stat, r.watch, err = s.ExistsW(ctx, path)
	case ofChildren:
		r.names, stat, r.watch, err = s.ChildrenW(ctx, path)
		r.there = err == nil
	default:
		r.data, stat, r.watch, err = s.GetW(ctx, path)
		r.there = err == nil
	}
	if stat != nil {
		r.stat = *stat
	}
	return r, err
}

// GetW is that of [zk.Conn].
func (c *Conn) GetW(path string) ([]byte, *zk.Stat, <-chan zk.Event, error) {
	r, ch, err := c.watch(path, ofData)
	if err != nil {
		return nil, nil, nil, err
	}
	return r.data, &r.stat, ch, nil
}

// ExistsW is that of [zk.Conn].
func (c *Conn) ExistsW(path string) (bool, *zk.Stat, <-chan zk.Event, error) {
	r, ch, err := c.watch(path, ofExistence)
	if err != nil {
		return false, nil, nil, err
	}
	return r.there, &r.stat, ch, nil
}

// ChildrenW is that of [zk.Conn].
func (c *Conn) ChildrenW(path string) ([]string, *zk.Stat, <-chan zk.Event, error) {
	r, ch, err := c.watch(path, ofChildren)
	if err != nil {
		return nil, nil, nil, err
	}
	return r.names, &r.stat, ch, nil
}

// watch reads a node, and follows its watch until there is an event.
func (c *Conn) watch(path string, k kind) (*reading, <-chan zk.Event, error) {
	for {
		s, err := c.c.Session(c.ctx)
		if err != nil {
			return nil, nil, native(err)
		}
		r, err := k.read(c.ctx, s, path)
		if errors.Is(err, client.ErrSessionLost) {
			continue // in the next one
		}
		if err != nil {
			return nil, nil, native(err)
		}
		ch := make(chan zk.Event, 1)
		f := follower{c: c, path: path, kind: k, session: s.ID(), was: r.sight}
		begun := c.begin(func() { // ends with the event, or the Conn
			ch <- f.follow(r.watch)
			close(ch)
		})
		if !begun {
			r.watch.Stop()
			return nil, nil, zk.ErrConnectionClosed
		}
		return &r, ch, nil
	}
}

// follower follows a watch through the connections of one session.
type follower struct {
	c       *Conn
	path    string
	kind    kind
	session int64
	was     sight // when the watch was set
}

// follow waits for the event. A reconnection is none, unless a change was missed.
func (f *follower) follow(w *client.OneShotWatch) zk.Event {
	for {
		select {
		case <-w.Done():
		case <-f.c.ctx.Done():
			w.Stop()
			return f.over(zk.ErrClosing)
		}
		event, why := w.Event()
		if why == nil {
			return zk.Event{Type: event, State: zk.StateSyncConnected, Path: f.path}
		}
		now, err := f.again()
		if err != nil {
			return f.over(native(err))
		}
		if event := missed(f.was, now.sight, f.kind == ofChildren); event != 0 {
			now.watch.Stop() // nil if there is no node
			return zk.Event{Type: event, State: zk.StateSyncConnected, Path: f.path}
		}
		w = now.watch
	}
}

// again reads the node again, in the same session. The error matches [client.ErrSessionLost]
// if that is over, and comes when the next one stands: who hears of it can read at once.
func (f *follower) again() (reading, error) {
	for {
		s, err := f.c.patient.Session(f.c.ctx)
		switch {
		case err != nil: // the Conn or the client is closed
			return reading{}, err
		case s.ID() != f.session:
			return reading{}, client.ErrSessionLost
		}
		now, err := f.kind.read(f.c.ctx, s, f.path)
		switch {
		case errors.Is(err, client.ErrSessionLost): // wait for the next one
		case errors.Is(err, client.ErrNoNode):
			return now, nil
		default:
			return now, err
		}
	}
}

// over is the event of a watch that stands no more.
func (f *follower) over(why error) zk.Event {
	if errors.Is(why, zk.ErrConnectionClosed) { // what a Conn that is closed says to calls
		why = zk.ErrClosing
	}
	return zk.Event{Type: zk.EventNotWatching, State: zk.StateDisconnected, Path: f.path, Err: why}
}
