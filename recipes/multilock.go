package recipes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/docent-go/docent/client"
)

// InterProcessMultiLock holds several locks as one, all of them or none. It is
// Curator's InterProcessMultiLock, but two of them cannot deadlock each other
// in whatever order they name their locks: the queues of all locks of one
// client are entered in one transaction, so that whoever is ahead in one is
// ahead in all. It has no nodes of its own; each lock's are as if it were
// acquired alone, and Curator's processes may contend for any of them.
//
// While it waits for one of the locks it is in everybody's way in all of them:
// it holds those whose turn has come, and those behind it in the others wait,
// also for permits of a semaphore that are free.
//
// The locks of different clients cannot be entered in one transaction. They
// are entered client after client, each client's locks at once and held before
// the next client's are entered, in the order of [client.Client.Servers], so
// that two of them cannot deadlock each other either if they write the
// addresses of an ensemble alike and use one client for each. Two clients of
// one ensemble are entered in the order of their least paths, and can deadlock
// with those who enter the same locks at once; the namespaces of one client
// are one client.
//
// Curator's InterProcessMultiLock enters a queue only when it holds the lock
// before. It may be ahead of this one in the first and behind it in the second
// even where both name them in the same order, and then both wait until one
// gives up. Where the two meet, use [InterProcessMultiLock.OneByOne], and one
// order of names everywhere. Curator's single locks are no danger.
//
// It is safe for concurrent use, holds no state and needs no Close.
type InterProcessMultiLock struct {
	path    string // of the locks, for errors
	entries []entrance
	groups  [][]int // of entries: who is entered at once, in order
}

// NewInterProcessMultiLock returns the lock of all locks. Two locks with one
// queue are refused: they would wait for each other.
func NewInterProcessMultiLock(locks ...Lock) (*InterProcessMultiLock, error) {
	if len(locks) == 0 {
		return nil, errors.New("recipes: a multi-lock without locks; name at least one")
	}
	m := &InterProcessMultiLock{}
	for i, l := range locks {
		if l == nil || reflect.ValueOf(l).IsZero() { // also a nil *InterProcessMutex
			return nil, fmt.Errorf("recipes: lock %d of a multi-lock is nil", i)
		}
		e := l.entrance()
		for _, other := range m.entries {
			if other.line == e.line {
				return nil, fmt.Errorf("recipes: a multi-lock names the queue of %s twice; it would wait for itself", e.path)
			}
		}
		m.entries = append(m.entries, e)
	}
	all := make([]int, len(m.entries))
	for i := range all {
		all[i] = i
	}
	m.path = m.named(all)
	m.group(all)
	return m, nil
}

// named is the path of several locks, for errors.
func (m *InterProcessMultiLock) named(some []int) string {
	paths := make([]string, len(some))
	for k, i := range some {
		paths[k] = m.entries[i].path
	}
	return strings.Join(paths, "+")
}

// group sorts the locks by client, and the clients by their servers.
func (m *InterProcessMultiLock) group(all []int) {
	byPath := slices.Clone(all)
	slices.SortStableFunc(byPath, func(a, b int) int { return cmp.Compare(m.entries[a].line.path, m.entries[b].line.path) })
	place := make(map[*client.Client]int)
	for _, i := range byPath {
		root := m.entries[i].line.root
		n, ok := place[root]
		if !ok {
			n = len(m.groups)
			place[root] = n
			m.groups = append(m.groups, nil)
		}
		m.groups[n] = append(m.groups[n], i)
	}
	slices.SortStableFunc(m.groups, func(a, b []int) int {
		return slices.Compare(m.entries[a[0]].line.root.Servers(), m.entries[b[0]].line.root.Servers())
	})
}

// OneByOne returns a lock of the same locks that acquires them as Curator does,
// one after the other in the order in which they were named, for fleets where
// Curator's InterProcessMultiLock is in use. It does not deadlock with those
// that name the locks they share in the same order, of either library; it may
// with others.
func (m *InterProcessMultiLock) OneByOne() *InterProcessMultiLock {
	one := *m
	one.groups = make([][]int, len(m.entries))
	for i := range one.groups {
		one.groups[i] = []int{i}
	}
	return &one
}

// Acquire waits until all locks are held. ctx bounds the waiting for all of
// them together and nothing after it; the hold lasts until it is released or
// one of the locks is lost.
//
// On error none is held and no node remains, or its removal goes on in the
// background until it succeeds or the session is over. The error is a
// [*LockError] that names the lock that failed, or all that were to be entered
// at once, and matches the same as that lock's own. It also matches [ErrLost]
// if a lock that was held already was lost while waiting for another.
//
// Locks that ctx holds already are re-entered first, as by their own Acquire.
// That is holding some while waiting for others, and two who do so can
// deadlock each other.
func (m *InterProcessMultiLock) Acquire(ctx context.Context) (*MultiHold, error) {
	straight := func(context.Context, []int) error { return nil }
	return m.enter(ctx, acquiring, straight, func(e entrance) turn { return e.await })
}

// TryAcquire takes the locks if nobody holds or waits for any of them, as the
// TryAcquire of each. If somebody is ahead it returns a [*BusyError] that names
// one of them, and makes no node unless they came in the same moment.
func (m *InterProcessMultiLock) TryAcquire(ctx context.Context) (*MultiHold, error) {
	return m.enter(ctx, trying, m.free, func(e entrance) turn { return e.try })
}

// free returns a BusyError if somebody would be ahead in one of some locks.
func (m *InterProcessMultiLock) free(ctx context.Context, some []int) error {
	errs := make([]error, len(some))
	var all sync.WaitGroup
	for k, i := range some {
		all.Go(func() {
			if err := m.entries[i].free(ctx); err != nil {
				errs[k] = &LockError{Path: m.entries[i].path, Err: err}
			}
		})
	}
	all.Wait()
	return cmp.Or(errs...)
}

// Do runs fn while all locks are held, as [InterProcessMutex.Do].
func (m *InterProcessMultiLock) Do(ctx context.Context, fn func(ctx context.Context) error) error {
	return do(ctx, m.Acquire, fn)
}

// Path names the locks, joined by plus signs. It is for people.
func (m *InterProcessMultiLock) Path() string { return m.path }
