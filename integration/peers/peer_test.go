package peers_test

import (
	"context"
	"errors"
	"path"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/integration/harness"
	"github.com/docent-go/docent/integration/peers"
	"github.com/docent-go/docent/integration/sessions"
)

const base = "/locks/m"

func TestPeersJavaMutex(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	node := harness.StartServer(ctx, t)
	raw, _ := harness.Dial(ctx, t, 10*time.Second, node.Addr())
	java := peers.StartJava(ctx, t)
	session, err := java.Connect(ctx, "c", node.Addr(), 10*time.Second)
	check(t, err)
	check(t, java.Make(ctx, "m", "c", "mutex", base))
	one, two := java.Thread("one"), java.Thread("two")

	nodes, err := one.Acquire(ctx, "m", 1, peers.Forever)
	check(t, err)
	children, _, err := raw.Children(base)
	check(t, err)
	if len(children) != 1 || !regexp.MustCompile(`^_c_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-lock-\d{10}$`).MatchString(children[0]) {
		t.Fatalf("children: %v", children)
	}
	own := path.Join(base, children[0])
	if _, stat, err := raw.Get(own); err != nil || stat.EphemeralOwner != session {
		t.Fatalf("owner of %s is %#x, session is %#x: %v", own, stat.EphemeralOwner, session, err)
	}
	if got, err := java.Participants(ctx, "m"); err != nil || !slices.Equal(got, []string{own}) || !slices.Equal(nodes, got) {
		t.Fatalf("participants: %v, acquired: %v, %v", got, nodes, err)
	}

	// The same thread enters again, another one waits.
	_, err = one.Acquire(ctx, "m", 1, peers.Forever)
	check(t, err)
	check(t, one.Release(ctx, "m"))
	if _, err := two.Acquire(ctx, "m", 1, 200*time.Millisecond); !errors.Is(err, peers.ErrTimeUp) {
		t.Fatalf("second thread: %v", err)
	}
	waiting := make(chan error, 1)
	go func() {
		_, err := two.Acquire(ctx, "m", 1, peers.Forever)
		waiting <- err
	}()
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
	if err := java.Make(ctx, "m", "c", "mutex", base); err == nil {
		t.Fatal("a mutex without a client")
	}
	first, err := java.Connect(ctx, "c", node.Addr(), 2*time.Second)
	check(t, err)
	check(t, java.Make(ctx, "m", "c", "mutex", base))

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

	acquire := func() {
		t.Helper()
		_, err := holder.Acquire(ctx, "m", 1, peers.Forever)
		check(t, err)
	}
	acquire()
	check(t, sessions.KillSession(ctx, node.Addr(), first))
	awaitGone()
	check(t, java.Close(ctx, "c"))
	second, err := java.Connect(ctx, "c", node.Addr(), 2*time.Second)
	check(t, err)
	if first == second {
		t.Fatalf("session %#x outlived its kill", first)
	}

	check(t, java.Make(ctx, "m", "c", "mutex", base))
	acquire()
	check(t, java.Pause())
	short, stop := context.WithTimeout(ctx, 100*time.Millisecond)
	defer stop()
	if _, err := java.Session(short, "c"); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("a paused peer answered: %v", err)
	}
	awaitGone() // expired
	check(t, java.Unpause())
	if id, err := java.Session(ctx, "c"); err != nil || id == 0 {
		t.Fatalf("session after the pause: %#x, %v", id, err)
	}

	check(t, java.Kill(ctx))
	if _, err := holder.Acquire(ctx, "m", 1, peers.Forever); !errors.Is(err, peers.ErrEnded) {
		t.Fatalf("a killed peer: %v", err)
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
