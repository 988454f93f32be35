package peers_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/docent-go/docent/integration/harness"
	"github.com/docent-go/docent/integration/peers"
	"github.com/docent-go/docent/integration/sessions"
)

func TestPeersKazoo(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	node := harness.StartServer(ctx, t)
	raw, _ := harness.Dial(ctx, t, 10*time.Second, node.Addr())
	kazoo := peers.StartKazoo(ctx, t)
	one, two := kazoo.Thread("one"), kazoo.Thread("two")
	session, err := kazoo.Connect(ctx, "c", node.Addr(), 10*time.Second)
	check(t, err)
	for kind, arg := range map[string]string{"lock": "-lock-", "read": "-lock-", "write": "-lock-", "semaphore": "1"} {
		check(t, kazoo.Make(ctx, kind, "c", kind, base+"-"+kind, arg))
		nodes, err := one.Acquire(ctx, kind, 1, peers.Forever)
		check(t, err)
		if len(nodes) != 1 {
			t.Fatalf("%s: nodes %v", kind, nodes)
		}
		if _, stat, err := raw.Get(nodes[0]); err != nil || stat.EphemeralOwner != session {
			t.Fatalf("%s: owner of %v is %#x, session is %#x: %v", kind, nodes, stat.EphemeralOwner, session, err)
		}
		_, err = two.Acquire(ctx, kind, 1, 200*time.Millisecond)
		if shared := kind == "read"; shared && err != nil || !shared && !errors.Is(err, peers.ErrTimeUp) {
			t.Fatalf("%s: second thread: %v", kind, err)
		}
		check(t, one.Release(ctx, kind))
	}
	_, err = one.Acquire(ctx, "lock", 1, peers.Forever)
	check(t, err)
	check(t, sessions.KillSession(ctx, node.Addr(), session))
	_, err = two.Acquire(ctx, "lock", 1, peers.Forever)
	check(t, err)
	if id, err := kazoo.Session(ctx, "c"); err != nil || id == session || id == 0 {
		t.Fatalf("session %#x after the kill of %#x: %v", id, session, err)
	}
}
