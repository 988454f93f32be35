// Package testrig is what tests of clients and recipes begin with: a server in a bubble of
// virtual time, clients of it, and checks of what is left.
package testrig

import (
	"context"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/zktest"
)

// SessionTimeout is what clients ask for, if a test does not say otherwise.
const SessionTimeout = 10 * time.Second

// Rig is a server in a bubble of virtual time.
type Rig struct {
	*testing.T
	Srv *zktest.Server
	Ctx context.Context // ends long after everything that a test may wait for
}

// Bubble runs f with a server of its own.
func Bubble(t *testing.T, f func(*Rig), opts ...zktest.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		f(&Rig{T: t, Ctx: ctx, Srv: Server(t, opts...)})
	})
}

// Server starts a server as that of a rig: no two frames arrive at one instant.
func Server(t testing.TB, opts ...zktest.Option) *zktest.Server {
	t.Helper()
	return zktest.NewServer(t, usual(opts)...)
}

// Ensemble runs f in a bubble with three servers, whose latencies are those of a rig.
func Ensemble(t *testing.T, f func(context.Context, *testing.T, *zktest.Ensemble), opts ...zktest.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		f(ctx, t, zktest.NewEnsemble(t, 3, usual(opts)...))
	})
}

func usual(opts []zktest.Option) []zktest.Option {
	return append([]zktest.Option{zktest.WithTick(time.Second), zktest.WithLatency(50*time.Microsecond, time.Millisecond)}, opts...)
}

// On is the rig with another server.
func (r *Rig) On(srv *zktest.Server) *Rig { return &Rig{T: r.T, Srv: srv, Ctx: r.Ctx} }

// With is the rig with another context.
func (r *Rig) With(ctx context.Context) *Rig { return &Rig{T: r.T, Srv: r.Srv, Ctx: ctx} }

// Connect returns a client that dials through the link of that name.
func (r *Rig) Connect(name string, opts ...client.Option) *client.Client {
	r.Helper()
	return Connect(r.Ctx, r.T, "zk:2181", r.Srv.Client(name).DialContext, opts...)
}

// Movable returns a client that dials through the link of that name, and a function that
// lets it dial to another server from then on, as after a restore from a backup.
func (r *Rig) Movable(name string) (c *client.Client, move func(*zktest.Server)) {
	r.Helper()
	var on atomic.Pointer[zktest.Server]
	on.Store(r.Srv)
	return Connect(r.Ctx, r.T, "zk:2181", func(ctx context.Context, network, address string) (net.Conn, error) {
		return on.Load().Client(name).DialContext(ctx, network, address)
	}), on.Store
}

type dialer = func(ctx context.Context, network, address string) (net.Conn, error)

// Connect returns a client that says nothing and is closed when the test ends. It fails the
// test if there is none.
func Connect(ctx context.Context, t testing.TB, servers string, dial dialer, opts ...client.Option) *client.Client {
	t.Helper()
	c, err := open(ctx, t, servers, dial, opts)
	Check(t, err)
	return c
}

// Open is [Rig.Connect] with a connect string, for a client that need not come up.
func (r *Rig) Open(servers, name string, opts ...client.Option) (*client.Client, error) {
	return open(r.Ctx, r.T, servers, r.Srv.Client(name).DialContext, opts)
}

func open(ctx context.Context, t testing.TB, servers string, dial dialer, opts []client.Option) (*client.Client, error) {
	c, err := client.Connect(ctx, servers, append([]client.Option{
		client.WithSessionTimeout(SessionTimeout), client.WithDialer(dial), Quiet(),
	}, opts...)...)
	if err == nil {
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
			defer cancel()
			_ = c.CloseContext(ctx) // the test looks at what matters to it
		})
	}
	return c, err
}

// Quiet keeps a client from logging.
func Quiet() client.Option { return client.WithLogger(slog.New(slog.DiscardHandler)) }

// Within is the rig's context with an end of its own.
func (r *Rig) Within(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(r.Ctx, d)
	r.Cleanup(cancel)
	return ctx
}

// Session is the present session of c.
func (r *Rig) Session(c *client.Client) *client.Session {
	r.Helper()
	s, err := c.Session(r.Ctx)
	r.Check(err)
	return s
}

// SessionID is the id of the present session of c.
func (r *Rig) SessionID(c *client.Client) int64 {
	r.Helper()
	return r.Session(c).ID()
}

// Check ends the test if there is an error.
func Check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Check ends the test if there is an error.
func (r *Rig) Check(err error) {
	r.Helper()
	Check(r.T, err)
}
