package zkcontainer_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/integration/zkcontainer"
)

// The engine takes whole seconds, and one less would be less than was asked for: none is a kill.
func TestStopRoundsUp(t *testing.T) {
	t.Parallel()
	e, made := fakes(t, &fakeEngine{}, fakeServer{})
	var want []time.Duration
	for _, tt := range [][2]time.Duration{
		{0, 0},
		{time.Millisecond, time.Second},
		{1500 * time.Millisecond, 2 * time.Second},
		{time.Second, time.Second},
		{-time.Millisecond, -time.Second},
		{-time.Second, -time.Second},
	} {
		check(t, e.Member(1).Stop(t.Context(), &tt[0]))
		want = append(want, tt[1])
	}
	if !slices.Equal(made[0].stopped, want) {
		t.Errorf("stopped with %v, want %v", made[0].stopped, want)
	}
}

// A pause that the engine gives up, as on a busy machine, is asked for again, within the context.
func TestPauseOnABusyMachine(t *testing.T) {
	t.Parallel()
	engine := &fakeEngine{busy: 3}
	e, _ := fakes(t, engine, fakeServer{})
	check(t, e.Member(1).Pause(t.Context()))
	engine.busy = 1000
	if err := e.Member(1).Pause(t.Context()); err == nil || !strings.Contains(err.Error(), "unable to freeze") {
		t.Errorf("a machine that stays busy: %v", err)
	}
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := e.Member(1).Pause(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a short context: %v", err)
	}
}

// A partition and its end may be repeated when the engine's answer was lost.
func TestPartitionAnswerLost(t *testing.T) {
	t.Parallel()
	engine := &fakeEngine{connected: true, lost: map[string]bool{"disconnect": true, "connect": true}}
	e, _ := fakes(t, engine, fakeServer{}, fakeServer{})
	c := e.Member(1)
	if err := c.Partition(t.Context()); !errors.Is(err, errLost) {
		t.Fatal(err)
	}
	check(t, c.Partition(t.Context()))
	if err := c.Heal(t.Context()); !errors.Is(err, errLost) {
		t.Errorf("the server stays cut off: %v", err)
	}
	check(t, c.Heal(t.Context()))
	if !engine.connected {
		t.Error("the server is cut off")
	}
}

// A server that was held back, and whose preparation failed, can be started.
func TestStartAfterHeld(t *testing.T) {
	t.Parallel()
	e, made := fakes(t, &fakeEngine{}, fakeServer{mode: "standalone"})
	const hold = "/zkcontainer/hold"
	failed := errors.New("a failure that was asked for")
	err := e.Member(1).StartHeld(t.Context(), func(context.Context) error {
		if made[0].file(hold) == "" {
			t.Error("the server is not held back")
		}
		return failed
	})
	if !errors.Is(err, failed) || made[0].file(hold) == "" {
		t.Errorf("%v; %q", err, made[0].file(hold))
	}
	check(t, e.Member(1).Start(t.Context()))
	if held := made[0].file(hold); held != "" {
		t.Errorf("the server is held back for ever: %q", held)
	}
}

// A server that ends while it starts, or is no more, is not waited for.
func TestStartOfOneThatEnds(t *testing.T) {
	t.Parallel()
	ctx := limited(t, 20*time.Second)
	e, made := fakes(t, &fakeEngine{}, fakeServer{})
	made[0].ended = true
	wants(t, e.Member(1).Start(ctx), "ended with 3")
	made[0].removed = true
	wants(t, e.Member(1).Start(ctx), "no such container")
	check(t, ctx.Err())
}

// Without a role any answer will do.
func TestAwaitAnyRole(t *testing.T) {
	t.Parallel()
	e, _ := fakes(t, &fakeEngine{}, fakeServer{mode: "observer"})
	if role := must(e.Member(1).AwaitRole(limited(t, 20*time.Second)))(t); role != zkcontainer.Observer {
		t.Error(role)
	}
}

// After Terminate nothing is waited for.
func TestAfterTerminate(t *testing.T) {
	t.Parallel()
	ctx := limited(t, 20*time.Second)
	e, _ := fakes(t, &fakeEngine{}, fakeServer{}, fakeServer{mode: "leader"})
	c, other := e.Member(1), e.Member(2)
	check(t, c.Terminate(ctx))
	if leader := must(e.Leader(ctx))(t); leader != other {
		t.Errorf("server %d leads", leader.ID())
	}
	calls := func(c *zkcontainer.Container) map[string]func() error {
		return map[string]func() error{
			"AwaitServing":  func() error { _, err := e.AwaitServing(ctx); return err },
			"AwaitRole":     func() error { _, err := c.AwaitRole(ctx, zkcontainer.Leader); return err },
			"Start":         func() error { return c.Start(ctx) },
			"Kill":          func() error { return c.Kill(ctx) },
			"Restart":       func() error { return c.Restart(ctx) },
			"Heal":          func() error { return c.Heal(ctx) },
			"ExpireSession": func() error { return c.ExpireSession(ctx, 1, nil) },
		}
	}
	for name, f := range calls(c) {
		t.Log(name)
		wants(t, f(), "terminated")
	}
	check(t, e.Terminate(ctx))
	check(t, e.Terminate(ctx))
	for name, f := range calls(other) {
		t.Log(name)
		wants(t, f(), "terminated")
	}
	_, err := e.Leader(ctx)
	wants(t, err, "terminated")
	wants(t, e.ExpireSession(ctx, 1, nil), "terminated")
	check(t, ctx.Err())
}

// Terminate does not wait for a start that waits for a server, or for a caller's preparation.
func TestTerminateEndsAChange(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*zkcontainer.Container, func()) error{
		"a start": func(c *zkcontainer.Container, begun func()) error {
			begun()
			return c.Start(t.Context())
		},
		"a kill": func(c *zkcontainer.Container, begun func()) error {
			begun()
			return c.Kill(t.Context())
		},
		"a preparation": func(c *zkcontainer.Container, begun func()) error {
			return c.StartHeld(t.Context(), func(ctx context.Context) error {
				begun()
				<-ctx.Done()
				return context.Cause(ctx)
			})
		},
	} {
		e, _ := fakes(t, &fakeEngine{}, fakeServer{})
		begun, ended := make(chan struct{}), make(chan error, 1)
		go func() { ended <- change(e.Member(1), func() { close(begun) }) }()
		<-begun
		check(t, e.Terminate(limited(t, 20*time.Second)))
		select {
		case err := <-ended:
			wants(t, err, "terminated")
		case <-limited(t, 20*time.Second).Done():
			t.Errorf("%s goes on", name)
		}
	}
}

// The end of its context ends a change that waits for another one, also for one that it is in.
func TestChangeInAChange(t *testing.T) {
	t.Parallel()
	e, _ := fakes(t, &fakeEngine{}, fakeServer{})
	c := e.Member(1)
	err := c.StartHeld(t.Context(), func(context.Context) error { return c.Kill(limited(t, 50*time.Millisecond)) })
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

// Each network takes a range of addresses, and those that killed processes left have them still.
func TestNoRangeLeft(t *testing.T) {
	t.Parallel()
	for _, said := range []string{ // of Docker 20 and 28
		"could not find an available, non-overlapping IPv4 address pool among the defaults",
		"all predefined address pools have been fully subnetted",
	} {
		engine := &fakeEngine{noRange: errors.New(said)}
		e, _ := fakes(t, engine, fakeServer{}, fakeServer{})
		wants(t, zkcontainer.Network(t.Context(), e), "docker network prune")
		if engine.asked != 1 {
			t.Errorf("the engine was asked %d times", engine.asked)
		}
	}
}
