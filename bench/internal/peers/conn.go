package peers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/bench/internal/load"
)

// silent is a logger for go-zookeeper.
type silent struct{}

func (silent) Printf(string, ...any) {}

// conns connects the sessions of a peer that uses go-zookeeper.
func conns(spec *load.Spec) ([]*zk.Conn, error) {
	var all []*zk.Conn
	for i := range spec.Sessions {
		c, err := dial(spec.Server(i), spec.Timeout)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

func dial(addr string, timeout time.Duration) (*zk.Conn, error) {
	c, events, err := zk.Connect([]string{addr}, timeout, zk.WithLogger(silent{}))
	if err != nil {
		return nil, err
	}
	late := time.NewTimer(timeout)
	defer late.Stop()
	for {
		select {
		case e := <-events:
			if e.State == zk.StateHasSession {
				go func() { // go-zookeeper blocks for nobody, but fills the channel
					for range events { // nobody else reads them
					}
				}()
				return c, nil
			}
		case <-late.C:
			c.Close()
			return nil, fmt.Errorf("no session with %s in %v", addr, timeout)
		}
	}
}

// closing closes sessions when a field is closed.
func closing(all []*zk.Conn) func(context.Context) {
	return func(context.Context) {
		for _, c := range all {
			c.Close()
		}
	}
}

// directory makes a node that persists, unless there is one.
func directory(c *zk.Conn, path string) error {
	_, err := c.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
	if errors.Is(err, zk.ErrNodeExists) {
		return nil
	}
	return err
}

// synced makes sure that every session's server knows a directory that the first made.
func synced(all []*zk.Conn, path string) error {
	for _, c := range all {
		if _, err := c.Sync(path); err != nil {
			return err
		}
	}
	return nil
}

// zkLocker is go-zookeeper's own lock.
type zkLocker struct{ *zk.Lock }

// Acquire waits for the lock, also after the end of the context.
func (l zkLocker) Acquire(context.Context) error { return l.Lock.Lock() }

// Release deletes the node.
func (l zkLocker) Release(context.Context) error { return l.Unlock() }

func zkLock(spec *load.Spec) (*load.Field, error) {
	if spec.Kind != load.Mutex {
		return nil, ErrNoSuch
	}
	all, err := conns(spec)
	if err != nil {
		return nil, err
	}
	field := &load.Field{Close: closing(all)}
	for i := range spec.Contenders {
		lock := zk.NewLock(all[i%spec.Sessions], spec.Path(i), zk.WorldACL(zk.PermAll))
		field.Contenders = append(field.Contenders, load.Contender{Lock: zkLocker{lock}})
	}
	return field, nil
}
