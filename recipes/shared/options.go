package shared

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/retry"
)

// AtomicOption configures an atomic value or a [Sequence]. Every [Option] is one.
type AtomicOption interface{ apply(*settings) error }

// Option configures any value of this package.
type Option interface {
	AtomicOption
	everywhere()
}

// settings are what the options say.
type settings struct {
	acl      []zk.ACL
	stays    bool // parents that are made are persistent
	tries    retry.Policy
	promoted *promotion
	plain    bool // no mark
	wrapping bool
}

// promotion is what PromotedToLock says.
type promotion struct {
	lock    func(ctx context.Context, fn func(ctx context.Context) error) error
	timeout time.Duration
	tries   retry.Policy
}

type atomicOption func(*settings) error

func (f atomicOption) apply(s *settings) error { return f(s) }

type option struct{ atomicOption }

func (option) everywhere() {}

// defaultTries are short, because a client that lost a race need not wait for
// anything to mend.
func defaultTries() retry.Policy { return retry.Exponential(time.Millisecond, 50*time.Millisecond) }

func newSettings[O AtomicOption](opts []O) (settings, error) {
	s := settings{tries: defaultTries()}
	var err error
	for _, o := range opts {
		if any(o) != nil {
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
	return option{func(s *settings) error {
		if len(acl) == 0 {
			return fmt.Errorf("%w: WithNodeACL without an entry", client.ErrInvalidACL)
		}
		s.acl = append([]zk.ACL{}, acl...)
		return nil
	}}
}

// WithPersistentParents makes missing parents as persistent nodes, which stay until a client
// deletes them. By default they are containers: when the value is deleted, servers delete them
// a while after their last child is gone, and what a program has written there with them.
func WithPersistentParents() Option {
	return option{func(s *settings) error { s.stays = true; return nil }}
}

// WithTries says how often an operation tries again after another client wrote in
// between, and after which pauses. It is Curator's retry policy of an atomic value.
// The default is retry.Exponential(1ms, 50ms): until the context ends.
func WithTries(p retry.Policy) AtomicOption {
	return atomicOption(func(s *settings) error {
		s.tries = p
		return nil
	})
}

// WithWrapping lets a sum that does not fit wrap around, as Curator does. Without it
// such an addition fails with [ErrOverflow].
func WithWrapping() AtomicOption {
	return atomicOption(func(s *settings) error {
		s.wrapping = true
		return nil
	})
}

// WithoutMark writes as Curator does: one set with a version and no child of the node.
// That takes no right to create and delete below the node, and saves the first
// operation of a series a round trip and two writes. The price: if an answer is lost
// and the node has changed, the error matches client.UnknownOutcome. And if the
// node is deleted and made again during an operation, the new one may be written; the
// error says so, and matches client.UnknownOutcome.
func WithoutMark() AtomicOption {
	return atomicOption(func(s *settings) error {
		s.plain = true
		return nil
	})
}

// Lock is a lock that an operation can wait for: a *recipes.InterProcessMutex is one.
// H is what it calls a hold.
type Lock[H any] interface {
	Do(ctx context.Context, fn func(ctx context.Context, hold H) error) error
}

// PromotedToLock lets an operation that has used up the tries of [WithTries] wait for a
// lock and try again under it. It is Curator's PromotedToLock. An InterProcessMutex on
// the lock path of Java processes contends with them.
//
//	mutex, err := recipes.NewInterProcessMutex(c, "/locks/orders")
//	n, err := shared.NewDistributedAtomicLong(c, "/counts/orders",
//		shared.WithTries(retry.NTimes(3, time.Millisecond)),
//		shared.PromotedToLock(mutex, 10*time.Second, retry.NTimes(10, time.Millisecond)))
//
// timeout bounds the wait for the lock and the tries under it; 0 leaves it to the
// context of the operation. A try that has begun is not cut short: its write would be
// in doubt. If the lock is not acquired, the error matches [ErrContended] and the
// lock's own error. Clients that have not been promoted do not wait for the lock. So a
// try under it may still lose: tries says how often it is repeated.
//
// Each operation that wants the lock calls Do with its own context, in a goroutine. The
// first that gets the lock writes for all of them. So the holder of a re-entrant lock may
// go on adding. Operations that meet no contention do not wait for the lock.
func PromotedToLock[H any](lock Lock[H], timeout time.Duration, tries retry.Policy) AtomicOption {
	return atomicOption(func(s *settings) error {
		if v := reflect.ValueOf(lock); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
			return errors.New("the lock of PromotedToLock is nil; make one with recipes.NewInterProcessMutex")
		}
		if timeout < 0 {
			return fmt.Errorf("the timeout of PromotedToLock is %v; give 0 for none", timeout)
		}
		s.promoted = &promotion{timeout: timeout, tries: tries, lock: func(ctx context.Context, fn func(context.Context) error) error {
			return lock.Do(ctx, func(ctx context.Context, _ H) error { return fn(ctx) })
		}}
		return nil
	})
}

// parents is the option for missing parents.
func (s *settings) parents() client.CreateOption {
	if s.stays {
		return client.WithPersistentParents()
	}
	return client.WithParents()
}

// createOptions are the options for the node and for a mark below it.
func (s *settings) createOptions() []client.CreateOption {
	if s.acl == nil {
		return nil
	}
	return []client.CreateOption{client.ACL(s.acl...), client.ParentACL(s.acl...)}
}
