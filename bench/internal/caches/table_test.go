package caches_test

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/bench/internal/caches"
)

func results() *caches.Results {
	r := &caches.Results{Version: "ZooKeeper 0", Curator: "Curator 0", Shape: caches.ShapeOf(1000), Raw: 100_000}
	for i, k := range caches.Kinds() {
		first, best := time.Duration(i+1)*10*time.Second, 8*time.Second/time.Duration(1<<i)
		r.All = append(r.All, caches.Result{
			Kind: k, Loads: []time.Duration{first, best + 2, best, best + 1}, Heap: 450_300, Peak: 2 << 20, Load: caches.Count{Requests: 7},
			Change: caches.Count{Requests: 3}, Reconnect: caches.Count{Requests: 5, Bytes: 2048},
		})
	}
	return r
}

// The times are ratios to the loop's, and memory to the bound.
func TestText(t *testing.T) {
	t.Parallel()
	text := strings.Join(strings.FieldsFunc(caches.Text(results()), func(r rune) bool { return r == ' ' }), " ")
	for _, want := range []string{
		"| go-zookeeper, a read per node in turn | 10.0 | 8.00 | 1.00 | 2.00 | 0.43 | 450 | 100 | 7 | - | - | - |",
		"| Docent `Tree` | 30.0 | 2.00 | 4.00 | 2.00 | 0.43 | 450 | 100 | 7 | 3 | 5 | 2.00 |",
		"The tree has 1001 nodes: 10 directories, and 99 nodes of 64 bytes in each.",
		"1.5 times the bytes of paths and data, and 300 bytes for each node: 0.43 MiB",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestWriteAndRead(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "caches.json")
	if err := caches.Write(results(), path); err != nil {
		t.Fatal(err)
	}
	got, err := caches.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, results()) {
		t.Errorf("read %+v, written %+v", got, results())
	}
}
