package zkcontainer_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docent-go/docent/integration/zkcontainer"
)

// A leader that does not see that it was deposed, or a member that clients are connected to and
// that is cut off, cannot end a session; another one can.
func TestExpiryGoesElsewhere(t *testing.T) {
	t.Parallel()
	ctx := limited(t, 20*time.Second)
	var there, asked atomic.Bool
	there.Store(true)
	deposed := fakeServer{mode: "leader", session: func(op int32, _ []byte) []byte {
		if op == connectOp {
			return handshake(4000)
		}
		asked.Store(true)
		return nil // there is no quorum for the end of the session
	}}
	serving := fakeServer{mode: "leader", session: func(op int32, _ []byte) []byte {
		switch {
		case op == connectOp && there.Load():
			return handshake(4000)
		case op == connectOp:
			return handshake(0)
		}
		there.Store(false)
		return code(0)
	}}
	e, _ := fakes(t, &fakeEngine{}, deposed, serving)
	check(t, e.ExpireSession(ctx, 7, make([]byte, 16)))
	if there.Load() || !asked.Load() {
		t.Errorf("the session is there: %v; the deposed leader was asked: %v", there.Load(), asked.Load())
	}

	there.Store(true)
	link := must(e.NewLink(ctx))(t)
	t.Cleanup(link.Close)
	conn := must(new(net.Dialer).DialContext(ctx, "tcp", link.Servers()[0]))(t)
	defer func() { _ = conn.Close() }()
	must(conn.Write(append([]byte{0, 0, 0, 44}, make([]byte, 44)...)))(t)
	must(zkcontainer.Await(ctx, func(context.Context) (int, error) {
		if n := len(link.Sessions()); n != 1 {
			return n, fmt.Errorf("%d sessions", n)
		}
		return 1, nil
	}))(t)
	if n := must(link.ExpireSession(ctx))(t); n != 1 || there.Load() {
		t.Errorf("%d sessions have expired; it is there: %v", n, there.Load())
	}
}

// A fault for a server that is not behind the link is no fault for none.
func TestLinkOfOthers(t *testing.T) {
	t.Parallel()
	e, _ := fakes(t, &fakeEngine{}, fakeServer{}, fakeServer{})
	link := must(e.Member(1).NewLink(t.Context()))(t)
	t.Cleanup(link.Close)
	link.Partition(e.Member(1))
	link.Heal()
	defer func() {
		if recover() == nil {
			t.Error("nothing is cut, and nobody hears of it")
		}
	}()
	link.Partition(e.Member(1), e.Member(2))
}

// Connections that break while the initial nodes are created cost a start nothing.
func TestInitialDataThroughCuts(t *testing.T) {
	t.Parallel()
	nodes := map[string]bool{}
	for _, op := range []int{1, 2, 3} { // the number of requests after which the connection breaks once
		clear(nodes)
		var mu sync.Mutex
		var requests, broken int
		e, _ := fakes(t, &fakeEngine{}, fakeServer{mode: "standalone", session: func(kind int32, body []byte) []byte {
			if kind == connectOp {
				return handshake(4000)
			}
			mu.Lock()
			defer mu.Unlock()
			answer := code(0)
			if kind == 1 {
				path := string(body[4 : 4+body[3]])
				if nodes[path] {
					answer = code(-110)
				}
				nodes[path] = true
			}
			if requests++; requests == op && broken == 0 {
				broken++
				return nil // done, and the answer is lost
			}
			return answer
		}})
		check(t, zkcontainer.Fill(limited(t, 20*time.Second), e, zkcontainer.WithInitData(map[string][]byte{"/a/b": nil})))
		mu.Lock()
		defer mu.Unlock()
		if !nodes["/a/b"] || broken == 0 {
			t.Errorf("%v, %d", nodes, broken)
		}
	}
}

// A server that does not take much data breaks the connection, as the kernel sees it.
func TestInitialDataTooLarge(t *testing.T) {
	t.Parallel()
	for range 20 {
		e, _ := fakes(t, &fakeEngine{}, fakeServer{mode: "standalone", session: func(kind int32, body []byte) []byte {
			if kind == connectOp {
				return handshake(4000)
			}
			return code(0)
		}})
		err := zkcontainer.Fill(limited(t, 20*time.Second), e, zkcontainer.WithInitData(map[string][]byte{"/a": make([]byte, 2<<20)}))
		wants(t, err, "jute.maxbuffer")
	}
}

// Keys for servers that have no port for TLS are refused.
func TestKeysWithoutTLS(t *testing.T) {
	t.Parallel()
	e, made := fakes(t, &fakeEngine{}, fakeServer{})
	wants(t, e.Member(1).SetTLSKeys(t.Context(), zkcontainer.Keys{}), "without WithTLS")
	if len(made[0].files) != 0 {
		t.Error("they were written")
	}
}
