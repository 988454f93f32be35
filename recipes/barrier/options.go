package barrier

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
)

// Option configures a barrier of this package.
type Option interface{ apply(*settings) error }

// settings are what the options say.
type settings struct {
	acl    []zk.ACL
	stays  bool // parents that are made are persistent
	name   string
	rounds bool
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

// WithNodeACL sets the ACL of the nodes and of the parents that are made for them. The
// default is the client's. Without an entry, the constructor fails with an error that
// matches client.ErrInvalidACL.
func WithNodeACL(acl ...zk.ACL) Option {
	return optionFunc(func(s *settings) error {
		if len(acl) == 0 {
			return fmt.Errorf("%w: WithNodeACL without an entry", client.ErrInvalidACL)
		}
		s.acl = append([]zk.ACL{}, acl...)
		return nil
	})
}

// WithPersistentParents makes missing parents as persistent nodes, which stay until a client
// deletes them. By default they are containers: servers delete them a while after their last
// child is gone, and what a program has written there with them.
func WithPersistentParents() Option {
	return optionFunc(func(s *settings) error { s.stays = true; return nil })
}

// WithMemberName writes a name into the nodes of this barrier's members, a word. By
// these names [View.Missing] says which members have not come. A [DistributedBarrier]
// has no members and ignores it.
func WithMemberName(name string) Option {
	return optionFunc(func(s *settings) error {
		if len(strings.Fields(name)) != 1 || strings.TrimSpace(name) != name {
			return fmt.Errorf("the member name %q is not one word; write it without spaces", name)
		}
		s.name = name
		return nil
	})
}

// WithRounds makes it safe to enter the same double barrier again and again. A member
// that comes while an earlier round is open waits until that round is over, and is
// counted in the next. Without it such a member joins the open round, as in Curator,
// where the members of a round are a threshold and not a limit.
//
// All members should have it. Members without it, and Curator's, join an open round.
// A [DistributedBarrier] has no rounds and ignores it.
func WithRounds() Option {
	return optionFunc(func(s *settings) error { s.rounds = true; return nil })
}

// creation are the options of a node that is created.
func (s *settings) creation(more ...client.CreateOption) []client.CreateOption {
	if s.acl != nil {
		more = append(more, client.ACL(s.acl...))
	}
	return more
}

// parents are creation with missing parents made.
func (s *settings) parents(more ...client.CreateOption) []client.CreateOption {
	if s.acl != nil {
		more = append(more, client.ParentACL(s.acl...))
	}
	if s.stays {
		return s.creation(append(more, client.WithPersistentParents())...)
	}
	return s.creation(append(more, client.WithParents())...)
}
