package valkeyrie_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/kvtools/valkeyrie"
	"github.com/kvtools/valkeyrie/store"
	"github.com/kvtools/valkeyrie/testsuite"
	before "github.com/kvtools/zookeeper"

	ported "github.com/docent-go/docent/docs/examples/ports/valkeyrie"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

func open(t *testing.T, srv *zktest.Server) *ported.Store {
	t.Helper()
	s, err := ported.New(t.Context(), []string{srv.Addr()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// Valkeyrie's own suite, with the two parts that its own store for ZooKeeper leaves out:
// keys of locks are not listed, and the wait for a lock ends with its context.
func TestSuite(t *testing.T) {
	t.Parallel()
	for name, part := range map[string]func(*testing.T, *zktest.Server){
		"common":    func(t *testing.T, srv *zktest.Server) { testsuite.RunTestCommon(t, open(t, srv)) },
		"atomic":    func(t *testing.T, srv *zktest.Server) { testsuite.RunTestAtomic(t, open(t, srv)) },
		"watch":     func(t *testing.T, srv *zktest.Server) { testsuite.RunTestWatch(t, open(t, srv)) },
		"lock":      func(t *testing.T, srv *zktest.Server) { testsuite.RunTestLock(t, open(t, srv)) },
		"list lock": func(t *testing.T, srv *zktest.Server) { testsuite.RunTestListLock(t, open(t, srv)) },
		"ttl":       func(t *testing.T, srv *zktest.Server) { testsuite.RunTestTTL(t, open(t, srv), open(t, srv)) },
		"lock ttl":  func(t *testing.T, srv *zktest.Server) { testsuite.RunTestLockTTL(t, open(t, srv), open(t, srv)) },
		"cleanup": func(t *testing.T, srv *zktest.Server) {
			s := open(t, srv)
			testsuite.RunTestCommon(t, s)
			testsuite.RunCleanup(t, s)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			part(t, zktest.NewServer(t))
		})
	}
}

// A program finds the store by its name.
func TestRegister(t *testing.T) { //nolint:paralleltest // Valkeyrie has one list of stores
	valkeyrie.Unregister(before.StoreName) // which registers itself
	ported.Register()
	srv := zktest.NewServer(t)
	s, err := valkeyrie.NewStore(t.Context(), ported.StoreName, []string{srv.Addr()}, &ported.Config{Username: "u", Password: "p"})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Put(t.Context(), "key", []byte("value"), nil); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	var wrong *store.InvalidConfigurationError
	if _, err := valkeyrie.NewStore(t.Context(), ported.StoreName, nil, "text"); !errors.As(err, &wrong) {
		t.Errorf("a wrong configuration: %v", err)
	}
}

// Locks of Valkeyrie's own store and of this one exclude each other. The channel is closed
// at a lost session.
func TestLocksTogether(t *testing.T) {
	t.Parallel()
	srv := zktest.NewServer(t)
	old, err := before.New(t.Context(), []string{srv.Addr()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = old.Close() }()
	queued := make(chan string, 16)
	srv.OnCommit(func(c zktest.Commit) {
		for _, node := range c.Created {
			if strings.HasPrefix(node, "/key/") {
				queued <- node
			}
		}
	})
	for _, in := range []struct{ first, second store.Store }{{old, open(t, srv)}, {open(t, srv), old}} {
		first, err := in.first.NewLock(t.Context(), "key", &store.LockOptions{Value: []byte("1")})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := first.Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
		second, err := in.second.NewLock(t.Context(), "key", &store.LockOptions{Value: []byte("2")})
		if err != nil {
			t.Fatal(err)
		}
		var released atomic.Bool
		got := make(chan error, 1)
		go func() {
			_, err := second.Lock(t.Context())
			if err == nil && !released.Load() {
				err = fmt.Errorf("%T holds beside %T", in.second, in.first)
			}
			got <- err
		}()
		<-queued
		<-queued
		released.Store(true)
		if err := first.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-got; err != nil {
			t.Fatal(err)
		}
		if err := second.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// The channel of a lock is closed when the session is lost, and the next Lock works.
func TestLostLock(t *testing.T) {
	t.Parallel()
	srv := zktest.NewServer(t)
	lock, err := open(t, srv).NewLock(t.Context(), "key", nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		lost, err := lock.Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range srv.Sessions() {
			srv.ExpireSession(s.ID)
		}
		<-lost
		if err := lock.Unlock(t.Context()); !errors.Is(err, recipes.ErrLost) {
			t.Errorf("Unlock of a lost lock returned %v", err)
		}
	}
}
