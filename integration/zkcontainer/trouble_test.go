package zkcontainer_test

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/testcontainers/testcontainers-go"

	"github.com/docent-go/docent/integration/zkcontainer"
)

// Faults meet faults, and another program takes the port of a server that is down.
func TestFaultsOnFaults(t *testing.T) {
	t.Parallel()
	ctx := limited(t, 3*time.Minute)
	e := zkcontainer.StartEnsemble(t, image(), 2, zkcontainer.WithHost("127.0.0.1"), zkcontainer.WithTickTime(200*time.Millisecond))
	c := e.Member(1)
	refused := func(want string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "of server 1") {
			t.Errorf("%v, want %q", err, want)
		}
	}
	check(t, c.Pause(ctx))
	refused("already paused", c.Pause(ctx))
	refused("cannot start a paused container", c.Start(ctx))
	check(t, c.Kill(ctx))
	refused("not running", c.Kill(ctx))
	check(t, c.Partition(ctx))
	check(t, c.Start(ctx))
	must(c.AwaitRole(ctx, zkcontainer.NotServing))(t)
	check(t, c.Pause(ctx))
	check(t, c.Heal(ctx))
	check(t, c.Stop(ctx, nil))

	listener := must(net.Listen("tcp4", c.Addr()))(t)
	refused("address already in use", c.Start(ctx))
	check(t, listener.Close())
	check(t, c.Start(ctx))
	check(t, c.Start(ctx)) // one that runs
	must(e.AwaitServing(ctx))(t)
}

// What a server does not take of the initial data is told with what to do.
func TestInitialDataRefused(t *testing.T) {
	t.Parallel()
	ctx := limited(t, 2*time.Minute)
	for want, opts := range map[string][]testcontainers.ContainerCustomizer{
		"require a login by SASL": {
			zkcontainer.WithSASLDigest(map[string]string{"alice": "secret"}),
			zkcontainer.WithProperty("sessionRequireClientSASLAuth", "true"),
			zkcontainer.WithChroot("/app"),
		},
		"jute.maxbuffer": {zkcontainer.WithInitData(map[string][]byte{"/large": make([]byte, 2<<20)})},
	} {
		c, err := zkcontainer.Run(ctx, image(), append(opts, zkcontainer.WithHost("127.0.0.1"))...)
		testcontainers.CleanupContainer(t, c)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// A failure of testcontainers' reaper says how to go on without it.
func TestReaperMissing(t *testing.T) {
	t.Parallel()
	cause := errors.New("create container: reaper: new reaper: run container: no such host")
	if err := zkcontainer.Advised(cause); !errors.Is(err, cause) || !strings.Contains(err.Error(), "TESTCONTAINERS_RYUK_DISABLED") {
		t.Error(err)
	}
	if err := zkcontainer.Advised(nil); err != nil {
		t.Error(err)
	}
}

// engine is a way to the engine that can be cut.
type engine struct {
	path string

	mu    sync.Mutex
	away  bool
	conns []net.Conn
}

// newEngine listens on a socket before the engine's own.
func newEngine(ctx context.Context, t *testing.T) *engine {
	t.Helper()
	network, address, _ := strings.Cut(cmp.Or(os.Getenv("DOCKER_HOST"), "unix:///var/run/docker.sock"), "://")
	g := &engine{path: filepath.Join(t.TempDir(), "docker.sock")}
	listener := must(new(net.ListenConfig).Listen(ctx, "unix", g.path))(t)
	var group sync.WaitGroup
	t.Cleanup(func() {
		_ = listener.Close()
		g.set(true)
		group.Wait()
	})
	group.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := new(net.Dialer).DialContext(ctx, network, address)
			if err != nil || !g.keep(conn, server) {
				_ = conn.Close()
				continue
			}
			for _, pair := range [][2]net.Conn{{conn, server}, {server, conn}} {
				group.Go(func() {
					_, _ = io.Copy(pair[0], pair[1])
					_, _ = conn.Close(), server.Close()
				})
			}
		}
	})
	return g
}

func (g *engine) keep(conns ...net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.conns = append(g.conns, conns...)
	if g.away {
		closeAll(g.conns)
	}
	return !g.away
}

// set cuts the engine off, or gives it back.
func (g *engine) set(away bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.away = away
	if away {
		closeAll(g.conns)
	}
}

func closeAll(conns []net.Conn) {
	for _, c := range conns {
		_ = c.Close()
	}
}

const orphan = "ZKCONTAINER_ORPHAN"

// TestOrphan is what [TestEngineGone] starts in a process of its own.
func TestOrphan(t *testing.T) {
	if os.Getenv(orphan) == "" {
		return
	}
	ctx := limited(t, 2*time.Minute)
	e := zkcontainer.StartEnsemble(t, image(), 2, zkcontainer.WithHost("127.0.0.1"), withVolume())
	for _, name := range must(zkcontainer.Left(ctx, e))(t) {
		fmt.Println("made", name)
	}
	told := bufio.NewScanner(os.Stdin)
	fmt.Println("cut")
	told.Scan()
	c := e.Member(1)
	if _, err := c.Role(ctx); err != nil {
		t.Errorf("the server does not need the engine: %v", err)
	}
	for what, f := range map[string]func(context.Context) error{
		"kill": c.Kill, "pause": c.Pause, "partition": c.Partition,
		"terminate": func(ctx context.Context) error { return e.Terminate(ctx) },
	} {
		began := time.Now()
		if err := f(ctx); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s without an engine: %v", what, err)
		}
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("%s took %v", what, took)
		}
	}
	if end, err := zkcontainer.Run(ctx, image(), zkcontainer.WithHost("127.0.0.1")); err == nil || end.Terminate(ctx) == nil {
		t.Errorf("a start without an engine: %v", err)
	}
	fmt.Println("give")
	told.Scan()
}

// While the engine is away servers serve, what needs it fails, and the end of the test
// removes everything once it is back.
func TestEngineGone(t *testing.T) {
	t.Parallel()
	ctx := limited(t, 3*time.Minute)
	way := newEngine(ctx, t)
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestOrphan$", "-test.v")
	cmd.Env = append(os.Environ(), orphan+"=1", "TESTCONTAINERS_RYUK_DISABLED=true", "DOCKER_HOST=unix://"+way.path)
	in, out := must(cmd.StdinPipe())(t), must(cmd.StdoutPipe())(t)
	var said, complained strings.Builder // each is written by one goroutine
	cmd.Stderr = &complained
	check(t, cmd.Start())
	var made []string
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		line := lines.Text()
		said.WriteString(line + "\n")
		if name, ok := strings.CutPrefix(line, "made "); ok {
			made = append(made, name)
		}
		if line == "cut" || line == "give" {
			way.set(line == "cut")
			_, err := io.WriteString(in, "done\n")
			check(t, err)
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v:\n%s%s", err, &said, &complained)
	}
	if len(made) != 5 { // two containers with their volumes, and the network
		t.Errorf("made: %v", made)
	}
	if still := must(zkcontainer.Still(ctx, made))(t); len(still) != 0 {
		t.Errorf("left: %v", still)
	}
}
