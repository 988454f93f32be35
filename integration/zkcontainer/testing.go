package zkcontainer

import (
	"context"
	"testing"

	"github.com/testcontainers/testcontainers-go"
)

// logLines is how much of each server's log a failed test prints.
const logLines = 100

// Start is [Run] for a test. It ends the test when the server cannot start, prints the end of
// the server's log when the test has failed, and removes everything when the test ends.
// It also removes everything when the process gets an interrupt (Ctrl-C) or a SIGTERM, which
// then has its usual effect. A program that handles these signals itself gets them twice. To
// test that with servers that stay, use [Run], which leaves signals alone.
func Start(t testing.TB, img string, opts ...testcontainers.ContainerCustomizer) *Container {
	t.Helper()
	return StartEnsemble(t, img, 1, opts...).members[0]
}

// StartEnsemble is [RunEnsemble] for a test, as [Start] is [Run].
func StartEnsemble(t testing.TB, img string, n int, opts ...testcontainers.ContainerCustomizer) *Ensemble {
	t.Helper()
	ctx, forget := guarded(t.Context())
	e, err := RunEnsemble(ctx, img, n, opts...)
	forget.made(e)
	t.Cleanup(func() {
		defer forget.done()
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupLimit)
		defer cancel()
		if t.Failed() && e != nil {
			e.printLogs(bounded, t)
		}
		if err := e.Terminate(bounded); err != nil {
			t.Errorf("clean up: %v", err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func (e *Ensemble) printLogs(ctx context.Context, t testing.TB) {
	t.Helper()
	for _, c := range e.members {
		if c.Container == nil {
			continue
		}
		lines, err := c.LastLogs(ctx, logLines)
		if err != nil {
			t.Log(err)
			continue
		}
		t.Logf("log of server %d at %s, last %d lines:\n%s", c.id, c.Addr(), logLines, lines)
	}
}
