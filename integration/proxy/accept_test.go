package proxy_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/integration/harness"
	"github.com/docent-go/docent/integration/proxy"
	"github.com/docent-go/docent/internal/zoodefs"
)

func TestProxyAccept(t *testing.T) {
	node := harness.StartServer(t.Context(), t)

	t.Run("refuse", func(t *testing.T) {
		r := newRig(t, node)
		r.proxy.Refuse(0)
		if c, err := net.Dial("tcp", r.proxy.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Fatalf("dial: %v, %v", c, err)
		}
		check(t, r.create(r.path)) // what there was goes on
		r.proxy.Accept()
		c, err := net.Dial("tcp", r.proxy.Addr())
		check(t, err)
		check(t, c.Close())
	})

	t.Run("refuse for a time", func(t *testing.T) {
		r := newRig(t, node)
		r.proxy.Refuse(300 * time.Millisecond)
		r.proxy.CutAll()
		check(t, harness.AwaitState(r.ctx, r.events, zk.StateDisconnected))
		check(t, harness.AwaitState(r.ctx, r.events, zk.StateHasSession))
	})

	t.Run("accept and hang", func(t *testing.T) {
		r := newRig(t, node)
		r.proxy.AcceptAndHang()
		c, err := net.Dial("tcp", r.proxy.Addr())
		check(t, err)
		_, err = io.WriteString(c, "ruok")
		check(t, err)
		check(t, c.SetReadDeadline(time.Now().Add(200*time.Millisecond)))
		if n, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("read %d bytes: %v", n, err)
		}
		check(t, c.Close())
		r.proxy.Accept()
		if got := ask(t, r.proxy.Addr(), "ruok"); got != "imok" {
			t.Fatalf("ruok after Accept: %q", got)
		}
	})

	t.Run("server down", func(t *testing.T) {
		r := newRig(t, node)
		check(t, node.Kill(r.ctx))
		check(t, harness.AwaitState(r.ctx, r.events, zk.StateDisconnected))
		check(t, node.Start(r.ctx))
		check(t, harness.AwaitState(r.ctx, r.events, zk.StateHasSession))
	})
}

// ask sends a four-letter word.
func ask(t *testing.T, addr, word string) string {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	check(t, err)
	defer func() { _ = c.Close() }()
	_, err = io.WriteString(c, word)
	check(t, err)
	answer, err := io.ReadAll(c)
	check(t, err)
	return string(answer)
}

func TestProxyCounts(t *testing.T) {
	node := harness.StartServer(t.Context(), t)
	r := newRig(t, node)
	r.proxy.ResetStats()
	check(t, r.create(r.path))
	_, _, changed, err := r.through.GetW(r.path)
	check(t, err)
	_, err = r.through.Set(r.path, nil, -1)
	check(t, err)
	<-changed
	check(t, r.through.Delete(r.path, -1))

	s := r.proxy.Stats()
	for _, op := range []zoodefs.Op{zoodefs.OpCreate, zoodefs.OpGetData, zoodefs.OpSetData, zoodefs.OpDelete} {
		if s.Requests[op] != 1 || s.Replies[op] != 1 {
			t.Errorf("%s: %d requests, %d replies", op, s.Requests[op], s.Replies[op])
		}
	}
	if s.RoundTrips != 4 || s.Notifications != 1 || s.Cuts != 0 || s.Swallowed != 0 {
		t.Errorf("%+v", s)
	}
	if conns := r.proxy.Conns(); len(conns) != 1 || !conns[0].Open || conns[0].Session != r.through.SessionID() {
		t.Errorf("connections: %+v", conns)
	}
}

// TestProxyRoundTrips speaks the protocol itself, to put two requests in one flush.
func TestProxyRoundTrips(t *testing.T) {
	node := harness.StartServer(t.Context(), t)
	r := newRig(t, node)
	c, err := net.Dial("tcp", r.proxy.Addr())
	check(t, err)
	t.Cleanup(func() { _ = c.Close() })
	check(t, c.SetDeadline(time.Now().Add(20*time.Second)))
	say := func(answers int, frames ...[]byte) {
		t.Helper()
		_, err := c.Write(bytes.Join(frames, nil))
		check(t, err)
		for range answers {
			var size uint32
			check(t, binary.Read(c, binary.BigEndian, &size))
			_, err := io.CopyN(io.Discard, c, int64(size))
			check(t, err)
		}
	}
	say(1, wireFrame(0, int64(0), 10000, int64(0), "0123456789abcdef"))
	for i, step := range []struct {
		frames [][]byte
		want   int
	}{
		{[][]byte{createFrame(1, r.path), wireFrame(2, int(zoodefs.OpGetChildren2), "/", false)}, 1},
		{[][]byte{wireFrame(3, int(zoodefs.OpGetData), "/", false)}, 2},
		{[][]byte{wireFrame(-2, int(zoodefs.OpPing))}, 2},
		{[][]byte{wireFrame(4, int(zoodefs.OpGetData), "/", false), wireFrame(5, int(zoodefs.OpGetData), "/", false), wireFrame(6, int(zoodefs.OpGetData), "/", false)}, 3},
	} {
		say(len(step.frames), step.frames...)
		if got := r.proxy.Conns()[1].RoundTrips; got != step.want {
			t.Fatalf("step %d: %d round trips, want %d\n%s", i, got, step.want, r.proxy.Trace())
		}
	}

	// The first is answered before the second is whole: still one flush.
	whole := wireFrame(8, int(zoodefs.OpGetData), "/", false)
	say(1, wireFrame(7, int(zoodefs.OpGetData), "/", false), whole[:6])
	say(1, whole[6:])
	if got := r.proxy.Conns()[1].RoundTrips; got != 4 {
		t.Fatalf("a flush in two parts: %d round trips, want 4\n%s", got, r.proxy.Trace())
	}
}

// TestProxyClose closes a proxy in the middle of everything it can do.
func TestProxyClose(t *testing.T) {
	node := harness.StartServer(t.Context(), t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	p, err := proxy.New(ctx, node.Addr())
	check(t, err)
	for range 3 {
		conn, _ := harness.Dial(ctx, t, sessionTimeout, p.Addr())
		go func() { _, _, _ = conn.Get("/") }()
	}
	held := p.On(proxy.Match{Op: zoodefs.OpExists}, proxy.Stall)
	conn, _ := harness.Dial(ctx, t, sessionTimeout, p.Addr())
	done := start(func() error { _, _, err := conn.Exists("/"); return err })
	_, err = held.Await(ctx)
	check(t, err)
	p.Stall()
	idle, err := net.Dial("tcp", p.Addr())
	check(t, err)
	t.Cleanup(func() { _ = idle.Close() })
	p.AcceptAndHang()
	hung, err := net.Dial("tcp", p.Addr())
	check(t, err)
	t.Cleanup(func() { _ = hung.Close() })
	p.Refuse(time.Hour)

	started := time.Now()
	check(t, p.Close())
	check(t, p.Close())
	if took := time.Since(started); took > time.Second {
		t.Errorf("Close took %v", took)
	}
	if err := <-done; err == nil {
		t.Error("a stalled request was answered")
	}
	// A finished goroutine may still be seen for an instant.
	var left string
	for tick := time.NewTicker(10 * time.Millisecond); ; {
		left = goroutinesOf("integration/proxy.(*")
		if left == "" {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("goroutines are left:\n%s", left)
		}
	}
}

func goroutinesOf(what string) string {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	var found []string
	for g := range strings.SplitSeq(string(stacks), "\n\n") {
		if strings.Contains(g, what) {
			found = append(found, g)
		}
	}
	return strings.Join(found, "\n\n")
}
