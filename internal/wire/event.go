package wire

import (
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"
)

// Event is a notification of a watch.
type Event struct {
	Type  zk.EventType
	State zk.State
	Path  string // of the server
	// Zxid is the transaction that the notification tells of. Servers before
	// ZooKeeper 3.9 do not say it and send -1 (ZOOKEEPER-4655).
	Zxid int64
	// After is a transaction that the server had applied before the one of the
	// notification: the newest that a reply showed which came before.
	After int64
}

// The modes of an OpAddWatch, in Request.Flags (ZooDefs.AddWatchModes).
const (
	WatchPersistent int32 = 0
	WatchRecursive  int32 = 1
)

// The kinds of an OpRemoveWatches, in Request.Flags (Watcher.WatcherType).
const (
	RemoveChildren int32 = 1
	RemoveData     int32 = 2
	RemoveAny      int32 = 3 // persistent ones too
)

// notify reads the next notification, of n bytes, for OnEvent. It leaves the frame to
// be delivered: the watch may belong to a user of go-zookeeper.
func (c *conn) notify(zxid int64, n int) error {
	const head = lengthSize + replyHeader
	frame, err := c.peek(min(lengthSize+n, readBuffer))
	if err != nil {
		return c.fail("read", err)
	}
	body := frame[head:]
	if lengthSize+n > readBuffer {
		c.held = slices.Clone(frame[:head])
		if body, _, err = c.body(n); err != nil {
			return c.fail("read", err)
		}
		c.held = append(c.held, body...)
	}
	e, err := decodeEvent(zxid, body)
	if err != nil {
		return c.fail("read", err)
	}
	if f := c.l.cfg.OnEvent; f != nil {
		c.l.mu.Lock()
		e.After = c.l.seenZxid
		c.l.mu.Unlock()
		f(e)
	}
	return nil
}

// decodeEvent reads the body of a notification. The body may have any bytes.
func decodeEvent(zxid int64, body []byte) (Event, error) {
	d := decoder{b: body}
	e := Event{Type: zk.EventType(d.int32()), State: zk.State(d.int32()), Path: d.text(), Zxid: zxid}
	if d.bad {
		return Event{}, fmt.Errorf("%w: notification of %d bytes", ErrProtocol, len(body))
	}
	return e, nil
}
