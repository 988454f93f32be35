package main

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/docent-go/docent/recipes/discovery"
	"github.com/docent-go/docent/zktest"
)

// instance registers an instance of orders below /services, in the layout of Curator.
func instance(t *testing.T, srv *zktest.Server, i discovery.ServiceInstance) *discovery.Registration {
	t.Helper()
	d, err := discovery.New(connect(t, srv), "/services", discovery.CuratorMap())
	if err != nil {
		t.Fatal(err)
	}
	i.Service = "orders"
	g, err := d.Register(t.Context(), i)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestServicesMistakes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ args, says string }{
		{"services", "ls, watch, register, disable or enable"},
		{"services sing", `"sing"`},
		{"services ls", "--base"},
		{"services ls --codec xml", "serverset"},
		{"services ls --base services", "--base"},
		{"services ls a b --base /s", `"b"`},
		{"services watch --base /s", "SERVICE"},
		{"services watch orders --base /s --json", "jsonl"},
		{"services disable orders --base /s", "NODE"},
	} {
		s := do(t, nil, strings.Fields(tt.args)...)
		if s.code != exitUsage || !strings.Contains(s.err, tt.says) || !strings.Contains(s.err, "--help") || s.out != "" {
			t.Errorf("%q: %+v", tt.args, s)
		}
	}
}

func TestServicesList(t *testing.T) {
	t.Parallel()
	srv := server(t)
	if s := do(t, srv, "services", "ls", "--base", "/services"); s.code != 0 || !strings.Contains(s.err, "there is no service below /services") {
		t.Errorf("nothing: %+v", s)
	}
	instance(t, srv, discovery.ServiceInstance{ID: "a", Address: "10.0.0.7", Port: 80, Zone: "west"})
	instance(t, srv, discovery.ServiceInstance{ID: "b", Address: "10.0.0.8", Port: 80, Disabled: true})
	create(t, srv, "/services/orders/c", "{}")
	if s := do(t, srv, "services", "ls", "--base", "/services", "--codec", "map"); s.out != "SERVICE  OFFERED  DISABLED  SKIPPED\norders   1        1         1\n" {
		t.Errorf("%+v", s)
	}
	s := do(t, srv, "services", "ls", "orders", "--base", "/services", "--codec", "map")
	for _, line := range []string{"a     offered   10.0.0.7:80  west  -", "b     disabled  10.0.0.8:80  -", "c     skipped   -", "its address is empty"} {
		if s.code != 0 || !strings.Contains(s.out, line) {
			t.Errorf("no %q in %+v", line, s)
		}
	}
	if strings.Contains(s.out, "WEIGHT") {
		t.Errorf("no instance has a weight: %+v", s)
	}
	var rows []instanceRow
	s = do(t, srv, "services", "ls", "orders", "--base", "/services", "--codec", "map", "--json")
	if err := json.Unmarshal([]byte(s.out), &rows); err != nil || len(rows) != 3 {
		t.Fatalf("%v: %+v", err, s)
	}
	if rows[0].Metadata["zone"] != "west" || rows[0].Registered == nil || rows[2].State != skipped || rows[2].Reason == "" {
		t.Errorf("%+v", rows)
	}
	s = do(t, srv, "services", "ls", "none", "--base", "/services")
	if s.code != 0 || !strings.Contains(s.err, "there is no instance at /services/none; docent services ls --codec curator --base /services") {
		t.Errorf("%+v", s)
	}
	for name := range codecs { // every layout can list, whatever is there
		if s := do(t, srv, "services", "ls", "orders", "--base", "/services", "--codec", name); s.code != 0 || strings.Count(s.out, "\n") != 4 {
			t.Errorf("--codec %s: %+v", name, s)
		}
	}
}

// A time of registration that JSON cannot say, such as one in nanoseconds, spoils nothing.
func TestServicesListOddTime(t *testing.T) {
	t.Parallel()
	srv := server(t)
	instance(t, srv, discovery.ServiceInstance{ID: "a", Address: "10.0.0.7", Port: 80})
	create(t, srv, "/services/orders/b", `{"name":"orders","id":"b","address":"10.0.0.8","port":80,"registrationTimeUTC":1795486358465000000}`)
	for _, form := range []string{"json", "jsonl", "wide"} {
		s := do(t, srv, "services", "ls", "orders", "--base", "/services", "-o", form)
		if s.code != 0 || s.err != "" || !strings.Contains(s.out, "10.0.0.7") || !strings.Contains(s.out, "10.0.0.8") {
			t.Errorf("-o %s: %+v", form, s)
		}
	}
}

// A folder that docent may not read spoils nothing but the exit code.
func TestServicesListUnreadableFolder(t *testing.T) {
	t.Parallel()
	srv := server(t)
	instance(t, srv, discovery.ServiceInstance{ID: "a", Address: "10.0.0.7", Port: 80})
	create(t, srv, "/services/closed", "")
	srv.Fail(zktest.Match{PathPrefix: "/services/closed", Times: zktest.Always}, zktest.CodeNoAuth)
	s := do(t, srv, "services", "ls", "--base", "/services")
	if s.code != exitFailure || !strings.Contains(s.out, "orders") || strings.Contains(s.out, "closed") || !strings.Contains(s.err, "/services/closed") {
		t.Errorf("%+v", s)
	}
}

// An operator disables an instance of another program, and what the layout does not know stays.
func TestServicesDisable(t *testing.T) {
	t.Parallel()
	srv := server(t)
	instance(t, srv, discovery.ServiceInstance{ID: "a", Address: "10.0.0.7", Port: 80, Zone: "west"})
	state := func() string {
		var rows []instanceRow
		s := do(t, srv, "services", "ls", "orders", "--base", "/services", "--codec", "map", "--json")
		if err := json.Unmarshal([]byte(s.out), &rows); err != nil || len(rows) != 1 {
			t.Fatalf("%v: %+v", err, s)
		}
		return rows[0].State + " " + rows[0].Zone
	}
	for _, tt := range []struct{ verb, says, state string }{
		{"disable", "", "disabled west"},
		{"disable", "a was disabled before", "disabled west"},
		{"enable", "", "offered west"},
	} {
		s := do(t, srv, "services", tt.verb, "orders", "a", "--base", "/services")
		if s.code != 0 || s.out != "" || tt.says == "" && s.err != "" || !strings.Contains(s.err, tt.says) {
			t.Errorf("%s: %+v", tt.verb, s)
		}
		if got := state(); got != tt.state {
			t.Errorf("after %s it is %q, want %q", tt.verb, got, tt.state)
		}
	}
	if s := do(t, srv, "services", "disable", "orders", "x", "--base", "/services"); s.code != exitFailure || !strings.Contains(s.err, "/services/orders/x does not exist; docent services ls orders") {
		t.Errorf("%+v", s)
	}
	create(t, srv, "/services/plain", "")
	create(t, srv, "/services/plain/x", "10.0.0.7:80")
	if s := do(t, srv, "services", "disable", "plain", "x", "--base", "/services", "--codec", "hostport"); s.code != exitFailure || !strings.Contains(s.err, "end the program instead") {
		t.Errorf("%+v", s)
	}
}

func TestServicesWatch(t *testing.T) {
	t.Parallel()
	srv := server(t)
	g := instance(t, srv, discovery.ServiceInstance{ID: "a", Address: "10.0.0.7", Port: 80})
	ctx, stop := context.WithCancel(t.Context())
	r, w := io.Pipe()
	lines, errs, done := json.NewDecoder(r), new(text), make(chan int, 1)
	go func() { // ends with ctx
		done <- execute(ctx, []string{"--servers", srv.Addr(), "--name", "watcher", "services", "watch", "orders", "--base", "/services", "--codec", "map", "-o", "jsonl"}, streams{nil, w, errs})
	}()
	t.Cleanup(func() {
		stop()
		_ = r.Close()
		if code := <-done; code != 0 && !strings.Contains(errs.String(), "closed pipe") {
			t.Errorf("exit code %d: %s", code, errs)
		}
	})
	want := func(kind, node, address string) {
		t.Helper()
		for {
			var h happened
			if err := lines.Decode(&h); err != nil {
				t.Fatalf("%v; said: %s", err, errs)
			}
			if h.Kind == stale || h.Kind == synced { // as the start takes
				continue
			}
			if h.Kind != kind || h.Node != node || h.Address != address || h.Time == "" {
				t.Fatalf("%+v, want %s %s %s", h, kind, node, address)
			}
			return
		}
	}
	want(offered, "a", "10.0.0.7:80")
	i := g.Instance()
	i.Port = 81
	if err := g.Update(t.Context(), i); err != nil {
		t.Fatal(err)
	}
	want(offered, "a", "10.0.0.7:81")
	if err := g.Disable(t.Context()); err != nil {
		t.Fatal(err)
	}
	want(disabled, "a", "10.0.0.7:81")
	create(t, srv, "/services/orders/b", "{}")
	want(skipped, "b", "")
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	want(departed, "a", "10.0.0.7:81")
}
