package load

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Engine lets the contenders of a field contend.
type Engine struct {
	spec    *Spec
	field   *Field
	gate    *gate
	locks   []*witness
	records []*record
	began   int64
	stop    context.CancelFunc

	mu     sync.Mutex // guards the rest
	out    int        // contenders that have ended
	errors []string
}

// Start lets every contender of the field stand in line; the first holder waits at the
// closed gate. Close the field to end them.
func Start(ctx context.Context, spec *Spec, field *Field) *Engine {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	e := &Engine{spec: spec, field: field, gate: newGate(ctx), stop: stop}
	limit, lock, write := spec.weights()
	for range spec.Locks {
		e.locks = append(e.locks, &witness{limit: limit})
	}
	for i, c := range field.Contenders {
		r := &record{}
		e.records = append(e.records, r)
		p := &player{e: e, c: c, r: r, w: e.locks[i%spec.Locks], lock: lock, write: write, turn: WriteEvery * i / len(field.Contenders)}
		go p.play(ctx)
	}
	return e
}

// Open lets the holders go on.
func (e *Engine) Open() { e.gate.open() }

// Begin begins to record.
func (e *Engine) Begin() {
	for _, r := range e.records {
		r.begin()
	}
	e.began = e.gate.now()
}

// Count is how many cycles have ended since Begin.
func (e *Engine) Count() int {
	n := 0
	for _, r := range e.records {
		n += r.count()
	}
	return n
}

// End ends recording and returns what was.
func (e *Engine) End() *Result {
	all := &Result{Nanos: e.gate.now() - e.began, Witnessed: !e.field.Floor}
	for _, r := range e.records {
		r.end(all)
	}
	if !e.field.Floor {
		for _, w := range e.locks {
			all.Overlaps += w.overlaps.Load()
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	all.Errors = append(all.Errors, e.errors...)
	return all
}

// Close stops the holders where they are. Where waiters poll, it waits until none of
// them is left.
func (e *Engine) Close() {
	e.gate.close()
	if !e.field.Polls {
		return
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for e.gate.waiting()+e.ended() < len(e.field.Contenders) {
		<-tick.C
	}
}

// Quit gives up what waits and closes the sessions.
func (e *Engine) Quit(ctx context.Context) {
	e.stop()
	e.field.Close(ctx)
}

func (e *Engine) ended() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.out
}

// fail takes a contender out.
func (e *Engine) fail(verb string, err error) {
	const enough = 5
	e.mu.Lock()
	defer e.mu.Unlock()
	e.out++
	if len(e.errors) < enough {
		e.errors = append(e.errors, fmt.Sprintf("%s: %v", verb, err))
	}
}

// player is a contender at work.
type player struct {
	e           *Engine
	c           Contender
	r           *record
	w           *witness
	lock, write int64 // what an acquire takes
	turn        int   // the cycles counted for WriteEvery begin here
}

// play takes the lock again and again until an error.
func (p *player) play(ctx context.Context) {
	g, queued := p.e.gate, p.e.spec.Queued() && !p.e.field.Floor
	for n := 0; ; n++ {
		l, weight := p.c.Lock, p.lock
		if p.c.Write != nil && (n+p.turn)%WriteEvery == 0 {
			l, weight = p.c.Write, p.write
		}
		round := ctx
		if p.e.field.Polls {
			g.pass()
			round = g.current()
		}
		asked := g.now()
		if err := l.Acquire(round); err != nil {
			if p.e.field.Polls && round.Err() != nil && ctx.Err() == nil {
				continue // to the gate
			}
			p.e.fail("acquire", err)
			return
		}
		granted := g.now()
		p.w.enter(weight)
		if released := p.w.released.Load(); queued && released != 0 {
			p.r.granted(granted - released)
		}
		if !p.e.field.Polls {
			g.pass()
		}
		p.w.leave(weight)
		p.w.released.Store(g.now())
		if err := l.Release(ctx); err != nil {
			p.e.fail("release", err)
			return
		}
		p.r.ended(g.now()-asked, n == 0)
	}
}
