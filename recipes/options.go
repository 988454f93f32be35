package recipes

import (
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/inside"
	"github.com/docent-go/docent/retry"
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
	ElectionOption
}

// settings are what the options say.
type settings struct {
	data      []byte
	named     bool // data was given
	acl       []zk.ACL
	stays     bool // parents that are made are persistent
	kazoo     bool
	noReentry bool // holds are not shared
	most      int  // nodes of one client, 0 for the default
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

// WithNodeData sets what is written into the lock's nodes. Other clients read there
// which process holds the lock (Curator: getLockNodeBytes). The nodes of a semaphore are
// its leases. The default is that of [client.WithDefaultData], the address of
// this host without it.
func WithNodeData(data []byte) NodeOption {
	return nodeFunc(func(s *settings) { s.data, s.named = slices.Clone(data), true })
}

// WithNodeACL sets the ACL of the lock's nodes and of the parents made for
// them. The default is that of the client. Every contender must be able to create,
// delete and list in the directory, and should be able to read the nodes. A contender
// behind a node that it may not read watches the whole directory, and lists it
// whenever another contender comes or goes. An ACL without
// an entry is refused by the constructor of the lock, with an error that matches
// client.ErrInvalidACL.
func WithNodeACL(acl ...zk.ACL) NodeOption {
	return nodeFunc(func(s *settings) { s.acl = append([]zk.ACL{}, acl...) })
}

// WithPersistentParents makes missing parents as persistent nodes, the directory of the lock
// among them (Curator: dontUseContainerParents). By default they are containers, which
// servers delete a while after the last contender has left. What a program has written into
// the directory goes with it.
//
// The directory stays until a client deletes it, so it suits a fixed number of paths: each
// path costs the servers memory for good. Its counter goes on, and the lock fails with
// [ErrSequenceExhausted] after 2,146,435,072 nodes. Swept directories begin again at 0.
// Parents that stand already stay what they are.
func WithPersistentParents() NodeOption {
	return nodeFunc(func(s *settings) { s.stays = true })
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

// WithMaxContenders bounds how many nodes of one client stand in the directory of the
// lock, whatever lock values the client has for it. The default is 64. Acquires beyond
// that wait in the process, first come, first served. They cost the servers nothing, and
// leave at once when their contexts end. So a hand-over costs the same whether 64
// goroutines wait or 10,000. A read hold does not count, and neither does an acquire
// whose context descends from a hold of the lock. A number below 1 counts as 1. A node of
// an acquire that has given up counts until it is deleted. All recipes on one path share
// the room.
//
// Between processes turns go by nodes: a process has at most that many in line.
func WithMaxContenders(n int) LockOption {
	return lockFunc(func(s *settings) { s.most = max(1, n) })
}

// check refuses settings that no lock can work with.
func (s *settings) check() error {
	if s.acl != nil && len(s.acl) == 0 {
		return fmt.Errorf("recipes: WithNodeACL without an entry: %w; leave the option out for the client's default", client.ErrInvalidACL)
	}
	return nil
}

// WithoutReentry lets an acquire inside a hold compete like any other client's,
// though its context descends from a hold of the lock. So holds of the lock are not
// shared with the goroutines that work under them. Such are the goroutines of an
// errgroup, or the handlers of a server whose base context is a hold's.
//
// An acquire that would wait for a hold that its context descends from is refused
// with [ErrWouldDeadlock], at once and without a node. On a mutex, and for writing,
// that is every such acquire. A reader whose context descends from a read hold takes
// a read hold with a node of its own. It is refused only if a writer has come in
// between. The option counts for the locks that are made with it, and for the holds
// that they have given. Another lock on the path does not re-enter these holds.
func WithoutReentry() LockOption {
	return lockFunc(func(s *settings) { s.noReentry = true })
}

// nodeData is what the nodes of c say. Before its first connection a lazy client
// does not know its address: met comes before.
func (s *settings) nodeData(c *client.Client) []byte {
	if s.named {
		return s.data
	}
	return inner.DefaultData(c)
}

// ElectionOption configures a [LeaderLatch] or a [LeaderSelector].
type ElectionOption interface{ applyElection(*electionSettings) }

// electionSettings are what the options say.
type electionSettings struct {
	*Election

	nodes settings
}

// electionFunc is an ElectionOption.
type electionFunc func(*electionSettings)

func (f electionFunc) applyElection(s *electionSettings) { f(s) }

func (f nodeFunc) applyElection(s *electionSettings) { f(&s.nodes) }

// WithID names the participant (Curator: the id of LeaderLatch, LeaderSelector.setId).
// The id is the data of its node, as text, and nothing else is. Ids need not be unique.
// If clients shall find the leader, its address belongs here: they read it as the ID of
// [Election.Leader] or of [Election.Observe]. The id does not change while the node stands. For
// more than an address the leader writes a node of its own, in a [Hold.Guard].
// Without the option the id is the client's default data. That is the address of this
// host, and its process and name if the client has one by client.WithName.
func WithID(id string) ElectionOption {
	return electionFunc(func(s *electionSettings) { s.nodes.data, s.nodes.named = []byte(id), true })
}

// WithPreferred names the participants that shall lead rather than this one, the most
// wanted first. When this participant's turn comes while a preferred one stands in line,
// this participant goes behind the others instead. It asks once for each term, and reads
// the node of every participant for that. If its own id is among the ids, only the ids
// before its own are preferred to it.
//
// Give all participants the same ids. While these differ, as in a rolling update, two
// participants may each prefer the other. A preferred participant may also die before it
// leads: then there is no leader until its session ends. So a campaign does not give way to
// the same id again within a minute, or within two session timeouts if these are longer.
// Sessions that last longer than that may leave the election without a leader again and
// again. A participant of Curator never gives way. A leader is
// not asked to stop: use [Term.HandOver] for that. If the preferred participant goes
// before it leads, the next one in line leads.
func WithPreferred(ids ...string) ElectionOption {
	return electionFunc(func(s *electionSettings) { s.preferred = slices.Clone(ids) })
}

// WithCampaignRetry sets the pauses of [Election.Run] between campaigns that fail.
// The default is retry.Default. If the policy gives up, Run ends with the last error.
func WithCampaignRetry(p retry.Policy) ElectionOption {
	return electionFunc(func(s *electionSettings) { s.retry = p })
}

// inner is what package client does for recipes alone.
var inner = inside.Of[client.Client, client.Session, client.Op]() //nolint:gochecknoglobals // functions of another package

// newNode is a node to be made.
type newNode = inside.Node[client.Client]
