package lease_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/integration/harness"
	"github.com/docent-go/docent/integration/sessions"
	"github.com/docent-go/docent/recipes"
)

// What others do to a holder through the ensemble, it hears within one
// heartbeat or one event.
func TestHolderHears(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 5*time.Minute)
	leader, followers := w.ready()
	for _, c := range []struct {
		name string
		do   func(session int64, node string) error
	}{
		{"session killed by its password", func(id int64, _ string) error {
			return sessions.KillSession(w.ctx, leader.Addr(), id)
		}},
		{"own node deleted", func(_ int64, node string) error { return w.raw.Delete(node, -1) }},
		{"own node deleted and made again by another", func(_ int64, node string) error {
			_, err := w.raw.Multi(&zk.DeleteRequest{Path: node, Version: -1},
				&zk.CreateRequest{Path: node, Acl: zk.WorldACL(zk.PermAll), Flags: zk.FlagEphemeral})
			return err
		}},
	} {
		for _, timeout := range extentOf().timeouts {
			w.hears(c.name, followers[0], timeout, c.do)
		}
	}
}

// samples is how many holders one fault strikes, one after the other.
const samples = 8

func (w *world) hears(name string, server *harness.Node, timeout time.Duration, do func(session int64, node string) error) {
	w.Helper()
	beat := min(timeout/6, 5*time.Second)
	took := make([]time.Duration, samples)
	w.together(samples, func(i int) {
		c, done := w.connect(server.Addr(), timeout)
		defer done()
		h, err := w.mutex(c, w.directory()).Acquire(w.ctx)
		w.check(err)
		s, err := c.Session(w.ctx)
		w.check(err)
		w.pass(100*time.Millisecond + time.Duration(i)*beat/samples)
		if err := do(s.ID(), h.Path()); err != nil {
			w.Fatalf("%s: %v", name, err)
		}
		struck := time.Now()
		select {
		case <-h.Context().Done():
		case <-time.After(2*beat + 3*time.Second):
			w.Fatalf("%s, T=%v: the holder has not heard after %v", name, timeout, time.Since(struck))
		}
		took[i] = time.Since(struck)
		if !errors.Is(h.Err(), recipes.ErrLost) {
			w.Errorf("%s: %v", name, h.Err())
		}
	})
	slices.Sort(took)
	w.Logf("%-43s T=%-4v %d runs: heard after %v to %v, median %v; a heartbeat is %v",
		name, timeout, len(took), ms(took[0]), ms(last(took)), ms(took[len(took)/2]), ms(beat))
	if last(took) > beat+wakeUp {
		w.Errorf("%s, T=%v: heard after %v", name, timeout, last(took))
	}
}
