package client

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"
)

// Entry is a node made by [Session.CreateAndList] or [Session.CreateGroup].
type Entry struct {
	Path  string // of the node
	Czxid int64  // the id of the transaction that made it: it grows with every create

	// Children are those of its parent, in no order, as seen at some moment
	// after the create; nil if they are not known.
	Children []string
	// Pzxid is the newest transaction in which the parent got or lost one of
	// Children. If it is Czxid nobody has come or gone between the create and
	// that moment.
	Pzxid int64
	// Beside are the children of the other directory that was to be listed,
	// as seen after the create, but maybe before Children; nil if they are not
	// known. A missing directory is an empty one.
	Beside []string
}

// lists are those that leave right behind a create, by the full path of the
// directory.
type lists map[string]*pending[childrenStat]

// add lists dir, once.
func (l lists) add(s *session, dir string) {
	if l[dir] == nil {
		l[dir] = start(s, children(dir))
	}
}

// tell waits for the lists of dir and beside, if they were asked for, and puts
// into e what they say. A list that failed is not known.
func (l lists) tell(ctx context.Context, e *Entry, dir, beside string) {
	if list := l[dir]; list != nil {
		if all, err := list.wait(ctx); err == nil {
			e.Children, e.Pzxid = all.names, all.stat.Pzxid
		}
	}
	if list := l[beside]; list != nil {
		all, err := list.wait(ctx)
		switch {
		case err == nil:
			e.Beside = all.names
		case errors.Is(err, zk.ErrNoNode):
			e.Beside = []string{}
		}
	}
}
