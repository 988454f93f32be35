package nodes

import (
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
)

// Option configures a node of this package.
type Option interface{ apply(*settings) error }

// settings are what the options say.
type settings struct {
	acl             []zk.ACL
	protected       bool
	takeOver        bool
	stopWhenRemoved bool
	noParents       bool
	parentsStay     bool
	lazy            bool
}

type optionFunc func(*settings) error

func (f optionFunc) apply(s *settings) error { return f(s) }

func newSettings(opts []Option) (s settings, err error) {
	for _, o := range opts {
		if o != nil {
			err = errors.Join(err, o.apply(&s))
		}
	}
	return s, err
}

// WithNodeACL sets the ACL of the node and of the parents that are made for it. The
// default is the client's. It should let the client read the node: otherwise a server
// refuses to look at it, or does not tell when it is deleted. Without an entry, the
// constructor fails with an error that matches client.ErrInvalidACL.
func WithNodeACL(acl ...zk.ACL) Option {
	return optionFunc(func(s *settings) error {
		if len(acl) == 0 {
			return fmt.Errorf("%w: WithNodeACL without an entry", client.ErrInvalidACL)
		}
		s.acl = append([]zk.ACL{}, acl...)
		return nil
	})
}

// WithProtection puts "_c_<uuid>-" in front of the node's name, with a new UUID each
// time that the node is made. It is the useProtection of Curator's PersistentNode.
func WithProtection() Option {
	return optionFunc(func(s *settings) error { s.protected = true; return nil })
}

// TakeOver says that the path belongs to this object alone. An ephemeral node of
// another session is replaced in one transaction, as if it were of a lost session of
// this object. It is for names that no other live process can have, such as that of
// a process which was killed and has started again. Two live processes that take one
// path over from each other go on for ever, with pauses of up to 2 s.
//
// A persistent node that stood before is then deleted by Close; without TakeOver
// Close leaves it.
func TakeOver() Option {
	return optionFunc(func(s *settings) error { s.takeOver = true; return nil })
}

// StopWhenRemoved makes a node that another client deletes stay deleted. The state
// becomes [Removed], and nothing more is done. Without it the node is made again, as
// Curator does.
func StopWhenRemoved() Option {
	return optionFunc(func(s *settings) error { s.stopWhenRemoved = true; return nil })
}

// WithPersistentParents makes missing parents as persistent nodes, which stay until a client
// deletes them. By default they are containers: servers delete them a while after their last
// child is gone, and what a program has written there with them. So a group without members
// has no path then.
func WithPersistentParents() Option {
	return optionFunc(func(s *settings) error { s.parentsStay = true; return nil })
}

// WithoutParents makes no missing parents. While the parent is missing the state is
// [Refused], with an error that matches client.ErrNoNode. It is the
// useParentCreation=false of Curator's PersistentNode. Curator then gives up until it
// connects again; here the create is tried again.
func WithoutParents() Option {
	return optionFunc(func(s *settings) error { s.noParents = true; return nil })
}

// WithLazyStart makes Start return at once. The node is made in the background, and is tried
// again for as long as the object lives; [PersistentNode.Wait] waits until it stands. It is
// for a service that starts without its servers, with client.WithLazyConnect, or beside a
// process that has its name.
func WithLazyStart() Option {
	return optionFunc(func(s *settings) error { s.lazy = true; return nil })
}
