package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/zktest"
)

// viewed is a `docent watch` that runs.
type viewed struct {
	*testing.T
	lines *json.Decoder
	errs  *text
}

// watched starts a `docent watch -o jsonl`. It writes no further than it is read.
func watched(t *testing.T, srv *zktest.Server, args ...string) *viewed {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	r, w := io.Pipe()
	v := &viewed{t, json.NewDecoder(r), new(text)}
	done := make(chan int, 1)
	go func() {
		done <- execute(ctx, append([]string{"--servers", srv.Addr(), "--name", "watcher", "watch", "-o", "jsonl"}, args...), streams{nil, w, v.errs})
	}()
	t.Cleanup(func() {
		stop()
		_ = r.Close()
		if code := <-done; code != 0 && !strings.Contains(v.errs.String(), "closed pipe") {
			t.Errorf("exit code %d: %s", code, v.errs)
		}
	})
	return v
}

// next is the next line.
func (v *viewed) next() (e event) {
	v.Helper()
	if err := v.lines.Decode(&e); err != nil {
		v.Fatalf("%v; said: %s", err, v.errs)
	}
	return e
}

// want reads the next line, which is of that kind and path.
func (v *viewed) want(kind, at string) event {
	v.Helper()
	e := v.next()
	if e.Kind != kind || e.Path != at {
		v.Fatalf("%+v, want %s of %s", e, kind, at)
	}
	return e
}

func create(t *testing.T, srv *zktest.Server, at, data string) {
	t.Helper()
	if err := srv.Create(at, []byte(data)); err != nil {
		t.Fatal(err)
	}
}

func TestWatch(t *testing.T) {
	t.Parallel()
	srv := server(t)
	create(t, srv, "/a", "one")
	create(t, srv, "/a/b", "two")
	create(t, srv, "/a/b/c", "three")
	create(t, srv, "/a/b/c/d", "four")
	for _, tt := range []struct {
		depth string
		has   []string
	}{
		{"0", []string{"/a"}},
		{"1", []string{"/a", "/a/b"}},
		{"2", []string{"/a", "/a/b", "/a/b/c"}},
		{"-1", []string{"/a", "/a/b", "/a/b/c", "/a/b/c/d"}},
	} {
		var all []event
		if s := do(t, srv, "watch", "--once", "-o", "json", "/a", "--depth", tt.depth); json.Unmarshal([]byte(s.out), &all) != nil {
			t.Fatalf("%+v", s)
		}
		var paths []string
		for _, e := range all {
			paths = append(paths, e.Path)
		}
		if !slices.Equal(paths, tt.has) {
			t.Errorf("depth %s: %v, want %v", tt.depth, paths, tt.has)
		}
	}
	v := watched(t, srv, "/a", "--depth", "-1")
	if e := v.want("began", ""); e.Zxid == 0 || e.State != "synced" || e.NodeVersion != nil || e.Data != nil {
		t.Errorf("%+v", e)
	}
	for _, at := range []string{"/a", "/a/b", "/a/b/c", "/a/b/c/d"} {
		v.want("exists", at)
	}
	c := connect(t, srv)
	if _, err := c.Set(t.Context(), "/a/b", []byte("\xff\x00"), client.AnyVersion); err != nil {
		t.Fatal(err)
	}
	e := v.want("updated", "/a/b")
	if e.Cause != "live" || *e.NodeVersion != 1 || *e.Data != "/wA=" || e.Encoding != asBase64 || e.Size != 2 || e.Modified == nil {
		t.Errorf("%+v", e)
	}
	if _, err := c.Create(t.Context(), "/a/d", []byte("text\n"), client.Ephemeral()); err != nil {
		t.Fatal(err)
	}
	if e := v.want("created", "/a/d"); *e.Data != "text\n" || e.Encoding != asText || !strings.HasPrefix(e.Session, "0x") {
		t.Errorf("%+v", e)
	}
	if _, err := c.Multi(t.Context(), client.DeleteOp("/a/b/c/d", 0), client.CreateOp("/a/b/c/d", nil)); err != nil {
		t.Fatal(err)
	}
	v.want("recreated", "/a/b/c/d")
	if err := c.Delete(t.Context(), "/a/d", client.AnyVersion); err != nil {
		t.Fatal(err)
	}
	if e := v.want("deleted", "/a/d"); e.Data != nil || e.NodeVersion != nil {
		t.Errorf("%+v", e)
	}
}

// A lost connection is marked, and what has changed meanwhile is found again.
func TestWatchIsStale(t *testing.T) {
	t.Parallel()
	srv := server(t)
	v := watched(t, srv, "/a")
	v.want("began", "")
	create(t, srv, "/a", "")
	v.want("created", "/a")
	srv.Refuse()
	srv.CutAll()
	if e := v.want("stale", ""); e.State != "stale" || e.Error == "" {
		t.Errorf("%+v", e)
	}
	create(t, srv, "/a/b", "")
	srv.Accept()
	if e := v.want("created", "/a/b"); e.Cause != "resync" {
		t.Errorf("%+v", e)
	}
	if e := v.want("synced", ""); e.State != "synced" {
		t.Errorf("%+v", e)
	}
	if !strings.Contains(v.errs.String(), "/a does not exist yet") {
		t.Errorf("said %s", v.errs)
	}
}

// Docent cannot write, and nodes change: a gap says that steps are left out.
func TestWatchHasAGap(t *testing.T) {
	t.Parallel()
	srv := server(t)
	create(t, srv, "/a", "0")
	v := watched(t, srv, "/a", "--depth", "0")
	v.want("began", "")
	v.want("exists", "/a")
	for _, data := range []string{"1", "2", "3", "4"} {
		read := srv.Count(zktest.OpMultiRead)
		if err := srv.SetData("/a", []byte(data)); err != nil {
			t.Fatal(err)
		}
		eventually(t, func() bool { return srv.Count(zktest.OpMultiRead) > read })
	}
	gaps := 0
	for e := v.next(); e.Data == nil || *e.Data != "4"; e = v.next() {
		if e.Kind == "gap" {
			gaps++
		}
	}
	if gaps == 0 {
		t.Error("no gap before the last of four changes that came while docent could not write")
	}
}

func TestWatchOnce(t *testing.T) {
	t.Parallel()
	srv := server(t)
	create(t, srv, "/a", strings.Repeat("x", 100))
	create(t, srv, "/a/b", "\x1b[2J")
	s := do(t, srv, "watch", "--once", "/a")
	lines := strings.Split(strings.TrimSpace(s.out), "\n")
	if s.code != 0 || len(lines) != 3 || !strings.HasSuffix(lines[1], "xxx...") || !strings.HasSuffix(lines[2], "base64:G1sySg==") {
		t.Errorf("%+v", s)
	}
	var all []event
	if s := do(t, srv, "watch", "--once", "-o", "json", "/a"); json.Unmarshal([]byte(s.out), &all) != nil || len(all) != 2 || *all[0].Data != strings.Repeat("x", 100) {
		t.Errorf("%+v", s)
	}
	if s := do(t, srv, "watch", "--once", "/none"); s.code != exitFailure || !strings.Contains(s.err, "does not exist") || s.out != "" {
		t.Errorf("%+v", s)
	}
	srv.Ignore(zktest.Match{Op: zktest.OpGetData, Times: zktest.Always})
	if s := do(t, srv, "watch", "--once", "--connect-timeout", "200ms", "/a"); s.code != exitFailure || !strings.Contains(s.err, "not all nodes have been read") {
		t.Errorf("%+v", s)
	}
}

func TestWatchUnreadable(t *testing.T) {
	t.Parallel()
	srv := server(t)
	c := connect(t, srv, client.WithAuth("digest", "a:b"))
	if _, err := c.Create(t.Context(), "/a", []byte("secret"), client.ACL(zk.DigestACL(zk.PermAll, "a", "b")...)); err != nil {
		t.Fatal(err)
	}
	if s := do(t, srv, "watch", "--once", "/a"); s.code != 0 || !strings.Contains(s.out, "--auth") || strings.Contains(s.out, "secret") {
		t.Errorf("%+v", s)
	}
	if s := do(t, srv, "watch", "--once", "/a", "--auth", "digest:a:b"); s.code != 0 || !strings.Contains(s.out, "secret") {
		t.Errorf("with credentials: %+v", s)
	}
}

// The columns of a table stay where they are while rows come.
func TestListingKeepsItsColumns(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	l := newListing[finding](&out, table)
	for _, rows := range [][]finding{{{"a long name", good, "x"}}, {{"b", fail, "y"}, {"ü", warn, "z"}}} {
		if err := l.add(rows...); err != nil {
			t.Fatal(err)
		}
	}
	lines := bufio.NewScanner(strings.NewReader(out.String()))
	for lines.Scan() {
		line := []rune(lines.Text())
		if len(line) < 22 || line[21] == ' ' || line[20] != ' ' || line[13] == ' ' || line[12] != ' ' {
			t.Errorf("%q", lines.Text())
		}
	}
}
