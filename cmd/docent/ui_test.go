package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/cmd/docent/internal/ui"
	"github.com/docent-go/docent/zktest"
)

// shownLock is the line of a lock as the page gets it.
type shownLock struct {
	Exists bool
	Kind   string
	Queue  []struct {
		Path, State, Mode, Session, Host, PID, Client, ID string
		Token                                             int64 `json:",string"`
		Since                                             int64
		Held                                              struct{ From, By int64 }
		Asked                                             bool
	}
}

// shownAt reads what the page shows of a lock, when all is read.
func shownAt(t *testing.T, page, at string) (l shownLock) {
	t.Helper()
	uiShown(t, page, "lock", at, &l)
	return l
}

// uiShown reads what the page shows of a view, when all is read.
func uiShown[T any](t *testing.T, page, view, at string, into *T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, page+"/events?"+url.Values{"view": {view}, "at": {at}}.Encode(), nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close() //nolint:errcheck // read only
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		text, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		if strings.Contains(text, `"state":"live"`) {
			return
		}
		if strings.Contains(text, `"view":"`+view+`"`) {
			var zero T
			*into = zero
			if err := json.Unmarshal([]byte(text), into); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Fatalf("the page never had all: %v", lines.Err())
}

// servedUI is a page on a server.
func servedUI(t *testing.T, srv *zktest.Server, cfg ui.Config) (address string) {
	t.Helper()
	cfg.Dial = func(ctx context.Context) (*client.Client, error) {
		return client.Connect(ctx, srv.Addr(), client.WithLazyConnect())
	}
	cfg.Dir, cfg.Depth = "/", 16
	page := ui.New(cfg)
	at := httptest.NewServer(page)
	t.Cleanup(func() { page.Close(); at.Close() })
	return at.URL
}

// The page says of a line what the library says, whatever stands in it: the same contenders in
// the same order, the same holders, and where the library knows since when, the same bound.
func TestUIAgreesWithQueue(t *testing.T) {
	t.Parallel()
	srv := server(t)
	c := connect(t, srv)
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 1))
	names := [][]string{
		{"_c_0c708091-6d54-8320-8594-%012x-lock-", "_c_0c708091-6d54-4320-8594-%012x-lock-", "_c_%032x-lock-"},
		{"_c_0c708091-6d54-8320-8594-%012x-__READ__", "_c_0c708091-6d54-8320-8594-%012x-__WRIT__", "_c_0c708091-6d54-8320-8594-%012x-__READ__"},
		{"_c_0c708091-6d54-8320-8594-%012x-lock-", "item-%d"},
		{"_c_0c708091-6d54-8820-8594-%012x-latch-"},
	}
	data := []string{"10.0.0.7", "10.0.0.7 pid=12 client=billing", "", "__REVOKE__", "10.0.0.8 pid=3 client=shop __REVOKE__", "node-1", "\x00\xff"}
	const locks = 40
	var made []string
	for i := range locks {
		dir := fmt.Sprintf("/locks/%02d", i)
		kind := names[rnd.IntN(len(names))]
		for range rnd.IntN(7) {
			at := fmt.Sprintf(dir+"/"+kind[rnd.IntN(len(kind))], rnd.Uint32())
			node, err := c.Create(t.Context(), at, []byte(data[rnd.IntN(len(data))]), client.Ephemeral(), client.Sequential(), client.WithParents())
			if err != nil {
				t.Fatal(err)
			}
			made = append(made, node)
		}
	}
	for n := range 5 {
		for _, dir := range []string{"leases", "locks"} {
			for range rnd.IntN(4) {
				at := fmt.Sprintf("/semaphores/%d/%s/_c_0c708091-6d54-8320-8594-%012x-%s-", n, dir, rnd.Uint32(), strings.TrimSuffix(dir, "s"))
				if _, err := c.Create(t.Context(), at, []byte(data[rnd.IntN(len(data))]), client.Ephemeral(), client.Sequential(), client.WithParents()); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for _, node := range made {
		if rnd.IntN(3) == 0 {
			if err := srv.Delete(node); err != nil {
				t.Fatal(err)
			}
		}
	}
	page := servedUI(t, srv, ui.Config{})
	for i := range locks + 5 {
		at := fmt.Sprintf("/locks/%02d", i)
		if i >= locks {
			at = fmt.Sprintf("/semaphores/%d", i-locks)
		}
		if problem := agrees(t, c, at, shownAt(t, page, at)); problem != "" {
			t.Errorf("seed %d: %s: %s", seed, at, problem)
		}
	}
}

// agrees says in what the page and the library differ.
func agrees(t *testing.T, c *client.Client, at string, uiShown shownLock) string {
	t.Helper()
	l, ok, err := lockAt(t.Context(), c, at)
	if err != nil {
		t.Fatal(err)
	}
	if ok != uiShown.Exists || l.kind != uiShown.Kind {
		return fmt.Sprintf("the library has %v %q, the page %+v", ok, l.kind, uiShown)
	}
	if !ok {
		return ""
	}
	queue, err := l.queue(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(queue) != len(uiShown.Queue) {
		return fmt.Sprintf("the library has %v, the page %+v", queue, uiShown.Queue)
	}
	for i, want := range queue {
		got := uiShown.Queue[i]
		state := waits
		if want.Holder {
			state = holds
		}
		session := ""
		if want.Session != 0 {
			session = hex(want.Session)
		}
		if got.Path != want.Path || got.State != state || got.Mode != want.Mode.String() || got.Session != session || got.Token != want.FencingToken ||
			got.Asked != want.ReleaseRequested() {
			return fmt.Sprintf("the library has %+v, the page %+v", want, got)
		}
		if l.kind != kindLatch && (got.Host != want.Owner.Host || want.Owner.Client != "" && got.Client != want.Owner.Client) {
			return fmt.Sprintf("the library has %+v, the page %+v", want.Owner, got)
		}
		if !want.HeldSince.IsZero() && (got.Held.From != want.HeldSince.UnixMilli() || got.Held.By != got.Held.From) {
			return fmt.Sprintf("it is held since %d, the page has %+v", want.HeldSince.UnixMilli(), got.Held)
		}
	}
	return ""
}

// The page has in its circles the sessions of `docent deadlocks`, whatever they wait for.
func TestUIAgreesWithDeadlocks(t *testing.T) {
	t.Parallel()
	for range 12 {
		seed := rand.Uint64()
		rnd := rand.New(rand.NewPCG(seed, 1))
		srv := server(t)
		var sessions []*client.Client
		for range 4 {
			sessions = append(sessions, connect(t, srv))
		}
		srv.JumpClock(-2 * time.Minute)
		for range 6 + rnd.IntN(8) {
			if rnd.IntN(4) == 0 {
				srv.JumpClock(20 * time.Second)
			}
			tag := []string{"lock-", "lock-", "__READ__", "__WRIT__", "latch-"}[rnd.IntN(5)]
			dir, version, owner := rnd.IntN(4), "82", int64(0)
			if tag == "latch-" || dir == 3 {
				version = "88" // a campaign
			} else if rnd.IntN(4) == 0 {
				session, err := sessions[rnd.IntN(4)].Session(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				owner = session.ID()
			}
			kind := map[string]string{"__READ__": "rw", "__WRIT__": "rw", "latch-": "latch", "lock-": "mutex"}[tag]
			at := fmt.Sprintf("/%s/%d/_c_0c708091-6d54-%s20-8594-%012x-%s", kind, dir, version, rnd.Uint32(), tag)
			if _, err := sessions[rnd.IntN(4)].Create(t.Context(), at, []byte(nested("10.0.0.7 pid=1 client=x", hexOr(owner))), client.Ephemeral(), client.Sequential(), client.WithParents()); err != nil {
				t.Fatal(err)
			}
		}
		var got struct {
			Waits []struct {
				Waiter, Holder, Lock string
				Circle               bool
			}
		}
		uiShown(t, servedUI(t, srv, ui.Config{}), "waits", "/", &got)
		all, err := waitsUnder(t.Context(), sessions[0], "/", 8, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		want, have := map[string]bool{}, map[string]bool{}
		for _, w := range circles(all, time.Minute, time.Now()) {
			want[w.waiter] = true
		}
		for _, w := range got.Waits {
			if w.Circle {
				have[w.Waiter] = true
			}
		}
		if !maps.Equal(want, have) {
			t.Errorf("seed %d: deadlocks has %v, the page %v", seed, slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(have)))
		}
	}
}

// hexOr is a session as docent run tells it to its command, "" for none.
func hexOr(session int64) string {
	if session == 0 {
		return ""
	}
	return hex(session)
}

// The page asks and evicts as the commands do, and refuses what they refuse.
func TestUIActs(t *testing.T) {
	t.Parallel()
	srv := server(t)
	c := connect(t, srv, client.WithName("billing"))
	hold := acquired(t, c, "/orders")
	waiting(t, connect(t, srv), "/orders")
	a := ui.Action{Do: ui.ActionAsk, Lock: "/orders", Path: hold.Path(), Token: hold.FencingToken(), Holds: true}
	for name, change := range map[string]func(*ui.Action){
		"another node":   func(a *ui.Action) { a.Token++ },
		"no more holder": func(a *ui.Action) { a.Holds = false },
		"another lock":   func(a *ui.Action) { a.Lock = "/stock" },
		"no contender":   func(a *ui.Action) { a.Path = "/orders/x" },
		"beside":         func(a *ui.Action) { a.Path = "/other/" + path.Base(a.Path) },
	} {
		for _, do := range []string{ui.ActionAsk, ui.ActionEvict} {
			wrong := a
			wrong.Do = do
			change(&wrong)
			if said, err := act(t.Context(), c, wrong); err == nil {
				t.Errorf("%s: %s", name, said)
			}
		}
	}
	if err := hold.Err(); err != nil {
		t.Fatal(err)
	}
	if said, err := act(t.Context(), c, a); err != nil || !strings.Contains(said, "asked") {
		t.Fatalf("%q, %v", said, err)
	}
	<-hold.Revoked()
	a.Do = ui.ActionEvict
	if said, err := act(t.Context(), c, a); err != nil || said != "deleted "+hold.Path() {
		t.Fatalf("%q, %v", said, err)
	}
	<-hold.Context().Done()
}

// The command prints where the page is, with the token if it may act, and ends with its context.
func TestUICommand(t *testing.T) {
	t.Parallel()
	srv := server(t)
	for _, tt := range []struct {
		args        []string
		says, warns string
	}{
		{nil, "http://127.0.0.1:", ""},
		{[]string{"--allow-actions", "/locks"}, "/#token=", ""},
		{[]string{"--listen", "0.0.0.0:0"}, "http://localhost:", "is not this host alone"},
	} {
		var out, errs written
		cmd := docent(t, srv, append([]string{"ui", "--listen", "127.0.0.1:0"}, tt.args...)...)
		cmd.Stdout, cmd.Stderr = &out, &errs
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		eventually(t, func() bool { return out.has("\n") && (tt.warns == "" || errs.has(tt.warns)) }) // two pipes
		if !out.has(tt.says) || out.has("token") != (tt.says == "/#token=") {
			t.Errorf("%q: %s %s", tt.args, out.buf.String(), errs.buf.String())
		}
		if srv.ConnCount() != 0 {
			t.Error("it connects without a page")
		}
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("%q: %v", tt.args, err)
		}
	}
	for args, says := range map[string]string{
		"ui --depth -1": "negative", "ui locks": "locks", "ui --listen nowhere:x": "--listen", "ui /a /b": "unexpected",
	} {
		if s := do(t, srv, strings.Fields(args)...); s.code == 0 || !strings.Contains(s.err, says) {
			t.Errorf("%s: %+v", args, s)
		}
	}
}

// The servers say how they are.
func TestUIServers(t *testing.T) {
	t.Parallel()
	srv := server(t)
	to := &target{}
	if s := to.saysOf(t.Context(), srv.Addr()); s.Mode != "standalone" || !strings.Contains(s.Says, "connections: ") {
		t.Errorf("%+v", s)
	}
	srv.Stop()
	if s := to.saysOf(t.Context(), srv.Addr()); s.Says != "" {
		t.Errorf("%+v", s)
	}
}
