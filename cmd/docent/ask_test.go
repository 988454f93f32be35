package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/docent-go/docent/client"
)

func TestAsk(t *testing.T) {
	t.Parallel()
	srv := server(t)
	c := connect(t, srv)
	hold := acquired(t, c, "/a")
	if s := do(t, srv, "ask", "--yes", "/a", "--wait", "50ms"); s.code != exitFailure || !strings.Contains(s.err, "still holds") {
		t.Errorf("%+v", s)
	}
	if err := hold.Err(); err != nil {
		t.Error(err)
	}
	listens := acquired(t, c, "/b")
	listens.OnRevoke(func() { _ = listens.Close() })
	if s := do(t, srv, "ask", "--yes", "/b", "--wait", "20s"); s.code != 0 || !strings.Contains(s.err, "its node is gone after ") {
		t.Errorf("%+v", s)
	}
	if s := do(t, srv, "ask", "--yes", "/b"); s.code != exitFailure || !strings.Contains(s.err, "the lock is free") {
		t.Errorf("a free lock: %+v", s)
	}
}

func TestEvict(t *testing.T) {
	t.Parallel()
	srv := server(t)
	c := connect(t, srv)
	hold := acquired(t, c, "/a")
	node := filepath.Base(hold.Path())
	if s := do(t, srv, "evict", "/a"); s.code != exitUsage || !strings.Contains(s.err, "missing argument NODE (docent queue /a shows it)") {
		t.Errorf("without a node: %+v", s)
	}
	if s := do(t, srv, "evict", "/a", node); s.code != exitUsage || !strings.Contains(s.err, "--yes") || hold.Err() != nil {
		t.Errorf("without a yes: %+v", s)
	}
	if s := do(t, srv, "evict", "--yes", "/a", "_c_other-lock-0000000007"); s.code != exitFailure || hold.Err() != nil {
		t.Errorf("no such node: %+v", s)
	}
	if s := do(t, srv, "evict", "--yes", "/a", "/b/"+node); s.code != exitFailure || hold.Err() != nil {
		t.Errorf("a node of another lock: %+v", s)
	}
	if s := do(t, srv, "evict", "--yes", "/a", node); s.code != 0 || !strings.Contains(s.err, "deleted /a/"+node) {
		t.Errorf("%+v", s)
	}
	<-hold.Context().Done()
}

// A holder that was asked and goes on is the one that an operator evicts. NODE may be the
// whole path of its node.
func TestEvictAfterAsk(t *testing.T) {
	t.Parallel()
	srv := server(t)
	c := connect(t, srv)
	hold := acquired(t, c, "/a")
	if s := do(t, srv, "ask", "--yes", "/a", "--wait", "50ms"); s.code != exitFailure {
		t.Errorf("%+v", s)
	}
	if s := do(t, srv, "evict", "--yes", "/a", hold.Path()); s.code != 0 {
		t.Fatalf("%+v", s)
	}
	<-hold.Context().Done()
}

// The node changes between the look and the delete.
func TestEvictLooksAgain(t *testing.T) {
	t.Parallel()
	srv := server(t)
	c := connect(t, srv)
	hold := acquired(t, c, "/a")
	queue, err := mutex(t, c, "/a").Queue(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l, _, err := lockAt(t.Context(), c, "/a")
	if err != nil {
		t.Fatal(err)
	}
	other := queue[0]
	other.FencingToken++
	if err := evict(t.Context(), c, l, other); err == nil || !strings.Contains(err.Error(), "another node") {
		t.Error(err)
	}
	other = queue[0]
	other.Session++
	if err := evict(t.Context(), c, l, other); err == nil || !strings.Contains(err.Error(), "another node") {
		t.Error(err)
	}
	if _, err := c.Set(t.Context(), hold.Path(), []byte("new"), client.AnyVersion); err != nil {
		t.Fatal(err)
	}
	if err := evict(t.Context(), c, l, queue[0]); err == nil || !strings.Contains(err.Error(), "have changed") {
		t.Error(err)
	}
	if hold.Err() != nil {
		t.Error(hold.Err())
	}
}
