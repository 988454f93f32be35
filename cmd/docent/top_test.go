package main

import (
	"bytes"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

// written collects what a process writes.
type written struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (w *written) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.Write(p)
}

func (w *written) has(text string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Contains(w.buf.String(), text)
}

// Without a connection top says so, and since when what it shows is old.
func TestTopIsBlind(t *testing.T) {
	t.Parallel()
	srv := server(t)
	acquired(t, connect(t, srv), "/held")
	var out written
	cmd := docent(t, srv, "top", "--interval", "20ms")
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer end(cmd)
	eventually(t, func() bool { return out.has("/held") })
	if out.has("no connection") {
		t.Error("with a connection")
	}
	srv.Stop()
	eventually(t, func() bool { return out.has("no connection: what follows was seen at 2") })
}

func end(cmd *exec.Cmd) {
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

// The locks that somebody waits for come first.
func TestTopShowsWaitsFirst(t *testing.T) {
	t.Parallel()
	srv := server(t)
	c, other := connect(t, srv), connect(t, srv)
	for _, at := range []string{"/a", "/b", "/c"} {
		acquired(t, c, at)
	}
	waiting(t, other, "/c")
	waiting(t, other, "/b")
	s := do(t, srv, "top", "--count", "1")
	c1, b, a := strings.Index(s.out, "/c "), strings.Index(s.out, "/b "), strings.Index(s.out, "/a ")
	if s.code != 0 || c1 < 0 || c1 > b || b > a {
		t.Errorf("want c, b, a: %+v", s)
	}
}
