package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// The test binary is docent itself when this variable is set.
const asDocent = "DOCENT_TEST_BINARY_IS_DOCENT"

func TestMain(m *testing.M) {
	if os.Getenv(asDocent) != "" {
		main()
	}
	os.Exit(m.Run())
}

// said is what a command has written, and its exit code.
type said struct {
	out, err string
	code     int
}

// do runs a command in this process, on srv.
func do(t *testing.T, srv *zktest.Server, args ...string) said {
	t.Helper()
	var out, errs bytes.Buffer
	if srv != nil {
		args = append([]string{"--servers", srv.Addr()}, args...)
	}
	none, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer none.Close() //nolint:errcheck // read only
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	code := execute(ctx, args, streams{none, &out, &errs})
	return said{out.String(), errs.String(), code}
}

// docent returns a command that runs docent in a process of its own, on srv.
func docent(t *testing.T, srv *zktest.Server, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, self, append([]string{"--servers", srv.Addr()}, args...)...)
	cmd.Env = append(os.Environ(), asDocent+"=1")
	return cmd
}

// server is one that listens.
func server(t *testing.T, opts ...zktest.Option) *zktest.Server {
	t.Helper()
	srv := zktest.NewServer(t, append([]zktest.Option{zktest.WithListen("127.0.0.1:0"), zktest.WithExtendedTypes()}, opts...)...)
	return srv
}

func connect(t *testing.T, srv *zktest.Server, opts ...client.Option) *client.Client {
	t.Helper()
	c, err := client.Connect(t.Context(), srv.Addr(), opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func mutex(t *testing.T, c *client.Client, at string) *recipes.InterProcessMutex {
	t.Helper()
	m, err := recipes.NewInterProcessMutex(c, at)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func acquired(t *testing.T, c *client.Client, at string) *recipes.Hold {
	t.Helper()
	h, err := mutex(t, c, at).Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// waiting acquires in the background, and returns when the node stands.
func waiting(t *testing.T, c *client.Client, at string) {
	t.Helper()
	m := mutex(t, c, at)
	before, err := m.Queue(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	go func() { // ends with the client
		if h, err := m.Acquire(context.Background()); err == nil {
			_ = h.Close()
		}
	}()
	eventually(t, func() bool {
		now, err := m.Queue(t.Context())
		return err == nil && len(now) > len(before)
	})
}

// eventually waits until ok.
func eventually(t *testing.T, ok func() bool) {
	t.Helper()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	end := time.After(20 * time.Second)
	for !ok() {
		select {
		case <-again.C:
		case <-end:
			t.Fatal("it did not happen within 20 s")
		}
	}
}

func TestMistakesAreUsage(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args string
		says string
	}{
		{"", "name a command"},
		{"sing", `"sing"`},
		{"serve now", `"now"`},
		{"serve --tick -1s", "-1s"},
		{"serve --port 2181", "--port"},
		{"serve --version 4.0.0", "3.5 to 3.9"},
		{"serve --version new", "3.9.5"},
		{"queue", "PATH"},
		{"queue /a /b", `"/b"`},
		{"ls -o xml", "jsonl"},
		{"run /a ls", "the two dashes"},
		{"run /a --", "COMMAND"},
		{"run --try --timeout 1s /a -- ls", "--timeout"},
		{"run --shared --permits 3 /a -- ls", "take one"},
		{"run --permits 0 /a -- ls", "--permits 0"},
		{"run --permits -1 /a -- ls", "--permits -1"},
		{"run --on-loss cry /a -- ls", "warn"},
		{"run --margin 0s /a -- ls", "--margin"},
		{"ls --tls-cert c.pem", "--tls-key"},
		{"ls --auth secret", "scheme:text"},
		{"ls --config /nowhere", "--config"},
		{"evict /a", "NODE"},
		{"top --interval 0s", "--interval"},
	} {
		s := do(t, nil, strings.Fields(tt.args)...)
		if s.code != exitUsage || !strings.Contains(s.err, tt.says) || !strings.Contains(s.err, "--help") || s.out != "" {
			t.Errorf("%q: %+v", tt.args, s)
		}
	}
}

func TestHelpIsData(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"help", "-h", "--help", "help serve", "run --help", "completion bash"} {
		s := do(t, nil, strings.Fields(args)...)
		if s.code != 0 || s.err != "" || len(s.out) < 100 {
			t.Errorf("%q: %+v", args, s)
		}
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	s := do(t, nil, "ls", "--servers", "127.0.0.1:1", "--connect-timeout", "200ms")
	if s.code != exitFailure || !strings.Contains(s.err, "DOCENT_SERVERS") || !strings.Contains(s.err, "refused") {
		t.Errorf("%+v", s)
	}
}

func TestSettings(t *testing.T) {
	srv := server(t)
	acquired(t, connect(t, srv), "/locks/a")
	file := filepath.Join(t.TempDir(), "docent.conf")
	text := "# where\n\nDOCENT_SERVERS=" + srv.Addr() + "\nDOCENT_NAMESPACE=locks\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if s := do(t, nil, "ls", "--config", file); s.code != 0 || !strings.Contains(s.out, "\n/a ") {
		t.Errorf("a file: %+v", s)
	}
	t.Setenv("DOCENT_CONFIG", file)
	t.Setenv("DOCENT_NAMESPACE", "none")
	if s := do(t, nil, "ls", "/"); strings.Contains(s.out, "/a ") {
		t.Errorf("the environment comes before the file: %+v", s)
	}
	if s := do(t, nil, "ls", "--namespace", "locks"); !strings.Contains(s.out, "\n/a ") {
		t.Errorf("a flag comes before the environment: %+v", s)
	}
	misspelt := filepath.Join(t.TempDir(), "misspelt.conf")
	if err := os.WriteFile(misspelt, []byte("DOCENT_TLS_CERTIFICATE=/x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s := do(t, nil, "ls", "--config", misspelt); s.code != exitUsage || !strings.Contains(s.err, "DOCENT_TLS_CERTIFICATE in "+misspelt+": no such flag") {
		t.Errorf("a name that is no flag's: %+v", s)
	}
	t.Setenv("DOCENT_SESSION_TIMEOUT", "soon")
	if s := do(t, nil, "ls"); s.code != exitUsage || !strings.Contains(s.err, "DOCENT_SESSION_TIMEOUT in the environment") {
		t.Errorf("a bad value: %+v", s)
	}
	if err := os.WriteFile(file, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s := do(t, nil, "ls"); s.code != exitUsage || !strings.Contains(s.err, ":1:") || strings.Contains(s.err, "secret") {
		t.Errorf("a bad file: %+v", s)
	}
}

func TestServe(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	if s := do(t, nil, "serve", "--listen", taken.Addr().String()); s.code != exitFailure || !strings.Contains(s.err, "in use") {
		t.Errorf("a port in use: %+v", s)
	}
	serving(t)
}

// serving runs serve with flags until the test ends, and returns a client of it.
func serving(t *testing.T, flags ...string) *client.Client {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context())) // it outlives the client
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan int, 1)
	args := append([]string{"serve", "--listen", "127.0.0.1:0"}, flags...)
	go func() { done <- execute(ctx, args, streams{nil, w, os.Stderr}) }()
	t.Cleanup(func() {
		stop()
		if code := <-done; code != 0 {
			t.Errorf("exit code %d", code)
		}
	})
	line := make([]byte, 200)
	n, err := r.Read(line)
	if err != nil || !strings.Contains(string(line[:n]), "in memory") {
		t.Fatalf("said %q, %v", line[:n], err)
	}
	addr, _, _ := strings.Cut(strings.TrimPrefix(string(line[:n]), "ZooKeeper for development on "), ". ")
	c, err := client.Connect(t.Context(), addr, client.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// The help of serve names no flag of a client.
func TestServeHelp(t *testing.T) {
	t.Parallel()
	s := do(t, nil, "serve", "--help")
	if s.code != 0 || !strings.Contains(s.out, "--listen") || !strings.Contains(s.out, "--sasl-user") ||
		strings.Contains(s.out, "--servers") || strings.Contains(s.out, "--tls") {
		t.Errorf("%+v", s)
	}
	if s := do(t, nil, "ls", "--help"); !strings.Contains(s.out, "--servers") {
		t.Errorf("of ls: %+v", s)
	}
}

// Fencing tokens grow from one development server to the next.
func TestServeAgain(t *testing.T) {
	t.Parallel()
	var before int64
	for range 2 {
		_, node, err := serving(t).CreateStat(t.Context(), "/a", nil)
		if err != nil || node.Czxid <= before || node.Czxid >= 1<<53 { // what a float holds exactly
			t.Errorf("zxid %#x after %#x, error %v", node.Czxid, before, err)
		}
		before = node.Czxid
	}
}

// A server with --sasl-user lets that user log in, and says what it cannot do with the flags of
// other logins.
func TestServeLogins(t *testing.T) {
	t.Parallel()
	c := serving(t, "--sasl-user", "amy", "--sasl-password", "pw")
	connect := func(password string) error {
		c, err := client.Connect(t.Context(), c.Servers()[0], client.WithSASL(client.DigestMD5("amy", password)), client.WithLogger(slog.New(slog.DiscardHandler)))
		if err == nil {
			err = c.Close()
		}
		return err
	}
	if err := connect("pw"); err != nil {
		t.Error(err)
	}
	if err := connect("wrong"); !errors.Is(err, client.ErrAuthFailed) {
		t.Errorf("a wrong password: %v", err)
	}
	for flags, want := range map[string]string{
		"--sasl-user amy":             "belong together",
		"--kerberos-cache /tmp/none":  "serve knows no Kerberos",
		"--super-digest super:secret": "hash",
		"--super-digest secret":       "hash",
		"--version 3.4":               "3.5 to 3.9",
	} {
		args := append([]string{"serve", "--listen", "127.0.0.1:0"}, strings.Fields(flags)...)
		if s := do(t, nil, args...); s.code != exitUsage || !strings.Contains(s.err, want) {
			t.Errorf("%s: %+v", flags, s)
		}
	}
}

// serve is the release that its flag names, and has TTL nodes unless it is told not to.
func TestServeLike(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		flags      []string
		ttl, watch bool
	}{
		{nil, true, true},
		{[]string{"--version", "3.5.9"}, true, false},
		{[]string{"--version", "3.5"}, true, false},
		{[]string{"--super-digest", "super:D/InIHSb7yEEbrWz8b9l71RjZJU="}, true, true},
		{[]string{"--version", "3.8.0", "--ttl-nodes=false"}, false, true},
	} {
		c := serving(t, tt.flags...)
		if _, err := c.Create(t.Context(), "/a", nil, client.TTL(time.Hour)); errors.Is(err, client.ErrUnsupported) == tt.ttl {
			t.Errorf("%v: a TTL node: %v", tt.flags, err)
		}
		if _, err := c.Watch(t.Context(), "/"); errors.Is(err, client.ErrUnsupported) == tt.watch {
			t.Errorf("%v: a persistent watch: %v", tt.flags, err)
		}
	}
}

// The settings of serve reach the server.
func TestServeSettings(t *testing.T) {
	t.Parallel()
	c := serving(t, "--tick", "100ms", "--min-session-timeout", "300ms", "--max-session-timeout", "7s", "--max-buffer", "2000",
		"--super-digest", "super:lK75jTNcA+U9vtVEw5vB51mj/w4=", "--latency", "1ms", "--write-delay", "1ms", "--container-interval", "1h")
	session, err := c.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := session.Timeout(); got != 7*time.Second {
		t.Errorf("the session timeout is %v", got)
	}
	if _, err := c.Create(t.Context(), "/closed", nil, client.ACL(zk.DigestACL(zk.PermAll, "a", "b")...)); err != nil {
		t.Error(err)
	}
	if _, _, err := c.Get(t.Context(), "/closed"); !errors.Is(err, zk.ErrNoAuth) {
		t.Errorf("without rights: %v", err)
	}
	super, err := client.Connect(t.Context(), c.Servers()[0], client.WithAuth("digest", "super:secret"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = super.Close() })
	if _, _, err := super.Get(t.Context(), "/closed"); err != nil {
		t.Errorf("as superuser: %v", err)
	}
	if _, err := c.Create(t.Context(), "/large", make([]byte, 3000)); err == nil {
		t.Error("a request over --max-buffer succeeds")
	}
	closed := serving(t, "--require-auth", "digest")
	if _, _, err := closed.Exists(t.Context(), "/"); !errors.Is(err, client.Code(-124)) {
		t.Errorf("without an identity: %v", err)
	}
	if err := closed.AddAuth(t.Context(), "digest", "amy:pw"); err != nil {
		t.Error(err)
	}
	full := serving(t, "--enforce-quotas", "--reconfig")
	if _, err := full.Create(t.Context(), "/full", nil); err != nil {
		t.Error(err)
	}
	if err := full.SetQuota(t.Context(), "/full", client.Quota{HardNodes: 1}); err != nil {
		t.Error(err)
	}
	if _, err := full.Create(t.Context(), "/full/a", nil); !errors.Is(err, client.ErrQuotaExceeded) {
		t.Errorf("over the quota: %v", err)
	}
	if _, err := full.Reconfigure(t.Context(), client.Reconfiguration{Leave: []int64{2}}); err == nil || strings.Contains(err.Error(), "reconfigEnabled") {
		t.Errorf("a reconfig that is allowed: %v", err)
	}
	if _, err := c.Reconfigure(t.Context(), client.Reconfiguration{Leave: []int64{2}}); err == nil || !strings.Contains(err.Error(), "reconfigEnabled") {
		t.Errorf("a reconfig that is not: %v", err)
	}
	keeper := serving(t, "--keeper")
	if there, _, err := keeper.Exists(t.Context(), "/keeper/api_version"); err != nil || !there {
		t.Errorf("Keeper's nodes: %v, %v", there, err)
	}
}

func TestListQueueAndWho(t *testing.T) {
	t.Parallel()
	srv := server(t)
	c := connect(t, srv, client.WithName("billing"))
	hold := acquired(t, c, "/app/orders")
	waiting(t, c, "/app/orders")
	rw, err := recipes.NewInterProcessReadWriteLock(c, "/app/report")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := rw.ReadLock().Acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	sem, err := recipes.NewInterProcessSemaphoreV2(c, "/app/encoders", 3)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sem.Acquire(t.Context(), 2); err != nil {
		t.Fatal(err)
	}

	var locks []summary
	s := do(t, srv, "ls", "/app", "-o", "json")
	if err := json.Unmarshal([]byte(s.out), &locks); err != nil || s.code != 0 || len(locks) != 3 {
		t.Fatalf("%v: %+v", err, s)
	}
	for i, want := range []summary{
		{Path: "/app/encoders", Kind: kindSemaphore, Holders: 2},
		{Path: "/app/orders", Kind: kindMutex, Holders: 1, Waiters: 1},
		{Path: "/app/report", Kind: kindReadWrite, Holders: 2},
	} {
		got := locks[i]
		if got.Path != want.Path || got.Kind != want.Kind || got.Holders != want.Holders || got.Waiters != want.Waiters || got.Holder != "billing" {
			t.Errorf("%+v", got)
		}
	}
	if s := do(t, srv, "ls", "/app", "--depth", "0"); strings.Contains(s.out, "orders") {
		t.Errorf("depth 0: %+v", s)
	}
	if s := do(t, srv, "top", "/app", "--count", "1"); s.code != 0 || !strings.Contains(s.out, "3 locks") {
		t.Errorf("%+v", s)
	}

	s = do(t, srv, "queue", "/app/orders", "-o", "jsonl")
	lines := strings.Split(strings.TrimSpace(s.out), "\n")
	var first, second row
	if len(lines) != 2 || json.Unmarshal([]byte(lines[0]), &first) != nil || json.Unmarshal([]byte(lines[1]), &second) != nil {
		t.Fatalf("%+v", s)
	}
	if first.State != holds || second.State != waits || first.Token != hold.FencingToken() || first.Client != "billing" || second.QueuedSince == nil {
		t.Errorf("%+v", s)
	}
	if s := do(t, srv, "who", "/app/orders"); strings.Count(s.out, "\n") != 2 || !strings.Contains(s.out, holds) {
		t.Errorf("%+v", s)
	}
	for _, tt := range []struct{ path, says string }{{"/app/ordres", "does not exist"}, {"/app", "locks are below"}} {
		if s := do(t, srv, "queue", tt.path); s.code != exitFailure || !strings.Contains(s.err, tt.says) {
			t.Errorf("%+v", s)
		}
	}
}

// A node's data is written by other clients. A terminal must not obey it.
func TestDataDoesNotReachTheTerminal(t *testing.T) {
	t.Parallel()
	srv := server(t)
	m, err := recipes.NewInterProcessMutex(connect(t, srv), "/a", recipes.WithNodeData([]byte("\x1b[2J\tx\nforged")))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := do(t, srv, "queue", "/a", "-o", "wide"); strings.Contains(s.out, "\x1b") || strings.Count(s.out, "\n") != 2 {
		t.Errorf("%q", s.out)
	}
}

// While permits are held and no contender waits, servers sweep the empty directory of the
// queue. The semaphore is seen all the same.
func TestSweptSemaphoreIsSeen(t *testing.T) {
	t.Parallel()
	srv := server(t)
	c := connect(t, srv)
	sem, err := recipes.NewInterProcessSemaphoreV2(c, "/app/encoders", 3)
	if err != nil {
		t.Fatal(err)
	}
	lease, err := sem.Acquire(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := srv.Delete("/app/encoders/locks"); err != nil {
		t.Fatal(err)
	}
	node := path.Base(lease.Path())
	for _, args := range [][]string{{"who", "/app/encoders"}, {"queue", "/app/encoders"}} {
		if s := do(t, srv, args...); s.code != 0 || !strings.Contains(s.out, node) {
			t.Errorf("%v: %+v", args, s)
		}
	}
	if s := do(t, srv, "ls", "/"); s.code != 0 || !strings.Contains(s.out, kindSemaphore) {
		t.Errorf("ls: %+v", s)
	}
	if s := do(t, srv, "evict", "--yes", "/app/encoders", node); s.code != 0 {
		t.Errorf("evict: %+v", s)
	}
	eventually(t, func() bool { return lease.Err() != nil })
}

// An election is listed, and its participants are. No request overwrites their ids.
func TestElection(t *testing.T) {
	t.Parallel()
	srv := server(t)
	latch, err := recipes.NewLeaderLatch(connect(t, srv), "/leaders/a", recipes.WithID("worker-7"))
	if err != nil {
		t.Fatal(err)
	}
	term, err := latch.Campaign(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = term.Close() })
	if s := do(t, srv, "ls", "/"); s.code != 0 || !strings.Contains(s.out, "/leaders/a") || !strings.Contains(s.out, "latch") {
		t.Errorf("%+v", s)
	}
	if s := do(t, srv, "who", "/leaders/a", "-o", "wide"); s.code != 0 || !strings.Contains(s.out, "worker-7") || !strings.Contains(s.out, filepath.Base(term.Path())) {
		t.Errorf("%+v", s)
	}
	if s := do(t, srv, "queue", "/leaders/a"); s.code != 0 || !strings.Contains(s.out, "  ID  ") || !strings.Contains(s.out, "  worker-7  ") {
		t.Errorf("queue says no id: %+v", s)
	}
	for _, args := range [][]string{{"queue", "/leaders/a"}, {"ls", "/leaders"}} {
		if s := do(t, srv, append(args, "-o", "json")...); !strings.Contains(s.out, `"id": "worker-7"`) {
			t.Errorf("%v: %+v", args, s)
		}
	}
	if s := do(t, srv, "ls", "/leaders"); !strings.Contains(s.out, "  ID  ") || !strings.Contains(s.out, "  worker-7  ") {
		t.Errorf("ls says no id: %+v", s)
	}
	acquired(t, connect(t, srv), "/a")
	if s := do(t, srv, "queue", "/a"); s.code != 0 || strings.Contains(s.out, "  ID  ") {
		t.Errorf("an id of a lock: %+v", s)
	}
	if s := do(t, srv, "ask", "--yes", "/leaders/a"); s.code != exitFailure || !strings.Contains(s.err, "hand over") {
		t.Errorf("%+v", s)
	}
	if who, err := latch.Leader(t.Context()); err != nil || who.ID != "worker-7" {
		t.Errorf("%+v, %v", who, err)
	}
}

func TestDeadlocks(t *testing.T) {
	t.Parallel()
	srv := server(t)
	a, b := connect(t, srv, client.WithName("a")), connect(t, srv, client.WithName("b"))
	acquired(t, a, "/x")
	acquired(t, b, "/y")
	waiting(t, a, "/y")
	if s := do(t, srv, "deadlocks"); s.code != 0 || strings.Count(s.out, "\n") != 1 {
		t.Errorf("a waits for b alone: %+v", s)
	}
	if s := do(t, srv, "deadlocks"); !strings.Contains(s.err, "--dot has 1 wait\n") {
		t.Errorf("no word about the wait: %+v", s)
	}
	waiting(t, b, "/x")
	if s := do(t, srv, "deadlocks", "/"); s.code != exitFailure || strings.Count(s.out, "\n") != 3 {
		t.Errorf("%+v", s)
	}
	if s := do(t, srv, "deadlocks", "--dot"); s.code != 0 || strings.Count(s.out, "->") != 2 || !strings.HasPrefix(s.out, "digraph") {
		t.Errorf("%+v", s)
	}
}

// Several waiters of one session, and several leases of another, make one line.
func TestDeadlocksWriteEachWaitOnce(t *testing.T) {
	t.Parallel()
	srv := server(t)
	a, b := connect(t, srv, client.WithName("a")), connect(t, srv, client.WithName("b"))
	semaphore := func(c *client.Client, path string) *recipes.InterProcessSemaphoreV2 {
		s, err := recipes.NewInterProcessSemaphoreV2(c, path, 2)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for c, path := range map[*client.Client]string{a: "/x", b: "/y"} {
		if _, err := semaphore(c, path).Acquire(t.Context(), 2); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 2 {
		for c, path := range map[*client.Client]string{b: "/x", a: "/y"} {
			wg.Go(func() {
				if _, err := semaphore(c, path).Acquire(ctx, 1); !errors.Is(err, context.Canceled) {
					t.Errorf("acquired: %v", err)
				}
			})
		}
	}
	defer wg.Wait()
	defer cancel()
	for _, path := range []string{"/x", "/y"} {
		eventually(t, func() bool {
			queue, err := semaphore(a, path).Queue(t.Context())
			return err == nil && len(queue) == 4 // two leases and two waiters
		})
	}
	if s := do(t, srv, "deadlocks"); s.code != exitFailure || strings.Count(s.out, "\n") != 3 || !strings.Contains(s.err, "2 waits are part") {
		t.Errorf("%+v", s)
	}
}

// A program campaigns in the background, and its other goroutines take locks. So its wait
// in an election blocks none of them, and closes no circle.
func TestDeadlocksOfCampaigns(t *testing.T) {
	t.Parallel()
	type leading = func(context.Context, func(context.Context, *recipes.Term) error) error
	for kind, election := range map[string]func(*client.Client) (leading, error){
		"latch": func(c *client.Client) (leading, error) {
			l, err := recipes.NewLeaderLatch(c, "/leader")
			return l.Do, err
		},
		"selector": func(c *client.Client) (leading, error) {
			s, err := recipes.NewLeaderSelector(c, "/leader")
			return s.Do, err
		},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			srv := server(t)
			a, b := connect(t, srv, client.WithName("a")), connect(t, srv, client.WithName("b"))
			campaign := func(c *client.Client, n int) {
				lead, err := election(c)
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() {
					defer close(done)
					_ = lead(ctx, func(ctx context.Context, _ *recipes.Term) error { <-ctx.Done(); return nil })
				}()
				t.Cleanup(func() { cancel(); <-done })
				eventually(t, func() bool { return len(srv.Children("/leader")) == n })
			}
			campaign(a, 1)
			campaign(b, 2)
			campaign(a, 3)
			acquired(t, b, "/x")
			waiting(t, a, "/x")
			if s := do(t, srv, "deadlocks", "--self", "1ns"); s.code != 0 || strings.Count(s.out, "\n") != 1 {
				t.Errorf("a leads and waits for b: %+v", s)
			}
			if s := do(t, srv, "deadlocks", "--dot"); strings.Count(s.out, `[label="/leader"]`) != 3 {
				t.Errorf("the graph has the waits in the election: %+v", s)
			}
		})
	}
}

// A session may campaign for what it also waits for as a mutex: the campaign closes no circle, and
// hides no wait that does.
func TestDeadlocksBesideACampaign(t *testing.T) {
	t.Parallel()
	srv := server(t)
	a, b := connect(t, srv, client.WithName("a")), connect(t, srv, client.WithName("b"))
	acquired(t, b, "/m")
	acquired(t, a, "/x")
	waiting(t, b, "/x")
	selector, err := recipes.NewLeaderSelector(a, "/m")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = selector.Do(ctx, func(context.Context, *recipes.Term) error { return nil })
	}()
	t.Cleanup(func() { cancel(); <-done })
	eventually(t, func() bool { return len(srv.Children("/m")) == 2 })
	if s := do(t, srv, "deadlocks"); s.code != 0 {
		t.Errorf("a campaigns for what b holds: %+v", s)
	}
	waiting(t, a, "/m")
	if s := do(t, srv, "deadlocks"); s.code != exitFailure || !strings.Contains(s.err, "2 waits are part of a circle") {
		t.Errorf("a waits for b behind its own campaign: %+v", s)
	}
}

// A session that waits for its own hold for a while is a circle of one. It need not be a
// deadlock, so a young wait is none, and --self says what is young.
func TestDeadlocksSelf(t *testing.T) {
	t.Parallel()
	srv := server(t)
	a, b := connect(t, srv, client.WithName("a")), connect(t, srv, client.WithName("b"))
	acquired(t, a, "/x")
	acquired(t, a, "/y")
	waiting(t, b, "/y")
	if s := do(t, srv, "deadlocks", "--self", "1ns"); s.code != 0 {
		t.Errorf("b waits for a: %+v", s)
	}
	waiting(t, a, "/x")
	waiting(t, a, "/x")
	for _, args := range [][]string{{"deadlocks"}, {"deadlocks", "--self", "0"}} {
		if s := do(t, srv, args...); s.code != 0 || strings.Count(s.out, "\n") != 1 {
			t.Errorf("%v, with a young wait: %+v", args, s)
		}
	}
	s := do(t, srv, "deadlocks", "--self", "1ns", "-o", "json")
	if s.code != exitFailure || strings.Count(s.out, `"kind": "self"`) != 1 || !strings.Contains(s.err, "1 wait is part of a circle; one of the kind") {
		t.Errorf("%+v", s)
	}
	if s := do(t, srv, "deadlocks", "--self", "1ns", "--dot"); strings.Count(s.out, `[label="/x"]`) != 1 {
		t.Errorf("a waits for itself: %+v", s)
	}
	if s := do(t, srv, "deadlocks", "--self", "-1s"); s.code != exitUsage {
		t.Errorf("%+v", s)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	srv := server(t)
	acquired(t, connect(t, srv), "/locks/a")
	s := do(t, srv, "check", "/locks")
	if s.code != 0 || !strings.Contains(s.out, "may list, create and delete") || !strings.Contains(s.out, "1 lock;") || !strings.Contains(s.out, "15s") {
		t.Errorf("%+v", s)
	}
	if s := do(t, srv, "check"); !strings.Contains(s.out, "Apache ZooKeeper 3.9") || strings.Contains(s.out, "warn") {
		t.Errorf("the product: %+v", s)
	}
	if got := srv.Children("/locks"); len(got) != 1 {
		t.Errorf("check has left %v", got)
	}
	if s := do(t, srv, "check", "--session-timeout", "1s"); s.code != 0 || !strings.Contains(s.out, "warn") {
		t.Errorf("a timeout that is not granted: %+v", s)
	}
	if err := srv.SetCounter("/locks/a", 1<<30+1); err != nil {
		t.Fatal(err)
	}
	if s := do(t, srv, "check", "/locks"); !strings.Contains(s.out, "/locks/a with 107374182") || !strings.Contains(s.out, "near the end") {
		t.Errorf("%+v", s)
	}
	if s := do(t, nil, "check", "--servers", srv.Addr()+",127.0.0.1:1", "--connect-timeout", "1s"); s.code != exitFailure || !strings.Contains(s.out, "server 127.0.0.1:1") {
		t.Errorf("a server that is down: %+v", s)
	}
}
