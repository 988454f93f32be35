package ports_test

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	kit "github.com/go-kit/kit/sd/zk"
	"github.com/go-kit/log"
	"github.com/go-zookeeper/zk"
	"github.com/hashicorp/go-hclog"
	oldvault "github.com/hashicorp/vault/physical/zookeeper"
	"github.com/hashicorp/vault/sdk/physical"
	"github.com/kvtools/valkeyrie/store"
	oldstore "github.com/kvtools/zookeeper"

	"github.com/docent-go/docent/zktest"
)

var server = flag.String("server", "", "for the benchmarks: host:port of a ZooKeeper server that may be written to; by default one of zktest")

// suffix makes the name of a directory new.
func suffix() string { return fmt.Sprint(time.Now().UnixNano()) }

// page returns README.md and the table of requests.
func page(t *testing.T) string {
	t.Helper()
	var all []byte
	for _, name := range []string{"README.md", "../../../bench/results/ports.md"} {
		text, err := os.ReadFile(filepath.FromSlash(name))
		check(t, err)
		all = append(all, text...)
	}
	return string(all)
}

// says checks a row of the page.
func says(t *testing.T, page, format string, a ...any) {
	t.Helper()
	if row := fmt.Sprintf(format, a...); !strings.Contains(page, row) {
		t.Errorf("README.md and bench/results/ports.md lack %q", row)
	}
}

// The page says how many requests each operation costs.
func TestRequests(t *testing.T) {
	t.Parallel()
	text := page(t)
	for _, p := range ports() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			before, after := requests(t, p.before), requests(t, p.after)
			for i, b := range before {
				says(t, text, "| %s: %s | %d | %d |", p.name, b.name, b.requests, after[i].requests)
			}
		})
	}
}

type cost struct {
	name     string
	requests int
}

// requests counts those of a call of each operation, as the mean of many: the first makes
// directories, and locks of old send some in goroutines of their own.
func requests(t *testing.T, open func(testing.TB, string) []operation) (costs []cost) {
	t.Helper()
	const calls = 10
	srv := zktest.NewServer(t)
	arrived := func() (n int) {
		for op, count := range srv.Counts() {
			if op != zktest.OpPing && op != zktest.OpConnect {
				n += count
			}
		}
		return n
	}
	for _, op := range open(t, srv.Addr()) {
		if op.prepare != nil {
			check(t, op.prepare())
		}
		check(t, op.do(0))
		begun := arrived()
		for i := range calls {
			check(t, op.do(i+1))
		}
		costs = append(costs, cost{op.name, int(math.Round(float64(arrived()-begun) / calls))})
	}
	return costs
}

// The page says how many lines of code there are: those that are neither blank nor a comment.
func TestLines(t *testing.T) {
	t.Parallel()
	text := page(t)
	for _, row := range []struct {
		name, module string
		before       []string
		after        string
	}{
		{"Vault", "github.com/hashicorp/vault", []string{"physical/zookeeper/zookeeper.go"}, "vault"},
		{"Valkeyrie", "github.com/kvtools/zookeeper", []string{"zookeeper.go"}, "valkeyrie"},
		{"go-kit", "github.com/go-kit/kit", []string{"sd/zk/client.go", "sd/zk/logwrapper.go"}, "gokit"},
	} {
		dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", row.module).Output()
		check(t, err)
		before := 0
		for _, name := range row.before {
			before += lines(t, filepath.Join(strings.TrimSpace(string(dir)), filepath.FromSlash(name)))
		}
		says(t, text, "| %s | %d | %d |", row.name, before, linesIn(t, row.after))
	}
	// The old registry is in no module that a proxy has: counted in commit 668db92.
	says(t, text, "| Kratos | %d | %d |", 254, linesIn(t, "kratos"))
}

func linesIn(t *testing.T, dir string) (n int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	check(t, err)
	for _, name := range files {
		if !strings.HasSuffix(name, "_test.go") {
			n += lines(t, name)
		}
	}
	return n
}

func lines(t *testing.T, name string) (n int) {
	t.Helper()
	text, err := os.ReadFile(name)
	check(t, err)
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
			n++
		}
	}
	return n
}

// What the page says of the old backends.
func TestBefore(t *testing.T) {
	t.Parallel()
	srv := zktest.NewServer(t)
	discovery, err := kit.NewClient([]string{srv.Addr()}, log.NewNopLogger())
	check(t, err)
	defer discovery.Stop()
	service := &kit.Service{Path: "/kit", Name: "service", Data: []byte("10.0.0.1:80")}
	check(t, discovery.Register(service))
	if err := discovery.Deregister(service); !errors.Is(err, zk.ErrNotEmpty) {
		t.Errorf("go-kit's Deregister returned %v", err)
	}

	pairs, err := oldstore.New(t.Context(), []string{srv.Addr()}, nil)
	check(t, err)
	defer func() { _ = pairs.Close() }()
	check(t, pairs.Put(t.Context(), "service", nil, &store.WriteOptions{TTL: time.Second})) // has no children
	if err := pairs.Put(t.Context(), "service/key", []byte("value"), nil); err != nil {
		t.Errorf("Valkeyrie's Put returned %v", err)
	}
	if _, made := srv.Node("/service/key"); made {
		t.Error("an ephemeral node has a child")
	}

	storage, err := oldvault.NewZooKeeperBackend(map[string]string{"address": srv.Addr()}, hclog.NewNullLogger())
	check(t, err)
	ha, ok := storage.(physical.HABackend)
	if !ok {
		t.Fatal("no locks")
	}
	lock, err := ha.LockWith("core/lock", "value")
	check(t, err)
	lost, err := lock.Lock(nil)
	check(t, err)
	for _, s := range srv.Sessions() {
		srv.ExpireSession(s.ID)
	}
	<-lost
	if err := storage.Put(t.Context(), &physical.Entry{Key: "key", Value: []byte("late")}); err != nil {
		t.Errorf("Vault's late Put returned %v", err)
	}
}

// Before and after in one run: go test -run ^$ -bench . -server zk1:2181
func Benchmark(b *testing.B) {
	for _, p := range ports() {
		for side, open := range map[string]func(testing.TB, string) []operation{"before": p.before, "after": p.after} {
			b.Run(p.name+"/"+side, func(b *testing.B) {
				at := *server
				if at == "" {
					at = zktest.NewServer(b).Addr()
				}
				for _, op := range open(b, at) {
					if op.prepare != nil {
						check(b, op.prepare())
					}
					i := 0
					b.Run(op.name, func(b *testing.B) {
						for b.Loop() {
							check(b, op.do(i))
							i++
						}
					})
				}
			})
		}
	}
}
