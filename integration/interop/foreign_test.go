package interop_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/docent-go/docent/integration/peers"
)

// threads is how many threads or goroutines of each client take part.
const threads = 2

// foreign makes the contenders of clients of another library.
type foreign struct {
	lock  string // the witness's name of the lock
	mode  mode
	limit bool       // see contender.limited
	draw  func() int // how many permits to acquire

	// build makes the recipe that has this name in the peer: one for each client, or one
	// for each thread.
	build     func(ctx context.Context, p *party, name string) error
	perThread bool
}

func one() int { return 1 }

func (f foreign) contenders(ctx context.Context, parties []*party) ([]*contender, error) {
	var all []*contender
	for _, p := range parties {
		for i := range threads {
			who := fmt.Sprintf("%s-%d", p.name, i)
			name := own(p, f.lock)
			if f.perThread {
				name = who + "-" + f.lock
			}
			if i == 0 || f.perThread {
				if err := f.build(ctx, p, name); err != nil {
					return nil, err
				}
			}
			all = append(all, f.contender(p, who, name))
		}
	}
	return all, nil
}

func (f foreign) contender(p *party, who, name string) *contender {
	th := p.peer.Thread(who)
	return &contender{party: p, who: who, limited: f.limit, acquire: func(ctx context.Context, patience time.Duration) (*grant, error) {
		n := f.draw()
		nodes, err := acquireForeign(ctx, th, name, n, patience)
		if err != nil {
			return nil, err
		}
		return &grant{
			claims:  []claim{{lock: f.lock, mode: f.mode, permits: n, nodes: nodes}},
			release: func(ctx context.Context) error { return th.Release(ctx, name) },
		}, nil
	}}
}

// own is what a recipe of one client is called in its process.
func own(p *party, lock string) string { return p.name + "-" + lock }

// acquireForeign is an acquire of a thread, which gives up by itself.
func acquireForeign(ctx context.Context, th *peers.Thread, lock string, n int, patience time.Duration) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience+stuck)
	defer cancel()
	nodes, err := th.Acquire(ctx, lock, n, patience)
	if errors.Is(err, peers.ErrTimeUp) {
		return nil, errPatience
	}
	return nodes, err
}
