package recipes

import (
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
)

// LockOption configures an [InterProcessMutex] or an [InterProcessReadWriteLock].
type LockOption interface{ applyLock(*settings) }

// SemaphoreOption configures an [InterProcessSemaphoreV2] or an
// [InterProcessSemaphoreMutex].
type SemaphoreOption interface{ applySemaphore(*settings) }

// NodeOption is about the nodes of a lock, and configures all that have some.
type NodeOption interface {
	LockOption
	SemaphoreOption
}

// settings are what the options say.
type settings struct {
	data  []byte
	named bool // data was given
	acl   []zk.ACL
	kazoo bool
	alone bool // holds are not shared
}

// lockFunc is a LockOption, and nodeFunc a NodeOption.
type (
	lockFunc func(*settings)
	nodeFunc func(*settings)
)

func (f lockFunc) applyLock(s *settings)      { f(s) }
func (f nodeFunc) applyLock(s *settings)      { f(s) }
func (f nodeFunc) applySemaphore(s *settings) { f(s) }

func newSettings(opts []LockOption) settings {
	var s settings
	for _, o := range opts {
		if o != nil {
			o.applyLock(&s)
		}
	}
	return s
}

func newSemaphoreSettings(opts []SemaphoreOption) settings {
	var s settings
	for _, o := range opts {
		if o != nil {
			o.applySemaphore(&s)
		}
	}
	return s
}

// WithNodeData sets what is written into the lock's nodes, where others can
// read who holds it (Curator: getLockNodeBytes). The nodes of a semaphore are
// its leases. The default is that of [client.WithDefaultData], the address of
// this host without it.
func WithNodeData(data []byte) NodeOption {
	return nodeFunc(func(s *settings) { s.data, s.named = slices.Clone(data), true })
}

// WithNodeACL sets the ACL of the lock's nodes and of the parents made for
// them. The default is that of the client. Everybody who contends must be able
// to create, delete and list in the directory, and should be able to read the
// nodes: a contender behind a node that it may not read watches the whole
// directory, and lists it whenever another contender comes or goes. An ACL without
// an entry is refused by the constructor of the lock, with an error that matches
// client.ErrInvalidACL.
func WithNodeACL(acl ...zk.ACL) NodeOption {
	return nodeFunc(func(s *settings) { s.acl = append([]zk.ACL{}, acl...) })
}

// WithKazoo lets Python's kazoo contend for the same lock. Without it a lock
// that finds kazoo's nodes in its directory refuses with [ErrForeignLock],
// because kazoo by default waits for its own nodes alone. With it the caller
// vouches that every kazoo lock there is made with
//
//	extra_lock_patterns=["-lock-"]                  # Lock
//	extra_lock_patterns=["__READ__", "__WRIT__"]    # WriteLock
//	extra_lock_patterns=["__WRIT__"]                # ReadLock
//
// and then all stand in one line. Curator's locks do not see kazoo's: the
// three must not share a directory.
func WithKazoo() LockOption {
	return lockFunc(func(s *settings) { s.kazoo = true })
}

// check refuses settings that no lock can work with.
func (s *settings) check() error {
	if s.acl != nil && len(s.acl) == 0 {
		return fmt.Errorf("recipes: WithNodeACL without an entry: %w; leave the option out for the client's default", client.ErrInvalidACL)
	}
	return nil
}

// WithoutReentry lets an acquire inside a hold compete like any other client's,
// though its context descends from a hold of the lock. Holds of the lock are not shared with
// the goroutines that work under them: those of an errgroup, or the handlers of a
// server whose base context is a hold's.
//
// An acquire that would wait for a hold that its context descends from is refused
// with [ErrWouldDeadlock], at once and without a node: on a mutex and for writing
// every one. A reader whose context descends from a read hold takes a read hold of
// its own, with a node of its own, and is refused only if a writer has come in
// between. The option counts for the locks that are made with it, and for the
// holds that they have given: another lock on the path does not re-enter those.
func WithoutReentry() LockOption {
	return lockFunc(func(s *settings) { s.alone = true })
}

// nodeData is what the nodes of c say. Before its first connection a lazy client
// does not know its address: met comes before.
func (s *settings) nodeData(c *client.Client) []byte {
	if s.named {
		return s.data
	}
	return inner.DefaultData(c)
}
