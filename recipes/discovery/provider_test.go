package discovery_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/discovery"
	"github.com/docent-go/docent/zktest"
)

// market is the service of a test, with a client that registers and one that looks.
type market struct {
	*testrig.Rig
	d      *discovery.ServiceDiscovery // of the client that looks
	writer *client.Client
	w      *discovery.ServiceDiscovery
}

func inMarket(t *testing.T, f func(*market), opts ...zktest.Option) {
	t.Helper()
	testrig.Bubble(t, func(r *testrig.Rig) {
		m := &market{Rig: r, writer: r.Connect("writer")}
		var err error
		m.d, err = discovery.New(r.Connect("reader"), "/services", discovery.CuratorMap())
		r.Check(err)
		m.w, err = discovery.New(m.writer, "/services", discovery.CuratorMap())
		r.Check(err)
		f(m)
	}, opts...)
}

// register registers the instance with that ID, whose address is the ID too.
func (m *market) register(id, zone string) *discovery.Registration {
	m.Helper()
	r, err := m.w.Register(m.Ctx, discovery.ServiceInstance{Service: "orders", ID: id, Address: id, Port: 80, Zone: zone})
	m.Check(err)
	m.Cleanup(func() { _ = r.Close() })
	return r
}

func (m *market) provider(opts ...discovery.ProviderOption) *discovery.ServiceProvider {
	m.Helper()
	p, err := m.d.Provider("orders", opts...)
	m.Check(err)
	m.Cleanup(p.Close)
	m.Check(p.Start(m.Ctx))
	return p
}

// see waits until the provider has everything that was written.
func (m *market) see(p *discovery.ServiceProvider) {
	m.Helper()
	_, err := p.Cache().Wait(m.Ctx, m.Srv.Zxid())
	m.Check(err)
}

// pick picks, and says how the call has ended.
func (m *market) pick(p *discovery.ServiceProvider, ended error, except ...string) string {
	m.Helper()
	call, err := p.Pick(m.Ctx, except...)
	m.Check(err)
	call.Done(ended)
	return call.Instance.ID
}

func (m *market) picks(p *discovery.ServiceProvider, n int) string {
	m.Helper()
	var all []string
	for range n {
		all = append(all, m.pick(p, nil))
	}
	return strings.Join(all, "")
}

var errBroken = errors.New("broken")

// Instances come one after the other; those that go, come and are disabled do so at the next
// pick after the directory knows.
func TestProviderFollows(t *testing.T) {
	t.Parallel()
	inMarket(t, func(m *market) {
		a := m.register("a", "")
		m.register("b", "")
		p := m.provider()
		if got := m.picks(p, 4); got != "abab" && got != "baba" {
			t.Errorf("picked %s, want a and b in turn", got)
		}
		m.register("c", "")
		m.see(p)
		if got := m.picks(p, 6); strings.Count(got, "c") != 2 {
			t.Errorf("picked %s, want c twice", got)
		}
		m.Check(a.Disable(m.Ctx))
		m.see(p)
		if got := m.picks(p, 6); strings.Contains(got, "a") {
			t.Errorf("picked %s; a is disabled", got)
		}
		m.Check(a.Enable(m.Ctx))
		m.see(p)
		if got := m.picks(p, 6); strings.Count(got, "a") != 2 {
			t.Errorf("picked %s, want a twice", got)
		}
		m.Check(a.Close())
		m.see(p)
		if got := m.picks(p, 6); strings.Contains(got, "a") {
			t.Errorf("picked %s; a is gone", got)
		}
	})
}

// An instance is set aside after two failures in a row, one call tries it after 30 s, and it is
// set aside for a minute if that fails.
func TestProviderSetsAside(t *testing.T) {
	t.Parallel()
	inMarket(t, func(m *market) {
		for _, id := range []string{"a", "b", "c"} {
			m.register(id, "")
		}
		p := m.provider()
		rest := []string{"b", "c"} // leaves a
		for range 3 {
			call, err := p.Pick(m.Ctx, rest...)
			m.Check(err)
			call.Done(nil)
			call.Done(errBroken) // the first counts
		}
		if got := m.picks(p, 6); strings.Count(got, "a") != 2 {
			t.Fatalf("picked %s: no call has failed", got)
		}
		m.pick(p, errBroken, rest...)
		m.pick(p, nil, rest...)
		m.pick(p, errBroken, rest...)
		if got := m.picks(p, 6); strings.Count(got, "a") != 2 {
			t.Fatalf("picked %s: no two failures came in a row", got)
		}
		m.pick(p, errBroken, rest...)
		m.pick(p, context.DeadlineExceeded, rest...)
		wantAside := func(d time.Duration) {
			t.Helper()
			if got := m.picks(p, 6); strings.Contains(got, "a") {
				t.Errorf("picked %s; a is set aside", got)
			}
			time.Sleep(d - time.Millisecond)
			if got := m.picks(p, 6); strings.Contains(got, "a") {
				t.Errorf("picked %s; a is set aside", got)
			}
			time.Sleep(time.Millisecond)
		}
		wantAside(30 * time.Second)
		try, err := p.Pick(m.Ctx, rest...)
		m.Check(err)
		if got := m.picks(p, 6); strings.Contains(got, "a") {
			t.Errorf("picked %s while a call tries a", got)
		}
		try.Done(errBroken)
		wantAside(time.Minute)
		// A caller that gives up says nothing.
		m.pick(p, fmt.Errorf("caller: %w", context.Canceled), rest...)
		m.pick(p, nil, rest...)
		if got := m.picks(p, 6); strings.Count(got, "a") != 2 {
			t.Errorf("picked %s; a is well", got)
		}
	})
}

// An instance that registers anew is not held to what it did before.
func TestProviderForgets(t *testing.T) {
	t.Parallel()
	inMarket(t, func(m *market) {
		a := m.register("a", "")
		m.register("b", "")
		m.register("c", "")
		p := m.provider()
		m.pick(p, errBroken, "b", "c")
		late, err := p.Pick(m.Ctx, "b", "c")
		m.Check(err)
		m.pick(p, errBroken, "b", "c")
		m.Check(a.Close())
		time.Sleep(time.Second)
		m.register("a", "")
		m.see(p)
		late.Done(errBroken) // of the process before
		m.pick(p, errBroken, "b", "c")
		if got := m.picks(p, 6); strings.Count(got, "a") != 2 {
			t.Errorf("picked %s, want a twice", got)
		}
	})
}

func TestProviderZone(t *testing.T) {
	t.Parallel()
	inMarket(t, func(m *market) {
		a := m.register("a", "here")
		m.register("b", "there")
		m.register("c", "there")
		p := m.provider(discovery.WithZone("here"), discovery.WithStrategy(discovery.LeastLoaded))
		if got := m.picks(p, 5); got != "aaaaa" {
			t.Errorf("picked %s, want the own zone", got)
		}
		m.pick(p, errBroken)
		m.pick(p, errBroken)
		if got := m.picks(p, 20); strings.Contains(got, "a") {
			t.Errorf("picked %s; a is set aside", got)
		}
		time.Sleep(30 * time.Second)
		if got := m.picks(p, 5); got != "aaaaa" {
			t.Errorf("picked %s, want the own zone again", got)
		}
		m.Check(a.Close())
		m.see(p)
		if got := m.picks(p, 20); !strings.Contains(got, "b") || !strings.Contains(got, "c") {
			t.Errorf("picked %s, want the other zone", got)
		}
	})
}

func TestProviderSticky(t *testing.T) {
	t.Parallel()
	inMarket(t, func(m *market) {
		for _, id := range []string{"a", "b", "c"} {
			m.register(id, "")
		}
		p := m.provider(discovery.WithSticky(), discovery.WithStrategy(discovery.Random))
		first := m.pick(p, nil)
		if got := m.picks(p, 20); got != strings.Repeat(first, 20) {
			t.Errorf("picked %s after %s", got, first)
		}
		m.pick(p, errBroken)
		m.pick(p, errBroken)
		second := m.pick(p, nil)
		if got := m.picks(p, 20); second == first || got != strings.Repeat(second, 20) {
			t.Errorf("picked %s after %s has failed", got, first)
		}
	})
}

// If more than the half is set aside, nothing is.
func TestProviderPanics(t *testing.T) {
	t.Parallel()
	inMarket(t, func(m *market) {
		ids := []string{"a", "b", "c"}
		for _, id := range ids {
			m.register(id, "")
		}
		fail := func(p *discovery.ServiceProvider, id string) {
			others := slices.DeleteFunc(slices.Clone(ids), func(o string) bool { return o == id })
			m.pick(p, errBroken, others...)
			m.pick(p, errBroken, others...)
		}
		p, never := m.provider(), m.provider(discovery.WithPanicThreshold(1))
		for i, id := range ids {
			fail(never, id)
			if i < 2 {
				fail(p, id)
			}
		}
		got := ""
		for range 3 {
			got += m.pick(p, context.Canceled)
		}
		if strings.Count(got, "a") != 1 || strings.Count(got, "b") != 1 {
			t.Errorf("picked %s, want all", got)
		}
		_, err := never.Pick(m.Ctx)
		testrig.WantErr(t, err, discovery.ErrNoInstance)
		testrig.WantErrText(t, err, "orders", "/services", "3 set aside")
	})
}

// Before Start, and after one that has failed, Pick says what is missing. While Start waits, so does Pick.
func TestProviderNotStarted(t *testing.T) {
	t.Parallel()
	inMarket(t, func(m *market) {
		m.register("a", "")
		p, err := m.d.Provider("orders")
		m.Check(err)
		m.Cleanup(p.Close)
		_, err = p.Pick(m.Ctx)
		testrig.WantErrText(t, err, "discovery: the directory is not started; call Start")
		m.Srv.Client("reader").Partition()
		testrig.WantErr(t, p.Start(m.Within(time.Second)), context.DeadlineExceeded)
		_, err = p.Pick(m.Ctx)
		testrig.WantErrText(t, err, "call Start")
		started := make(chan error, 1)
		go func() { started <- p.Start(m.Ctx) }()
		synctest.Wait()
		testrig.WantErrText(t, p.Start(m.Ctx), "started already")
		_, err = p.Pick(m.Within(time.Second))
		testrig.WantErr(t, err, context.DeadlineExceeded)
		m.Srv.Client("reader").Heal()
		m.Check(<-started)
		call, err := p.Pick(m.Ctx)
		m.Check(err)
		call.Done(nil)
	})
}

// The error says what there is instead of an instance, and whether the directory is stale.
func TestProviderWithoutInstances(t *testing.T) {
	t.Parallel()
	inMarket(t, func(m *market) {
		p := m.provider(discovery.WithFilter(func(i *discovery.ServiceInstance) bool { return i.ID != "f" }))
		_, err := p.Pick(m.Ctx)
		testrig.WantErr(t, err, discovery.ErrNoInstance)
		testrig.WantErrText(t, err, "no instance of orders below /services: none is registered")
		m.register("f", "")
		m.Check(m.register("d", "").Disable(m.Ctx))
		_, err = m.writer.Create(m.Ctx, "/services/orders/bad", []byte("{"))
		m.Check(err)
		m.see(p)
		_, err = p.Pick(m.Ctx)
		var none *discovery.NoInstanceError
		if !errors.As(err, &none) || none.Filtered != 1 || none.Disabled != 1 || none.Skipped != 1 || none.Stale {
			t.Errorf("got %#v, want one filtered, one disabled, one skipped, not stale", none)
		}
		m.register("a", "")
		m.see(p)
		if got := m.pick(p, nil); got != "a" {
			t.Errorf("picked %s", got)
		}
		_, err = p.Pick(m.Ctx, "a")
		testrig.WantErrText(t, err, "1 excepted")
		m.Srv.Client("reader").Partition()
		time.Sleep(time.Minute)
		_, err = p.Pick(m.Ctx, "a")
		testrig.WantErr(t, err, discovery.ErrNoInstance)
		testrig.WantErrText(t, err, "the directory is stale")
		if got := m.pick(p, nil); got != "a" {
			t.Errorf("picked %s while ZooKeeper is away", got)
		}
	})
}

func TestProviderLastKnown(t *testing.T) {
	t.Parallel()
	inMarket(t, func(m *market) {
		a := m.register("a", "")
		honest, keeps := m.provider(), m.provider(discovery.WithLastKnown(time.Minute))
		m.pick(honest, nil)
		m.pick(keeps, nil)
		m.Check(a.Close())
		m.see(honest)
		m.see(keeps)
		_, err := honest.Pick(m.Ctx)
		testrig.WantErr(t, err, discovery.ErrNoInstance)
		if got := m.pick(keeps, nil); got != "a" {
			t.Errorf("picked %s", got)
		}
		time.Sleep(time.Minute)
		_, err = keeps.Pick(m.Ctx)
		testrig.WantErr(t, err, discovery.ErrNoInstance)
	})
}

// Pick waits for the first list, for as long as its context lasts; Close ends it.
func TestProviderWaits(t *testing.T) {
	t.Parallel()
	inMarket(t, func(m *market) {
		m.register("a", "")
		m.Srv.Client("reader").Partition()
		p, err := m.d.Provider("orders", discovery.WithCache(discovery.WithLazyStart()))
		m.Check(err)
		m.Check(p.Start(m.Ctx))
		short, cancel := context.WithTimeout(m.Ctx, time.Second)
		defer cancel()
		_, err = p.Pick(short)
		testrig.WantErr(t, err, context.DeadlineExceeded)
		got := make(chan error, 1)
		go func() {
			call, err := p.Pick(m.Ctx)
			if err == nil && call.Instance.ID != "a" {
				err = errors.New("picked " + call.Instance.ID)
			}
			got <- err
		}()
		synctest.Wait()
		m.Srv.Client("reader").Heal()
		m.Check(<-got)
		call, err := p.Pick(m.Ctx)
		m.Check(err)
		p.Close()
		call.Done(nil)
		_, err = p.Pick(m.Ctx)
		testrig.WantErr(t, err, discovery.ErrClosed)
		p.Close()
	})
}

// Any number of goroutines pick while instances come and go.
func TestProviderConcurrently(t *testing.T) {
	t.Parallel()
	inMarket(t, func(m *market) {
		m.register("a", "")
		p := m.provider(discovery.WithStrategy(discovery.LeastLoaded))
		stop := make(chan struct{})
		var group sync.WaitGroup
		for i := range 4 {
			group.Go(func() {
				for n := 0; ; n++ {
					select {
					case <-stop:
						return
					case <-time.After(time.Millisecond):
					}
					call, err := p.Pick(m.Ctx)
					if err != nil {
						t.Error(err)
						return
					}
					var ended error
					if n%5 == i {
						ended = errBroken
					}
					call.Done(ended)
					call.Done(nil) // the first counts
				}
			})
		}
		for range 20 {
			m.Check(m.register("b", "").Close())
		}
		close(stop)
		group.Wait()
	})
}

func TestProviderOptions(t *testing.T) {
	t.Parallel()
	inMarket(t, func(m *market) {
		for text, opt := range map[string]discovery.ProviderOption{
			"unknown strategy":   discovery.WithStrategy(9),
			"panic threshold":    discovery.WithPanicThreshold(2),
			"DownInstancePolicy": discovery.WithDownInstancePolicy(discovery.DownInstancePolicy{Errors: 1}),
			"last known":         discovery.WithLastKnown(-1),
			"WithFilter":         discovery.WithFilter(nil),
		} {
			_, err := m.d.Provider("orders", opt)
			testrig.WantErrText(t, err, text)
		}
		m.register("a", "")
		p := m.provider(discovery.WithDownInstancePolicy(discovery.DownInstancePolicy{}), discovery.WithPanicThreshold(1))
		for range 10 {
			m.pick(p, errBroken) // is never set aside
		}
	})
}
