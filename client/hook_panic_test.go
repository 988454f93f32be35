package client_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/docent-go/docent/client"
)

// panicking is set in the process that TestPanicOfAHook starts.
const panicking = "DOCENT_TEST_PANICKING_HOOK"

// A hook that panics on a goroutine of the client ends the process, and what the
// process says last is the hook's panic.
func TestPanicOfAHook(t *testing.T) {
	t.Parallel()
	if os.Getenv(panicking) != "" {
		bubble(t, func(r *rig) {
			r.Connect("a", client.WithObserver(client.Observer{Dial: func(client.DialInfo) { panic("the hook's own words") }}))
			<-r.Ctx.Done()
		})
		return
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestPanicOfAHook$")
	child.Env = append(os.Environ(), panicking+"=1")
	out, err := child.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "panic: the hook's own words") || strings.Contains(string(out), "mutex") {
		t.Errorf("%v:\n%s", err, out)
	}
}
