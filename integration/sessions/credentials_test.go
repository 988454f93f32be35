package sessions_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/client/zkconn"
	"github.com/docent-go/docent/integration/harness"
	"github.com/docent-go/docent/recipes"
)

// A real server takes credentials on a live connection, and refuses them as zktest does: with an
// answer, and the end of the connection. The session and its holds go on.
func TestCredentialsOnALiveClient(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	node := harness.StartServer(ctx, t)
	connect := func() *client.Client {
		c, err := client.Connect(ctx, node.Addr(), client.WithLogger(slog.New(slog.DiscardHandler)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	owner := connect()
	for _, n := range []string{"1", "2"} {
		_, err := owner.Create(ctx, "/secret"+n, []byte(n), client.ACL(zk.DigestACL(zk.PermAll, "u", n)...))
		check(err)
	}
	c := connect()
	s, err := c.Session(ctx)
	check(err)
	reads := func(path string) bool {
		t.Helper()
		_, _, err := c.Get(ctx, path)
		if err != nil && !errors.Is(err, client.ErrNoAuth) {
			t.Fatal(err)
		}
		return err == nil
	}
	m, err := recipes.NewInterProcessMutex(c, "/lock")
	check(err)
	hold, err := m.Acquire(ctx)
	check(err)
	check(c.AddAuth(ctx, "digest", "u:1"))
	if !reads("/secret1") || reads("/secret2") {
		t.Error("the credentials have no effect")
	}
	if err := c.AddAuth(ctx, "nosuch", "x"); !errors.Is(err, client.ErrAuthFailed) {
		t.Errorf("a scheme that the server does not know: %v", err)
	}
	if !reads("/secret1") || s.Err() != nil || hold.Err() != nil {
		t.Errorf("after the refusal: session %v, hold %v", s.Err(), hold.Err())
	}
	check(c.ReplaceAuth(ctx, "digest", "u:2"))
	if !reads("/secret1") || !reads("/secret2") {
		t.Error("the connection of the replacement lacks credentials")
	}
	_ = c.AddAuth(ctx, "nosuch", "x") // for another connection
	if reads("/secret1") || !reads("/secret2") {
		t.Error("the next connection has the old credentials, or lacks the new ones")
	}
	if now, err := c.Session(ctx); err != nil || now.ID() != s.ID() {
		t.Errorf("another session: %v", err)
	}
	check(hold.Release(ctx))

	for i := range 300 {
		_, err := owner.CreateOrSet(ctx, fmt.Sprintf("/all/%d", i), []byte(fmt.Sprint(i)), client.WithParents())
		check(err)
	}
	_, err = owner.CreateOrSet(ctx, "/all/secret", nil, client.ACL(zk.DigestACL(zk.PermAll, "u", "3")...))
	check(err)
	if _, _, err := c.ChildrenData(ctx, "/all"); !errors.Is(err, client.ErrNoAuth) {
		t.Errorf("a child that may not be read: %v", err)
	}
	check(owner.Delete(ctx, "/all/secret", client.AnyVersion))
	all, stat, err := c.ChildrenData(ctx, "/all")
	check(err)
	if len(all) != 300 || stat.NumChildren != 300 {
		t.Errorf("%d children, %+v", len(all), stat)
	}
	for _, child := range all {
		if string(child.Data) != child.Name || child.Stat.DataLength != int32(len(child.Data)) {
			t.Errorf("%+v", child)
		}
	}
}

// A watch of the adapter outlasts the restart of a server, as go-zookeeper's does.
func TestAdapterThroughARestart(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	node := harness.StartServer(ctx, t)
	c, err := client.Connect(ctx, node.Addr(), client.WithSessionTimeout(30*time.Second), client.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	conn, _ := zkconn.New(ctx, c)
	defer conn.Close()
	if _, err := conn.Create("/d", nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	_, _, ch, err := conn.ChildrenW("/d")
	if err != nil {
		t.Fatal(err)
	}
	id := conn.SessionID()
	if err := node.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	if _, _, err := conn.Get("/d"); err != nil || conn.SessionID() != id {
		t.Fatalf("%v, session %x, before %x", err, conn.SessionID(), id)
	}
	select {
	case ev := <-ch:
		t.Errorf("without a change: %+v", ev)
	default:
	}
	if _, err := conn.Create("/d/c", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	select {
	case ev := <-ch:
		if ev.Type != zk.EventNodeChildrenChanged || ev.Path != "/d" {
			t.Errorf("%+v", ev)
		}
	case <-ctx.Done():
		t.Error("the watch is lost")
	}
}
