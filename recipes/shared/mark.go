package shared

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
)

// mark is an ephemeral child of a node that holds a value. It does two things that a
// version cannot do. A version starts again at 0 with every node of that name, but
// while the mark stands the node cannot be deleted and made again. A version does
// not say which client wrote. But the transaction that sets the value also writes
// the mark, and only its owner writes the mark, one transaction after the other.
type mark struct {
	session *client.Session
	path    string
	version int32 // how often it was written
}

// worn is the version from which on a mark is replaced: at -1 a version means any.
const worn = 1 << 30

// errMarkDeleted says that another client deleted or wrote the mark, and that the value
// was not set.
var errMarkDeleted = errors.New("another client deleted or wrote the mark below the node")

// newMark makes a mark below the node at path. The error is that of the create.
func newMark(ctx context.Context, session *client.Session, path string, opts []client.CreateOption) (*mark, error) {
	made, err := session.Create(ctx, path+"/set", nil, append(opts, client.Ephemeral(), client.Protected())...)
	if err != nil {
		return nil, err
	}
	return &mark{session: session, path: made}, nil
}

// abandon deletes the mark in the background.
func (m *mark) abandon() { _ = inner.DeleteInBackground(m.session, m.path, nil) } // the path came from the server

// origin is what a value was read from.
type origin struct {
	path         string
	version      int32
	czxid, mzxid int64
}

// write sets the data of the node and writes the mark, both or neither. It reports
// whether it did. stat is that of the node, or nil if the answer was lost. After an
// error that does not match client.UnknownOutcome and after false nothing was written.
// After an error the mark is of no more use.
func (m *mark) write(ctx context.Context, prev origin, data []byte) (stat *zk.Stat, set bool, err error) {
	for doubt := false; ; {
		results, err := m.session.Multi(ctx, client.SetOp(prev.path, data, prev.version), client.SetOp(m.path, nil, m.version))
		if err == nil {
			m.version++
			return results[0].Stat, true, nil
		}
		lost := client.UnknownOutcome(err)
		doubt = doubt || lost
		if doubt {
			set, e := m.written(ctx, prev)
			switch {
			case errors.Is(e, errMarkDeleted):
				return nil, false, e
			case e != nil:
				return nil, false, &client.OpError{Op: "set", Path: prev.path, Outcome: client.OutcomeUnknown, Err: errors.Join(err, e)}
			case set:
				m.version++
				return nil, true, nil
			case lost:
				continue
			}
		}
		var part *client.MultiError
		switch {
		case errors.As(err, &part) && part.Index == 1 && (errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrBadVersion)):
			return nil, false, errMarkDeleted
		case errors.Is(err, zk.ErrBadVersion):
			return nil, false, nil
		default:
			return nil, false, err
		}
	}
}

// written reports whether a transaction was applied whose answer was lost. The
// mark tells: it is written in that transaction and never else. If another client
// deleted the mark, the node tells whether anything was written at all. If
// nothing was, the error is errMarkDeleted, and no transaction can be applied any
// more. After any other error nothing is known.
//
// The Sync makes this server show what the lost server had passed on.
func (m *mark) written(ctx context.Context, prev origin) (bool, error) {
	if err := m.session.Sync(ctx, m.path); err != nil {
		return false, err
	}
	there, stat, err := m.session.Exists(ctx, m.path)
	if err != nil {
		return false, err
	}
	if there {
		return stat.Version > m.version, nil
	}
	there, stat, err = m.session.Exists(ctx, prev.path)
	switch {
	case err != nil:
		return false, err
	case there && stat.Czxid == prev.czxid && stat.Mzxid == prev.mzxid:
		return false, errMarkDeleted
	}
	return false, errors.New("another client deleted the mark below the node, and the node was written or deleted since, by a client that is not known")
}
