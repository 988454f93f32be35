package ui_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/cmd/docent/internal/ui"
	"github.com/docent-go/docent/zktest"
)

// rig is a server, and a UI that reads from it.
type rig struct {
	testing.TB

	srv  *zktest.Server
	ui   *ui.UI
	http *httptest.Server
}

// newRig returns a rig. cfg may lack what is the same for all.
func newRig(t testing.TB, cfg ui.Config, opts ...zktest.Option) *rig {
	t.Helper()
	r := &rig{TB: t, srv: zktest.NewServer(t, opts...)}
	if cfg.Dir == "" {
		cfg.Dir, cfg.Depth = "/", 16
	}
	if cfg.Dial == nil {
		cfg.Dial = func(ctx context.Context) (*client.Client, error) {
			return client.Connect(ctx, "zk:2181", client.WithDialer(r.srv.Client("ui").DialContext), client.WithLazyConnect())
		}
	}
	r.ui = ui.New(cfg)
	r.http = httptest.NewServer(r.ui)
	t.Cleanup(func() {
		r.ui.Close()
		r.http.Close()
	})
	return r
}

// connect returns a client of a process that the page shows.
func (r *rig) connect(name string) *client.Client {
	r.Helper()
	c, err := client.Connect(r.Context(), "zk:2181", client.WithDialer(r.srv.Client(name).DialContext), client.WithName(name))
	r.check(err)
	r.Cleanup(func() { _ = c.Close() })
	return c
}

func (r *rig) check(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// stand puts a contender into the line of a lock.
func (r *rig) stand(c *client.Client, lock, data string) string {
	r.Helper()
	return r.node(c, lock+"/_c_0c708091-6d54-8320-8594-f6fdb71d5f95-lock-", data)
}

func (r *rig) node(c *client.Client, at, data string) string {
	r.Helper()
	made, err := c.Create(r.Context(), at, []byte(data), client.Ephemeral(), client.Sequential(), client.WithParents())
	r.check(err)
	return made
}

// secret makes a contender's node that others may not read.
func (r *rig) secret(c *client.Client, at string) {
	r.Helper()
	_, err := c.Create(r.Context(), at, []byte("secret"), client.Ephemeral(), client.Sequential(),
		client.ACL(zk.ACL{Perms: zk.PermAll, Scheme: "digest", ID: "somebody:else"}))
	r.check(err)
}

// serve serves the page again, at an address that it had before.
func (r *rig) serve(at string) {
	r.Helper()
	l, err := new(net.ListenConfig).Listen(r.Context(), "tcp", at)
	r.check(err)
	again := &http.Server{Handler: r.ui, ReadHeaderTimeout: time.Minute}
	go func() { _ = again.Serve(l) }() // ends with Close
	r.Cleanup(func() { _ = again.Close() })
}

// contender, lock and picture are what a page gets, as far as tests look.
type contender struct {
	Path, Node, State, Client, Host, PID, Library, Session, Token string
	Since                                                         int64
	Held                                                          struct{ From, By int64 }
	Asked, Hidden, Unread                                         bool
}

type picture struct {
	View, At, Show, Kind, Data    string
	Total, More, Holders, Circles int
	Exists, Base64, Cut           bool
	Queue                         []contender
	Locks                         []struct {
		Path, Show, Kind string
		Holders, Waiters int
		Wait             int64
		Holder           *contender
	}
	Past []struct {
		From, By         int64
		What, Who, Token string
		N                int
	}
	Waits []struct {
		Waiter, Holder, Lock string
		Circle               bool
	}
	Parties []struct {
		ID, Label           string
		Nodes, Holds, Waits int
	}
	Groups []struct {
		Path    string
		Members int
		Names   []string
	}
	Nodes   []struct{ Path, Name, Session string }
	Servers []ui.Server
}

type state struct {
	State, Detail, Server string
	Left, Nodes, Locks    int
	Since, AsOf, Requests int64
	Actions, Full         bool
}

// stream is a page without a browser.
type stream struct {
	*rig

	lines  *bufio.Scanner
	end    context.CancelFunc
	status state
	last   picture
}

// open opens a page.
func (r *rig) open(view, at, q string) *stream {
	r.Helper()
	ctx, cancel := context.WithCancel(r.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.http.URL+"/events?"+url.Values{"view": {view}, "at": {at}, "q": {q}}.Encode(), nil)
	r.check(err)
	res, err := http.DefaultClient.Do(req)
	r.check(err)
	if res.StatusCode != http.StatusOK {
		r.Fatalf("status %s", res.Status)
	}
	s := &stream{rig: r, lines: bufio.NewScanner(res.Body), end: cancel}
	s.lines.Buffer(nil, 64<<20)
	r.Cleanup(func() { s.close(); _ = res.Body.Close() })
	return s
}

func (s *stream) close() { s.end() }

// until reads until ok, of what was read last.
func (s *stream) until(what string, ok func(state, picture) bool) {
	s.Helper()
	stop := time.AfterFunc(20*time.Second, s.end)
	defer stop.Stop()
	kind := ""
	for s.lines.Scan() {
		line := s.lines.Text()
		if name, is := strings.CutPrefix(line, "event: "); is {
			kind = name
		}
		text, is := strings.CutPrefix(line, "data: ")
		if !is {
			continue
		}
		if kind == "status" {
			s.check(json.Unmarshal([]byte(text), &s.status))
		} else {
			s.last = picture{}
			s.check(json.Unmarshal([]byte(text), &s.last))
		}
		if kind == "status" && ok(s.status, s.last) {
			return
		}
	}
	s.Fatalf("no picture with %s within 20 s; the last is %s", what, fmt.Sprintf("%+v %+v", s.status, s.last))
}

func (s *stream) live() {
	s.Helper()
	s.until("everything read", func(st state, _ picture) bool { return st.State == "live" })
}
