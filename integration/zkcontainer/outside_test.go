package zkcontainer_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// ten is the whole test of a program that has nothing to do with this repository.
const ten = `package orders

import (
	"testing"
	"time"

	"github.com/docent-go/docent/integration/zkcontainer"
	"github.com/go-zookeeper/zk"
)

func TestOrders(t *testing.T) {
	c := zkcontainer.Start(t, %q)
	conn, _, err := zk.Connect([]string{c.Addr()}, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Create("/orders", nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
}
`

// outside makes a module in a directory of its own, and returns it. It takes this module
// from here, and all others in the versions of this one.
func outside(t *testing.T) string {
	t.Helper()
	here := must(os.Getwd())(t)
	own := string(must(os.ReadFile("go.mod"))(t))
	_, rest, ok := strings.Cut(own, "\n")
	if !ok {
		t.Fatalf("go.mod:\n%s", own)
	}
	const path = "github.com/docent-go/docent/integration/zkcontainer"
	mod := fmt.Sprintf("module example.com/orders\n%s\nrequire %s v0.0.0\n\nreplace %s => %s\n", rest, path, path, strconv.Quote(here))
	dir := t.TempDir()
	for name, content := range map[string]string{
		"go.mod":         mod,
		"go.sum":         string(must(os.ReadFile("go.sum"))(t)),
		"orders_test.go": fmt.Sprintf(ten, image()),
	} {
		check(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	return dir
}

// race is the flag of the race detector if this program has it: then all but the ten lines is
// compiled already.
func race() []string {
	info, _ := debug.ReadBuildInfo()
	if info != nil && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		return []string{"-race"}
	}
	return nil
}

// A test of ten lines in a module outside this repository is green, twenty times side by
// side and twenty times in a row if DOCENT_OUTSIDE says so, and three times each otherwise.
func TestOutside(t *testing.T) {
	t.Parallel()
	times := 3
	if text := os.Getenv("DOCENT_OUTSIDE"); text != "" {
		times = must(strconv.Atoi(text))(t)
	}
	ctx := limited(t, 15*time.Minute)
	dir := outside(t)
	run := func(ctx context.Context, name string, args ...string) error {
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Dir = dir
		if said, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s %v: %w\n%s", name, args, err, said)
		}
		return nil
	}
	check(t, run(ctx, "go", append([]string{"test", "-c", "-o", "orders.test"}, race()...)...))
	program := filepath.Join(dir, "orders.test")
	var row, side []time.Duration
	for range times {
		began := time.Now()
		check(t, run(ctx, program))
		row = append(row, time.Since(began).Round(10*time.Millisecond))
	}
	var mu sync.Mutex
	var group sync.WaitGroup
	for range times {
		group.Go(func() {
			began := time.Now()
			err := run(ctx, program)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			side = append(side, time.Since(began).Round(10*time.Millisecond))
		})
	}
	group.Wait()
	t.Logf("%d in a row took %v each, side by side %v", times, row, side)
}
