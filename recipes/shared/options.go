package shared

import (
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
)

// Option configures a value of this package.
type Option interface{ apply(*settings) error }

// settings are what the options say.
type settings struct{ acl []zk.ACL }

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

// WithNodeACL sets the ACL of the node and of the parents that are made for it.
// The default is the client's. A node that is there already keeps its own ACL.
// Without an entry, the constructor fails with an error that matches
// client.ErrInvalidACL.
func WithNodeACL(acl ...zk.ACL) Option {
	return optionFunc(func(s *settings) error {
		if len(acl) == 0 {
			return fmt.Errorf("%w: WithNodeACL without an entry", client.ErrInvalidACL)
		}
		s.acl = append([]zk.ACL{}, acl...)
		return nil
	})
}

// createOptions are those of the node and of a mark below it.
func (s *settings) createOptions() []client.CreateOption {
	if s.acl == nil {
		return nil
	}
	return []client.CreateOption{client.ACL(s.acl...), client.ParentACL(s.acl...)}
}
