package zkcontainer_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/integration/zkcontainer"
)

func TestLink(t *testing.T) {
	ctx := limited(t, 4*time.Minute)
	c := zkcontainer.Start(t, image(), zkcontainer.WithHost("127.0.0.1"), zkcontainer.WithTickTime(200*time.Millisecond))
	link := must(c.NewLink(ctx))(t)
	looker, _ := dial(ctx, t, 10*time.Second, c.Addr())

	t.Run("partition and heal", func(t *testing.T) {
		conn, events := dial(ctx, t, 4*time.Second, link.Servers()...)
		id := conn.SessionID()
		link.Partition()
		await(ctx, t, events, zk.StateDisconnected)
		link.Heal()
		await(ctx, t, events, zk.StateHasSession)
		t.Logf("session %#x before, %#x after", id, conn.SessionID())
	})

	t.Run("cut", func(t *testing.T) {
		conn, events := dial(ctx, t, 4*time.Second, link.Servers()...)
		id := conn.SessionID()
		link.Cut()
		await(ctx, t, events, zk.StateDisconnected)
		await(ctx, t, events, zk.StateHasSession)
		if conn.SessionID() != id {
			t.Errorf("session %#x became %#x", id, conn.SessionID())
		}
	})

	t.Run("refuse", func(t *testing.T) {
		_, events := dial(ctx, t, 4*time.Second, link.Servers()...)
		link.Refuse()
		link.Cut()
		await(ctx, t, events, zk.StateDisconnected)
		if _, err := speakWord(ctx, link.Servers()[0]); err == nil {
			t.Error("a link that refuses connects")
		}
		link.Heal()
		await(ctx, t, events, zk.StateHasSession)
	})

	t.Run("one way", func(t *testing.T) {
		for path, tt := range map[string]struct {
			part    func(...*zkcontainer.Container)
			arrives bool
		}{
			"/requests": {link.PartitionRequests, false},
			"/replies":  {link.PartitionReplies, true},
		} {
			conn, events := dial(ctx, t, 2*time.Second, link.Servers()...)
			tt.part()
			go func() { _, _ = conn.Create(path, nil, 0, zk.WorldACL(zk.PermAll)) }() // until it is closed
			await(ctx, t, events, zk.StateDisconnected)
			there, _, err := looker.Exists(path)
			check(t, err)
			if there != tt.arrives {
				t.Errorf("%s: a request arrives: %v, want %v", path, there, tt.arrives)
			}
			link.Heal()
			conn.Close()
		}
	})

	t.Run("delay", func(t *testing.T) {
		conn, _ := dial(ctx, t, 10*time.Second, link.Servers()...)
		link.Delay(150 * time.Millisecond)
		began := time.Now()
		_, _, err := conn.Exists("/")
		check(t, err)
		if took := time.Since(began); took < 300*time.Millisecond {
			t.Errorf("a request took %v with a delay of 150ms each way", took)
		}
		link.Delay(0)
	})

	t.Run("expire", func(t *testing.T) {
		conn, events := dial(ctx, t, 10*time.Second, link.Servers()...)
		if _, err := conn.Create("/mine", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatal(err)
		}
		if n := must(link.ExpireSession(ctx))(t); n == 0 {
			t.Fatal("no session has expired")
		}
		if there, _, err := looker.Exists("/mine"); there || err != nil {
			t.Fatalf("the ephemeral node is there: %v, %v", there, err)
		}
		await(ctx, t, events, zk.StateExpired)
	})

	t.Run("the server comes back", func(t *testing.T) {
		conn, events := dial(ctx, t, 8*time.Second, link.Servers()...)
		check(t, c.Kill(ctx))
		await(ctx, t, events, zk.StateDisconnected)
		check(t, c.Start(ctx))
		await(ctx, t, events, zk.StateHasSession)
		if _, _, err := conn.Exists("/"); err != nil {
			t.Error(err)
		}
	})

	link.Close()
	link.Close()
	if _, err := speakWord(ctx, link.Servers()[0]); err == nil {
		t.Error("a closed link connects")
	}
}

// A link before an ensemble parts a client from one member.
func TestLinkOfEnsemble(t *testing.T) {
	ctx := limited(t, 3*time.Minute)
	e := zkcontainer.StartEnsemble(t, image(), 3, zkcontainer.WithHost("127.0.0.1"), zkcontainer.WithChroot("/app"))
	link := must(e.NewLink(ctx))(t)
	if text := must(link.ConnectionString(ctx))(t); len(link.Servers()) != 3 || text[len(text)-4:] != "/app" {
		t.Fatalf("%v, %s", link.Servers(), text)
	}
	conn, events := dial(ctx, t, 6*time.Second, link.Servers()...)
	if sessions := link.Sessions(); len(sessions) != 1 || sessions[0].ID != conn.SessionID() || len(sessions[0].Password) != 16 {
		t.Fatalf("the link has %+v, the client session %#x", sessions, conn.SessionID())
	}
	at := conn.Server()
	for i, addr := range link.Servers() {
		if addr == at {
			link.Partition(e.Member(i + 1))
		}
	}
	await(ctx, t, events, zk.StateDisconnected)
	await(ctx, t, events, zk.StateHasSession)
	if conn.Server() == at {
		t.Errorf("the client is at %s, which it is cut off from", at)
	}
	if n, err := link.ExpireSession(ctx); n == 0 || err != nil {
		t.Errorf("%d sessions have expired: %v", n, err)
	}
	await(ctx, t, events, zk.StateExpired)
	// A session that is no more is no error.
	check(t, e.ExpireSession(ctx, conn.SessionID()|1, make([]byte, 16)))
	check(t, e.Terminate(ctx))
	if _, err := e.NewLink(ctx); err == nil {
		t.Error("a link before servers that were terminated")
	}
}

// speakWord asks for srvr at an address.
func speakWord(ctx context.Context, addr string) (string, error) {
	answer, err := zkcontainer.Speak(ctx, addr, "srvr")
	if err == nil && answer == "" {
		err = errors.New("no answer")
	}
	return answer, err
}
