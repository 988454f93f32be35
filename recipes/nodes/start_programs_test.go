package nodes_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/nodes"
)

// Random programs of Start, Close, Set, Wait and faults, of two objects of two clients at one
// path. At the end nothing is left, and Close was the last word.
func TestStartPrograms(t *testing.T) {
	t.Parallel()
	for _, tt := range modes() {
		t.Run(fmt.Sprint(tt.mode), func(t *testing.T) {
			t.Parallel()
			for seed := range number(t, "DOCENT_NODES_START_SEEDS", 10) {
				if bubble(t, func(r *rig) { r.program(seed, tt.mode, tt.opts) }); t.Failed() {
					t.Fatalf("seed %d", seed)
				}
			}
		})
	}
}

func (r *rig) program(seed uint64, mode nodes.Mode, opts []nodes.Option) {
	rnd := rand.New(rand.NewPCG(seed, 7))
	var all sync.WaitGroup
	var said sync.Mutex
	var log []string
	note := func(format string, args ...any) {
		said.Lock()
		log = append(log, fmt.Sprintf("%v ", time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)))+fmt.Sprintf(format, args...))
		said.Unlock()
	}
	type object struct {
		*nodes.PersistentNode
		changes chan struct{}
	}
	var objects []object

	for _, name := range []string{"a", "b"} {
		c := r.Connect(name)

		o := object{r.fresh(c, mode, opts...), make(chan struct{})}
		objects = append(objects, o)
		go func() {
			for s := range o.Changes(r.Ctx) {
				note("%s: %v %v", name, s.State, s.Err)
			}
			close(o.changes)
		}()
	}
	for range 4 + rnd.IntN(12) {
		i := rnd.IntN(2)
		if mode != nodes.Ephemeral && mode != nodes.EphemeralSequential {
			i = 0 // two objects of one persistent node cannot tell who has made it
		}
		o, name := objects[i], string(rune('a'+i))
		d := time.Duration(rnd.IntN(4000)) * time.Microsecond
		if rnd.IntN(3) == 0 {
			d = time.Duration(rnd.IntN(15)) * time.Second
		}
		switch rnd.IntN(9) {
		case 0, 1, 2:
			all.Go(func() {
				ctx, cancel := context.WithTimeout(r.Ctx, d)
				defer cancel()
				err := o.Start(ctx)
				note("%s: Start(%v): %v", name, d, err)
			})
		case 3:
			all.Go(func() {
				ctx, cancel := context.WithTimeout(r.Ctx, d)
				defer cancel()
				note("%s: Set: %v", name, o.Set(ctx, []byte(fmt.Sprint(d))))
			})
		case 4:
			r.Srv.Client(name).Cut()
			note("%s: cut", name)
		case 5:
			r.Srv.Client(name).Partition()
			note("%s: partition", name)
			all.Go(func() { time.Sleep(d); r.Srv.Client(name).Heal() })
		case 6:
			for _, s := range r.Srv.Sessions() {
				if rnd.IntN(2) == 0 {
					r.Srv.ExpireSession(s.ID)
					note("expire %#x", s.ID)
					break
				}
			}
		case 7:
			for _, left := range r.Srv.Children("/workers") {
				_ = r.Srv.Delete("/workers/" + left)
				note("delete %s", left)
			}
		case 8:
			if rnd.IntN(4) == 0 {
				all.Go(func() {
					ctx, cancel := context.WithTimeout(r.Ctx, d)
					defer cancel()
					note("%s: Close: %v", name, o.CloseContext(ctx))
				})
			}
		}
		time.Sleep(time.Duration(rnd.IntN(3)) * time.Duration(rnd.IntN(2000)) * time.Microsecond)
	}
	all.Wait()
	for i, o := range objects {
		r.Srv.Client(string(rune('a' + i))).Heal()
		ctx, cancel := context.WithTimeout(r.Ctx, time.Minute)
		if err := o.CloseContext(ctx); err != nil {
			r.Errorf("close: %v", err)
		}
		cancel()
	}
	time.Sleep(3 * testrig.SessionTimeout)
	r.WantNoChild("/workers")
	r.WantNoWatch()
	for i, o := range objects {
		select {
		case <-o.changes:
		default:
			r.Errorf("%d: Changes goes on after Close", i)
		}
		ctx, cancel := context.WithTimeout(r.Ctx, time.Second)
		if err := o.Start(ctx); !errors.Is(err, nodes.ErrClosed) {
			r.Errorf("%d: Start after Close: %v", i, err)
		}
		cancel()
	}
	if r.Failed() {
		for _, line := range log {
			r.Log(line)
		}
	}
}
