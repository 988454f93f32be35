package zkcontainer_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/testcontainers/testcontainers-go"

	"github.com/docent-go/docent/integration/zkcontainer"
)

// withVolume gives the server an anonymous volume, as the official image does.
func withVolume() testcontainers.ContainerCustomizer {
	return testcontainers.WithConfigModifier(func(c *container.Config) { c.Volumes = map[string]struct{}{"/data": {}} })
}

// What fails half-way returns what it has made, and Terminate removes that.
func TestHalfMade(t *testing.T) {
	ctx := limited(t, 3*time.Minute)
	for _, tt := range []struct {
		name string
		opts []testcontainers.ContainerCustomizer
		img  string
		made int
		want string
	}{
		{"no image", nil, "localhost:1/none:none", 1, "localhost:1"}, // the network
		{"dies at once", []testcontainers.ContainerCustomizer{testcontainers.WithEntrypoint("/bin/false")}, image(), 4, "ended with 1"},
		{"too slow", []testcontainers.ContainerCustomizer{testcontainers.WithEntrypoint("/bin/sleep", "1000"), zkcontainer.WithStartLimit(8 * time.Second)}, image(), 7, "WithHost"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, err := zkcontainer.RunEnsemble(ctx, tt.img, 3, append(tt.opts, withVolume(), zkcontainer.WithHost("127.0.0.1"))...)
			if err == nil || e == nil {
				t.Fatalf("the start of %v: %v", e, err)
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
			before := must(zkcontainer.Left(ctx, e))(t)
			if len(before) < tt.made {
				t.Errorf("made: %v, want %d", before, tt.made)
			}
			check(t, e.Terminate(ctx))
			check(t, e.Terminate(ctx))
			if still := must(zkcontainer.Still(ctx, before))(t); len(still) != 0 {
				t.Errorf("left: %v", still)
			}
		})
	}
}

// A start whose context ends at any moment leaves nothing.
func TestCancelled(t *testing.T) {
	var all []*zkcontainer.Ensemble
	for _, after := range []time.Duration{0, 50 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second} {
		e, err := zkcontainer.RunEnsemble(limited(t, after), image(), 2, zkcontainer.WithHost("127.0.0.1"))
		t.Logf("cancelled after %v: %v", after, err)
		check(t, e.Terminate(limited(t, time.Minute)))
		if e != nil {
			all = append(all, e)
		}
	}
	for _, e := range all { // after the others: an engine may make late what it was asked for
		if left := must(zkcontainer.Left(limited(t, time.Minute), e))(t); len(left) != 0 {
			t.Errorf("left: %v", left)
		}
	}
}

// A start whose context ends at any step of any member leaves nothing.
func TestCancelledAtEachStep(t *testing.T) {
	t.Parallel()
	for _, member := range []int32{1, 2} {
		for step, hooks := range map[string]func(f func()) testcontainers.ContainerLifecycleHooks{
			"before the container is made": func(f func()) testcontainers.ContainerLifecycleHooks {
				return testcontainers.ContainerLifecycleHooks{PreCreates: []testcontainers.ContainerRequestHook{
					func(context.Context, testcontainers.ContainerRequest) error { f(); return nil },
				}}
			},
			"made": func(f func()) testcontainers.ContainerLifecycleHooks {
				return testcontainers.ContainerLifecycleHooks{PostCreates: steps(f)}
			},
			"before it starts": func(f func()) testcontainers.ContainerLifecycleHooks {
				return testcontainers.ContainerLifecycleHooks{PreStarts: steps(f)}
			},
			"started": func(f func()) testcontainers.ContainerLifecycleHooks {
				return testcontainers.ContainerLifecycleHooks{PostStarts: steps(f)}
			},
		} {
			ctx, cancel := context.WithCancel(limited(t, time.Minute))
			var reached atomic.Int32
			e, err := zkcontainer.RunEnsemble(ctx, image(), 2, zkcontainer.WithHost("127.0.0.1"), withVolume(),
				testcontainers.WithAdditionalLifecycleHooks(hooks(func() {
					if reached.Add(1) == member {
						cancel()
					}
				})))
			cancel()
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s, container %d: %v", step, member, err)
			}
			check(t, e.Terminate(limited(t, time.Minute)))
			if left := must(zkcontainer.Left(limited(t, time.Minute), e))(t); len(left) != 0 {
				t.Errorf("%s, container %d: left: %v", step, member, left)
			}
		}
	}
}

// steps is f as hooks of testcontainers.
func steps(f func()) []testcontainers.ContainerHook {
	return []testcontainers.ContainerHook{func(context.Context, testcontainers.Container) error { f(); return nil }}
}

// A container of Run is what testcontainers wants of a module.
func TestConventions(t *testing.T) {
	ctx := limited(t, time.Minute)
	c, err := zkcontainer.Run(ctx, image(), zkcontainer.WithHost("127.0.0.1"))
	testcontainers.CleanupContainer(t, c)
	check(t, err)
	if text := must(c.ConnectionString(ctx))(t); text != c.Addr() {
		t.Errorf("%q", text)
	}
	if c.PeerAddr().IsValid() || c.Partition(ctx) == nil {
		t.Error("a server on its own has peers")
	}
	check(t, testcontainers.TerminateContainer(c))
	check(t, testcontainers.TerminateContainer((*zkcontainer.Container)(nil)))
	check(t, (*zkcontainer.Ensemble)(nil).Terminate(ctx))
	for _, tt := range []struct {
		n    int
		opts []testcontainers.ContainerCustomizer
		want string
	}{
		{0, nil, "1 to 9"},
		{10, nil, "1 to 9"},
		{1, []testcontainers.ContainerCustomizer{zkcontainer.WithTickTime(0)}, "tick time"},
		{1, []testcontainers.ContainerCustomizer{zkcontainer.WithProperty("a=b", "c")}, "one line"},
		{1, []testcontainers.ContainerCustomizer{zkcontainer.WithProperty("clientPort", "2182")}, "must stay 2181"},
		{1, []testcontainers.ContainerCustomizer{zkcontainer.WithSystemProperty("a", "b c")}, "one word"},
		{1, []testcontainers.ContainerCustomizer{zkcontainer.WithHeap(1)}, "too small"},
		{1, []testcontainers.ContainerCustomizer{zkcontainer.WithStartLimit(0)}, "not positive"},
		{1, []testcontainers.ContainerCustomizer{zkcontainer.WithHost("")}, "not a name"},
		{1, []testcontainers.ContainerCustomizer{zkcontainer.WithChroot("app")}, "no path"},
		{1, []testcontainers.ContainerCustomizer{zkcontainer.WithChroot("/a/../b")}, "no path"},
		{1, []testcontainers.ContainerCustomizer{testcontainers.WithNoStart()}, "WithNoStart"},
		{1, []testcontainers.ContainerCustomizer{testcontainers.WithReuseByName("x")}, "WithReuseByName"},
	} {
		e, err := zkcontainer.RunEnsemble(ctx, image(), tt.n, tt.opts...)
		check(t, e.Terminate(ctx))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%d servers: %v, want %q", tt.n, err, tt.want)
		}
	}
}

const victim = "ZKCONTAINER_VICTIM"

// TestVictim is what [TestNothingIsLeft] starts in a process of its own.
func TestVictim(t *testing.T) {
	end := os.Getenv(victim)
	if end == "" {
		return
	}
	ctx := limited(t, 2*time.Minute)
	e := zkcontainer.StartEnsemble(t, image(), 2, zkcontainer.WithHost("127.0.0.1"), withVolume())
	for _, name := range must(zkcontainer.Left(ctx, e))(t) {
		fmt.Println("made", name)
	}
	fmt.Println("end")
	switch end {
	case "failure":
		t.Fatal("a failure that was asked for")
	case "panic":
		panic("a panic that was asked for")
	case "signal":
		<-ctx.Done()
	}
}

// Nothing is left after each end of a test.
func TestNothingIsLeft(t *testing.T) {
	ctx := limited(t, 8*time.Minute)
	for _, end := range []string{"success", "failure", "panic", "signal"} {
		t.Run(end, func(t *testing.T) {
			cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestVictim$", "-test.v")
			cmd.Env = append(os.Environ(), victim+"="+end, "TESTCONTAINERS_RYUK_DISABLED=true")
			out := must(cmd.StdoutPipe())(t)
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
				if line == "end" && end == "signal" {
					check(t, cmd.Process.Signal(os.Interrupt))
				}
			}
			err := cmd.Wait()
			if (err == nil) != (end == "success") {
				t.Errorf("ended with %v:\n%s%s", err, &said, &complained)
			}
			if end == "signal" && !interrupted(err) {
				t.Errorf("ended with %v and not by the signal", err)
			}
			if len(made) != 5 { // two containers with their volumes, and the network
				t.Fatalf("made: %v:\n%s%s", made, &said, &complained)
			}
			if still := must(zkcontainer.Still(context.WithoutCancel(ctx), made))(t); len(still) != 0 {
				t.Errorf("left: %v", still)
			}
		})
	}
}

// interrupted reports whether a process ended by an interrupt.
func interrupted(err error) bool {
	var ended *exec.ExitError
	if !errors.As(err, &ended) {
		return false
	}
	status, ok := ended.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGINT
}
