package client_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/zktest"
)

// sessionTimeout is what clients of these tests ask for.
const sessionTimeout = 10 * time.Second

// rig is a server in a bubble of virtual time. Its context ends long after
// everything that a test may wait for.
type rig struct {
	*testing.T
	srv *zktest.Server
	ctx context.Context
}

// bubble runs f with a server of its own.
func bubble(t *testing.T, f func(*rig), opts ...zktest.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		opts = append([]zktest.Option{
			zktest.WithTick(time.Second),
			zktest.WithSessionTimeouts(time.Second, 2*time.Minute),
			zktest.WithLatency(50*time.Microsecond, time.Millisecond),
		}, opts...)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		f(&rig{T: t, srv: zktest.NewServer(t, opts...), ctx: ctx})
	})
}

// open connects through the link of that name.
func (r *rig) open(connectString, name string, opts ...client.Option) (*client.Client, error) {
	opts = append([]client.Option{
		client.WithSessionTimeout(sessionTimeout),
		client.WithDialer(r.srv.Client(name).DialContext),
		quiet(),
	}, opts...)
	c, err := client.Connect(r.ctx, connectString, opts...)
	if err == nil {
		r.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), time.Minute)
			defer cancel()
			_ = c.CloseContext(ctx) // the test looks at what matters to it
		})
	}
	return c, err
}

// quiet keeps a client from logging.
func quiet() client.Option { return client.WithLogger(slog.New(slog.DiscardHandler)) }

// connect is open for a client that must come up.
func (r *rig) connect(name string, opts ...client.Option) *client.Client {
	r.Helper()
	c, err := r.open("zk:2181", name, opts...)
	r.check(err)
	return c
}

func (r *rig) check(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// within is the rig's context with an end of its own.
func (r *rig) within(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(r.ctx, d)
	r.Cleanup(cancel)
	return ctx
}

// with is the rig with another context.
func (r *rig) with(ctx context.Context) *rig { return &rig{T: r.T, srv: r.srv, ctx: ctx} }

// session is the present session of c.
func (r *rig) session(c *client.Client) *client.Session {
	r.Helper()
	s, err := c.Session(r.ctx)
	r.check(err)
	return s
}

// create makes a node as another client would.
func (r *rig) create(path, data string) {
	r.Helper()
	r.check(r.srv.Create(path, []byte(data)))
}

// await waits for done within the test.
func (r *rig) await(what string, done <-chan struct{}) {
	r.Helper()
	select {
	case <-done:
	case <-r.ctx.Done():
		r.Fatalf("%s: never", what)
	}
}

func wantErr(t *testing.T, err error, targets ...error) {
	t.Helper()
	for _, target := range targets {
		if !errors.Is(err, target) {
			t.Errorf("error %v does not match %v", err, target)
		}
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
