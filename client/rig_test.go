package client_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/zktest"
)

// rig is a server in a bubble of virtual time, with what tests of this package need besides.
type rig struct{ *testrig.Rig }

// bubble runs f with a server that grants sessions of all lengths that tests ask for.
func bubble(t *testing.T, f func(*rig), opts ...zktest.Option) {
	t.Helper()
	opts = append([]zktest.Option{zktest.WithSessionTimeouts(time.Second, 2*time.Minute)}, opts...)
	testrig.Bubble(t, func(r *testrig.Rig) { f(&rig{r}) }, opts...)
}

// create makes a node as another client would.
func (r *rig) create(path, data string) {
	r.Helper()
	r.Check(r.Srv.Create(path, []byte(data)))
}

// await waits for done within the test.
func (r *rig) await(what string, done <-chan struct{}) {
	r.Helper()
	select {
	case <-done:
	case <-r.Ctx.Done():
		r.Fatalf("%s: never", what)
	}
}

// wantOutcome checks what err says about its fate.
func wantOutcome(t *testing.T, err error, want client.Outcome) {
	t.Helper()
	if got, is := outcome(err); !is || got != want {
		t.Errorf("error %v: %q, want %q", err, got, want)
	}
	if client.UnknownOutcome(err) != (want == client.OutcomeUnknown) || client.UnknownOutcome(err) && client.SafeToRetry(err) {
		t.Errorf("error %v: unknown %v, safe to retry %v", err, client.UnknownOutcome(err), client.SafeToRetry(err))
	}
}

// neverSent reports whether err says that nothing reached a server.
func neverSent(err error) bool {
	got, is := outcome(err)
	return is && got == client.OutcomeNeverSent
}

func outcome(err error) (client.Outcome, bool) {
	var op *client.OpError
	if !errors.As(err, &op) {
		return 0, false
	}
	return op.Outcome, true
}

// wantErrText checks that err says one thing and not another.
func wantErrText(t *testing.T, err error, has, lacks string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), has) || strings.Contains(err.Error(), lacks) {
		t.Errorf("error %q: want %q and not %q", err, has, lacks)
	}
}
