//go:build unix

package zkcontainer_test

import (
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/docent-go/docent/integration/zkcontainer"
)

const survivor = "ZKCONTAINER_SURVIVOR"

// TestSurvivor is what [TestSignalHandledElsewhere] starts in a process of its own.
func TestSurvivor(t *testing.T) {
	if os.Getenv(survivor) != "handles" {
		return
	}
	got := make(chan os.Signal, 10)
	signal.Notify(got, syscall.SIGTERM)
	for range 2 {
		_, end := zkcontainer.Guarded(t.Context())
		check(t, syscall.Kill(os.Getpid(), syscall.SIGTERM))
		<-got
		<-got // the same again, for who has no handler of its own
		end()
	}
	_, end := zkcontainer.Guarded(t.Context())
	end()
}

// A process that handles the signal itself goes on, and so do its starts and their ends.
func TestSignalHandledElsewhere(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(limited(t, 30*time.Second), os.Args[0], "-test.run=^TestSurvivor$", "-test.v")
	cmd.Env = append(os.Environ(), survivor+"=handles")
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, said)
	}
}

// TestBackground is what [TestSignalIgnored] starts in a process of its own.
func TestBackground(t *testing.T) {
	if os.Getenv(survivor) != "ignores" {
		return
	}
	start, end := zkcontainer.Guarded(t.Context())
	defer end()
	check(t, syscall.Kill(os.Getpid(), syscall.SIGINT))
	select {
	case <-start.Done():
		t.Error("the servers are gone, and the process goes on")
	case <-time.After(500 * time.Millisecond):
	}
}

// A process that was started to ignore interrupts, as a shell's script starts what runs in the
// background, keeps its servers through one.
func TestSignalIgnored(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(limited(t, 30*time.Second), "sh", "-c", `trap "" INT; exec "$0" "$@"`, os.Args[0], "-test.run=^TestBackground$", "-test.v")
	cmd.Env = append(os.Environ(), survivor+"=ignores")
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, said)
	}
}
