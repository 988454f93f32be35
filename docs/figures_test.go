package docs_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// figure is a number that pages quote and a file of the repository decides. Both
// patterns have one group, the number.
type figure struct {
	what, file, decides string
	quotes              []quote
}

type quote struct{ page, pattern string }

var figures = []figure{
	{
		"the default session timeout", "client/config.go", `DefaultSessionTimeout = (\d+) \* time\.Second`, []quote{
			{"../README.md", `session times out, (\d+) s by default`},
			{"losing-a-lock.md", `client\.WithSessionTimeout., (\d+) s by default`},
			{"client.md", `client\.WithSessionTimeout. \| (\d+) s \|`},
			{"operations.md", `session timeout .T. \| (\d+) s \|`},
		},
	},
	{
		"the least release of Go", "go.mod", `(?m)^go (\d+\.\d+)`, []quote{
			{"../README.md", `Go (\d+\.\d+) or later`},
			{"quickstart.md", `Go (\d+\.\d+) or later`},
			{"compatibility.md", `go\.mod. and later: (\d+\.\d+)`},
		},
	},
	{
		"go-zookeeper's release", "go.mod", `go-zookeeper/zk v([\d.]+)`, []quote{
			{"compatibility.md", `go-zookeeper \| v([\d.]+),`},
			{"comparison.md", `go-zookeeper v([\d.]+),`},
		},
	},
	{
		"how many nodes of a client stand in line", "recipes/internal/seqqueue/queue.go", `MostMembers = (\d+)`, []quote{
			{"../README.md", `Of one process (\d+) acquires stand in line`},
			{"interprocessmutex.md", `(\d+) nodes of one client in line`},
			{"interprocessreadwritelock.md", `(\d+) nodes of one client in line`},
			{"internals/mutex-protocol.md", `At most (\d+) nodes of one client`},
			{"internals/multilock-protocol.md", `At most (\d+) of them have a node`},
			{"internals/semaphore-protocol.md", `A client puts (\d+) nodes in line`},
			{"internals/election-protocol.md", `A client puts (\d+) campaigns`},
			{"architecture.md", `while (\d+) nodes of the client stand in line`},
			{"decisions/0053-window.md", `At most (\d+) nodes of one client`},
			{"glossary.md", `at most (\d+) nodes that one client has`},
			{"../bench/results/crowds.md", `At most (\d+) nodes of one client`},
		},
	},
	{
		"when a waiter and a holder watch their own nodes", "recipes/internal/seqqueue/lookafter.go", `WatchAfter = (\d+) \* time\.Millisecond`, []quote{
			{"interprocessmutex.md", `its node is watched after (\d+) ms`},
			{"internals/mutex-protocol.md", `own node with a watch after (\d+) ms`},
			{"internals/mutex-protocol.md", `held for longer than (\d+) ms`},
			{"internals/mutex-protocol.md", `within (\d+) ms of the deletion`},
			{"inspection.md", `within (\d+) ms of the grant`},
			{"internals/goroutines.md", `a timer, (\d+) ms after the grant`},
			{"decisions/0045-own-node-watch.md", `watches its own node after (\d+) ms`},
			{"performance.md", `hold of less than (\d+) ms`},
			{"internals/inspection.md", `within (\d+) ms of the grant`},
			{"internals/inspection.md", `waited for (\d+) ms`},
		},
	},
	{
		"how many goroutines watch the nodes of holds", "recipes/ownwatch.go", `ownWatchers = (\d+)`, []quote{
			{"internals/goroutines.md", `with at most (\d+) goroutines`},
		},
	},
	{
		"when a participant gives way to the same id again", "recipes/internal/candidacy/candidacy.go", `deferAgain = (\d+) \* time\.Second`, []quote{
			{"internals/election-protocol.md", `to the same id again within (\d+) seconds`},
		},
	},
	{
		"how much faster than a loop a cache loads", "bench/results/caches.md", `(?m)^\| Docent .Tree. +\| +[\d.]+ \| +[\d.]+ \| +([\d.]+) \|`, []quote{
			{"performance.md", `([\d.]+) times as fast as a loop that reads`},
		},
	},
	{
		"in how many seconds a cache loads", "bench/results/caches.md", `(?m)^\| Docent .Tree. +\| +[\d.]+ \| +([\d.]+) \|`, []quote{
			{"performance.md", `nodes loads in ([\d.]+) s,`},
		},
	},
	{
		"in how many seconds Curator's cache loads", "bench/results/caches.md", `(?m)^\| Curator .TreeCache. +\| +[\d.]+ \| +([\d.]+) \|`, []quote{
			{"performance.md", `.TreeCache. takes ([\d.]+) s`},
		},
	},
	{
		"the most memory of a cache that loads", "bench/results/caches.md", `(?m)^\| Docent .Tree. +\| +[\d.]+ \| +[\d.]+ \| +[\d.]+ \| +([\d.]+) \|`, []quote{
			{"performance.md", `at most ([\d.]+) MiB of heap`},
		},
	},
	{
		"the nodes of the measured cache", "bench/results/caches.md", `The tree has (\d+) nodes`, []quote{
			{"performance.md", `A cache\W+of ([\d,]+) nodes`},
		},
	},
	{
		"the processor time of a server with sessions that hold", "bench/results/staying-sessions.md", `(?m)^\| 5000 +\| holding \|(?: +[\d.]+ \|){6} +([\d.]+) \|`, []quote{
			{"performance.md", `sessions with a lock each cost one server ([\d.]+) %`},
		},
	},
	{
		"schedules on ClickHouse Keeper", "Makefile", `(?m)^KEEPER_SEEDS \?= (\d+)`, []quote{
			{"servers.md", `make simulation. plays ([\d,]+) seeded schedules`},
		},
	},
	{
		"schedules of linear", "Makefile", `(?m)^LINEAR_SEEDS \?= (\d+)`, []quote{
			{"../CONTRIBUTING.md", `linearizable: ([\d,]+) schedules of faults`},
		},
	},
	{
		"seeds of determinism", "Makefile", `(?m)^TRACE_SEEDS \?= (\d+)`, []quote{
			{"../CONTRIBUTING.md", `make determinism. \| (\d+) seeds`},
		},
	},
	{
		"requests of differential", ".ci/differential.sh", `DIFF_OPS:-(\d+)`, []quote{
			{"../CONTRIBUTING.md", `as their release, ([\d,]+) random requests`},
		},
	},
	{
		"inputs of the fuzz targets", "Makefile", `(?m)^FUZZTIME \?= (\d+)x`, []quote{
			{"../CONTRIBUTING.md", `FUZZTIME., default (\d+)x`},
		},
	},
	{
		"processes of the flash sale", "docs/examples/flashsale/main.go", `"workers", (\d+)`, []quote{
			{"../README.md", `# (\d+) processes x`}, {"README.md", `\| (\d+) processes sell`},
		},
	},
	{
		"buyers of the flash sale", "docs/examples/flashsale/main.go", `"buyers", (\d+)`, []quote{
			{"../README.md", `processes x (\d+) buyers`},
		},
	},
	{
		"items of the flash sale", "docs/examples/flashsale/main.go", `"stock", (\d+)`, []quote{
			{"../README.md", `buyers sell (\d+) items`}, {"README.md", `processes sell (\d+) items`},
		},
	},
}

// quoted returns the numbers that a text has where the pattern says.
func quoted(text, pattern string) []string {
	text = strings.Join(strings.Fields(text), " ") // a page breaks its lines anywhere
	var found []string
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		found = append(found, strings.ReplaceAll(m[1], ",", ""))
	}
	return found
}

// A number that a page quotes is the one that the code has.
func TestFigures(t *testing.T) {
	t.Parallel()
	for _, f := range figures {
		m := regexp.MustCompile(f.decides).FindStringSubmatch(read(t, filepath.Join(root, f.file)))
		if m == nil {
			t.Errorf("%s: %s has no %s", f.what, f.file, f.decides)
			continue
		}
		for _, q := range f.quotes {
			found := quoted(read(t, q.page), q.pattern)
			if len(found) == 0 {
				t.Errorf("%s: %s has no %s", f.what, q.page, q.pattern)
			}
			for _, number := range found {
				if number != m[1] {
					t.Errorf("%s: %s says %s, and %s says %s", f.what, q.page, number, f.file, m[1])
				}
			}
		}
	}
}
