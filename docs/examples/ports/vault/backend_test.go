package vault_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	before "github.com/hashicorp/vault/physical/zookeeper"
	"github.com/hashicorp/vault/sdk/physical"

	"github.com/docent-go/docent/docs/examples/ports/vault"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// patience is for what must happen.
const patience = 20 * time.Second

// open returns a backend of the server. Vault's own backend cannot be closed.
func open(t *testing.T, srv *zktest.Server, factory physical.Factory) physical.Backend {
	t.Helper()
	b, err := factory(map[string]string{"address": srv.Addr(), "path": "vault/"}, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	if ours, ok := b.(*vault.Backend); ok {
		t.Cleanup(func() { _ = ours.Close() })
	}
	return b
}

// lockable returns the backend as one that has locks.
func lockable(t *testing.T, b physical.Backend) physical.HABackend {
	t.Helper()
	ha, ok := b.(physical.HABackend)
	if !ok {
		t.Fatalf("%T has no locks", b)
	}
	return ha
}

// hold takes the lock of a key.
func hold(t *testing.T, b physical.Backend, value string) (physical.Lock, <-chan struct{}) {
	t.Helper()
	lock, err := lockable(t, b).LockWith("core/lock", value)
	if err != nil {
		t.Fatal(err)
	}
	lost, err := lock.Lock(nil)
	if err != nil || lost == nil {
		t.Fatalf("Lock returned %v, %v", lost, err)
	}
	return lock, lost
}

// put writes an entry.
func put(t *testing.T, b physical.Backend, key, value string) error {
	t.Helper()
	return b.Put(t.Context(), &physical.Entry{Key: key, Value: []byte(value)})
}

// Vault's own suite.
func TestExercise(t *testing.T) {
	t.Parallel()
	b := open(t, zktest.NewServer(t), vault.New)
	physical.ExerciseBackend(t, b)
	physical.ExerciseBackend_ListPrefix(t, b)
}

// Vault's own suite of locks, also between its own backend and this one: in a rolling
// upgrade old and new servers exclude each other. The suite registers the lock of the one
// backend with the other for fencing, which only locks of one kind bear.
func TestExerciseHA(t *testing.T) {
	t.Parallel()
	for name, pair := range map[string][2]physical.Factory{
		"new and new": {vault.New, vault.New},
		"old and new": {before.NewZooKeeperBackend, vault.New},
		"new and old": {vault.New, before.NewZooKeeperBackend},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := zktest.NewServer(t)
			a, b := lockable(t, open(t, srv, pair[0])), lockable(t, open(t, srv, pair[1]))
			if name != "new and new" {
				a, b = struct{ physical.HABackend }{a}, struct{ physical.HABackend }{b}
			}
			physical.ExerciseHABackend(t, a, b)
		})
	}
}

// Old and new read each other's entries.
func TestSameNodes(t *testing.T) {
	t.Parallel()
	srv := zktest.NewServer(t)
	b, old := open(t, srv, vault.New), open(t, srv, before.NewZooKeeperBackend)
	for i, from := range []physical.Backend{b, old} {
		if err := put(t, from, "a/b/"+strconv.Itoa(i), "value"); err != nil {
			t.Fatal(err)
		}
	}
	for _, in := range []physical.Backend{b, old} {
		for i := range 2 {
			if e, err := in.Get(t.Context(), "a/b/"+strconv.Itoa(i)); err != nil || e == nil || string(e.Value) != "value" {
				t.Errorf("%T reads %v, %v", in, e, err)
			}
		}
		if keys, err := in.List(t.Context(), "a/b/"); err != nil || !slices.Equal(keys, []string{"0", "1"}) {
			t.Errorf("%T lists %q, %v", in, keys, err)
		}
	}
}

// The write of a server that is not active any more is refused. Vault's own backend stores it.
func TestLateWrite(t *testing.T) {
	t.Parallel()
	srv := zktest.NewServer(t)
	b := open(t, srv, vault.New)
	lock, lost := hold(t, b, "a")
	fenced, ok := b.(physical.FencingHABackend)
	if !ok {
		t.Fatal("no fencing")
	}
	if err := fenced.RegisterActiveNodeLock(lock); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"entry", "new/directory/entry", "entry"} {
		if err := put(t, b, key, "of a"); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range srv.Sessions() {
		srv.ExpireSession(s.ID)
	}
	<-lost
	if err := put(t, b, "entry", "late"); !errors.Is(err, recipes.ErrLost) {
		t.Errorf("a late write returned %v", err)
	}
	if err := b.Delete(t.Context(), "entry"); !errors.Is(err, recipes.ErrLost) {
		t.Errorf("a late delete returned %v", err)
	}
	if e, err := b.Get(t.Context(), "entry"); err != nil || e == nil || string(e.Value) != "of a" {
		t.Errorf("the entry is %v, %v", e, err)
	}
	unfenced := physical.UnfencedWriteCtx(t.Context())
	if err := b.Put(unfenced, &physical.Entry{Key: "entry", Value: []byte("x")}); err != nil {
		t.Errorf("an unfenced write returned %v", err)
	}
	if err := lock.Unlock(); err != nil {
		t.Errorf("Unlock of a lost lock returned %v", err)
	}
	lock, _ = hold(t, b, "b")
	if held, value, err := lock.Value(); !held || value != "b" || err != nil {
		t.Errorf("Value is %v, %q, %v", held, value, err)
	}
	if err := lock.Unlock(); err != nil {
		t.Error(err)
	}
	if held, value, err := lock.Value(); held || value != "b" || err != nil {
		t.Errorf("after Unlock Value is %v, %q, %v", held, value, err)
	}
}

// Several servers may make the same directories. Vault's own backend fails there.
func TestNewDirectoryTogether(t *testing.T) {
	t.Parallel()
	b := open(t, zktest.NewServer(t), vault.New)
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			if err := put(t, b, fmt.Sprintf("new/directory/%d", i), "value"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if keys, err := b.List(t.Context(), "new/directory/"); err != nil || len(keys) != 16 {
		t.Errorf("%d keys, %v", len(keys), err)
	}
}

// A key whose directory is gone is deleted without an error.
func TestDeleteWithoutDirectory(t *testing.T) {
	t.Parallel()
	if err := open(t, zktest.NewServer(t), vault.New).Delete(t.Context(), "no/such/entry"); err != nil {
		t.Error(err)
	}
}
