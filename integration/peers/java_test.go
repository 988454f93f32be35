package peers_test

import (
	"context"
	"errors"
	"path"
	"regexp"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/integration/harness"
	"github.com/docent-go/docent/integration/peers"
)

const base = "/locks/m"

func TestPeersJavaMutex(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	node := harness.StartServer(ctx, t)
	raw, _ := harness.Dial(ctx, t, 10*time.Second, node.Addr())
	java := peers.StartJava(ctx, t)
	session, err := java.Connect(ctx, node.Addr(), 10*time.Second)
	check(t, err)
	check(t, java.Mutex(ctx, "m", base))
	one, two := java.Thread("one"), java.Thread("two")

	check(t, one.Acquire(ctx, "m"))
	children, _, err := raw.Children(base)
	check(t, err)
	if len(children) != 1 || !regexp.MustCompile(`^_c_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-lock-\d{10}$`).MatchString(children[0]) {
		t.Fatalf("children: %v", children)
	}
	own := path.Join(base, children[0])
	if _, stat, err := raw.Get(own); err != nil || stat.EphemeralOwner != session {
		t.Fatalf("owner of %s is %#x, session is %#x: %v", own, stat.EphemeralOwner, session, err)
	}
	if got, err := java.Participants(ctx, "m"); err != nil || len(got) != 1 || got[0] != own {
		t.Fatalf("participants: %v, %v", got, err)
	}

	// The same thread enters again, another one waits.
	check(t, one.Acquire(ctx, "m"))
	check(t, one.Release(ctx, "m"))
	if ok, err := two.TryAcquire(ctx, "m", 200*time.Millisecond); ok || err != nil {
		t.Fatalf("second thread: %t, %v", ok, err)
	}
	waiting := make(chan error, 1)
	go func() { waiting <- two.Acquire(ctx, "m") }()
	check(t, one.Release(ctx, "m"))
	check(t, <-waiting)

	// The client underneath Docent's waits for Curator.
	lock := zk.NewLock(raw, base, zk.WorldACL(zk.PermAll))
	locked := make(chan error, 1)
	go func() { locked <- lock.Lock() }()
	select {
	case err := <-locked:
		t.Fatalf("two holders: %v", err)
	case <-time.After(200 * time.Millisecond): // long against a round trip
	}
	check(t, two.Release(ctx, "m"))
	check(t, <-locked)
	check(t, lock.Unlock())

	var thrown *peers.Error
	if err := one.Release(ctx, "m"); !errors.As(err, &thrown) || thrown.Class != "java.lang.IllegalMonitorStateException" {
		t.Fatalf("release of what is not held: %v", err)
	}
	if children, _, err := raw.Children(base); err != nil || len(children) != 0 {
		t.Fatalf("left behind: %v, %v", children, err)
	}
}

func TestPeersJavaEnds(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	node := harness.StartServer(ctx, t)
	raw, _ := harness.Dial(ctx, t, 10*time.Second, node.Addr())
	java := peers.StartJava(ctx, t)
	holder := java.Thread("holder")
	if err := java.Mutex(ctx, "m", base); err == nil {
		t.Fatal("a mutex without a client")
	}
	first, err := java.Connect(ctx, node.Addr(), 2*time.Second)
	check(t, err)
	check(t, java.Mutex(ctx, "m", base))

	// awaitGone waits until the holder's node is away.
	awaitGone := func() {
		t.Helper()
		for {
			children, _, changed, err := raw.ChildrenW(base)
			check(t, err)
			if len(children) == 0 {
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
				t.Fatalf("still there: %v", children)
			}
		}
	}

	check(t, holder.Acquire(ctx, "m"))
	check(t, java.KillSession(ctx))
	awaitGone()
	check(t, java.Close(ctx))
	second, err := java.Connect(ctx, node.Addr(), 2*time.Second)
	check(t, err)
	if first == second {
		t.Fatalf("session %#x outlived its kill", first)
	}

	check(t, java.Mutex(ctx, "m", base))
	check(t, holder.Acquire(ctx, "m"))
	check(t, java.Pause())
	short, stop := context.WithTimeout(ctx, 100*time.Millisecond)
	defer stop()
	if _, err := java.Session(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("a paused peer answered: %v", err)
	}
	awaitGone() // expired
	check(t, java.Unpause())
	if id, err := java.Session(ctx); err != nil || id == 0 {
		t.Fatalf("session after the pause: %#x, %v", id, err)
	}

	check(t, java.Kill(ctx))
	if err := holder.Acquire(ctx, "m"); !errors.Is(err, peers.ErrEnded) {
		t.Fatalf("a killed peer: %v", err)
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
