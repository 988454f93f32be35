// Package duties is what a client still owes the servers when its callers have gone: nodes that
// nobody wants any more ([Remover]), parents that should be gone when they are empty ([Parents]), and
// sessions that a server may still keep ([Graves]). Remover and Parents work on one goroutine each while
// they owe something, Graves on one for each session. All methods may be called at the same time. When the client is closed, what is still
// owed is left to the end of its session.
package duties

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client/internal/aside"
	"github.com/docent-go/docent/internal/wire"
)

// Session is a session of the client. Two are the same if they are equal.
type Session interface {
	Context() context.Context // ends with the session
	// Do sends requests in one write, and waits for the answers.
	Do(ctx context.Context, xs ...*wire.Exchange) error
	// Outcome is what became of x in a Do that ended with err.
	Outcome(ctx context.Context, x *wire.Exchange, err error) error
	Standing() Standing
}

// Standing is what this client knows of the end of a session.
type Standing int

// A session stands, may then linger, and is over at last.
const (
	Stands  Standing = iota
	Lingers          // it has ended for this client; a server may keep it with its nodes, and lets nobody end it
	Over
)

// Life is the client.
type Life struct {
	Context context.Context //nolint:containedctx // the life of the client, not of a call
	// Go starts a goroutine that the client waits for. It returns false when the client is being closed.
	Go func(f func()) bool
	// Await returns the session that is connected, as soon as there is one.
	Await   func(ctx context.Context) (Session, error)
	Timeout func() time.Duration // of a session
	Journal *aside.Journal
}

// Listed lists the children of dir, and none if dir does not exist. The Sync comes
// first because the old server may have passed a create on. A server that lags would
// hide that node, and a second node would wait behind it for ever.
func Listed(ctx context.Context, s Session, dir string) ([]string, error) {
	sync, list := &wire.Exchange{Request: wire.Request{Op: wire.OpSync, Path: dir}}, &wire.Exchange{Request: wire.Request{Op: wire.OpGetChildren, Path: dir}}
	ended := s.Do(ctx, sync, list)
	err := s.Outcome(ctx, sync, ended)
	if err == nil {
		err = s.Outcome(ctx, list, ended)
	}
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return list.Reply.Names, nil
}

// WithPrefix are the names, of the given ones, that start with prefix.
func WithPrefix(names []string, prefix string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !strings.HasPrefix(name, prefix) })
}

// Ending is the number of a sequential node. The names of one group differ in nothing
// else, so there it is the node's place in the group.
func Ending(name string) string { return name[max(0, len(name)-10):] }

func deletion(full string, version int32) *wire.Exchange {
	return &wire.Exchange{Request: wire.Request{Op: wire.OpDelete, Path: full, Version: version}}
}

// anyVersion deletes whatever the node's version is.
const anyVersion = -1
