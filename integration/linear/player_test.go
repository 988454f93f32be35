package linear_test

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/shared"
)

// number is what all kinds of numbers can do.
type number interface {
	get(ctx context.Context) (int64, error)
	add(ctx context.Context, delta int64) (output, error)
	set(ctx context.Context, v int64) (output, error)
	cas(ctx context.Context, old, v int64) (output, error)
}

// player is one goroutine that uses a number.
type player struct {
	g      *game
	id     int
	n      number
	random *rand.Rand
}

func (p *player) play() {
	for range rounds {
		time.Sleep(time.Duration(p.random.IntN(20)) * time.Millisecond)
		limit := time.Minute
		if p.random.IntN(4) == 0 {
			limit = time.Duration(p.random.IntN(8000)) * time.Microsecond
		}
		ctx, cancel := context.WithTimeout(p.g.ctx, limit)
		switch p.random.IntN(6) {
		case 0, 1, 2:
			in := input{op: "add", arg: 1 + int64(p.random.IntN(3))}
			p.do(in, func() (output, error) { return p.n.add(ctx, in.arg) })
		case 3:
			p.get(ctx)
		case 4:
			in := input{op: "set", arg: int64(p.random.IntN(10))}
			p.do(in, func() (output, error) { return p.n.set(ctx, in.arg) })
		case 5:
			if old, err := p.n.get(ctx); err == nil {
				in := input{op: "cas", old: old, arg: int64(100 + p.random.IntN(10))}
				p.do(in, func() (output, error) { return p.n.cas(ctx, in.old, in.arg) })
			}
		}
		cancel()
	}
}

func (p *player) get(ctx context.Context) {
	p.do(input{op: "get"}, func() (output, error) {
		v, err := p.n.get(ctx)
		return output{pre: v, post: v, prePost: true}, err
	})
}

func (p *player) do(in input, f func() (output, error)) {
	p.g.h.do(p.id, in, func() (output, bool) {
		out, err := f()
		switch {
		case err == nil:
			return out, true
		case client.UnknownOutcome(err):
			return output{unknown: true}, true
		default:
			return output{}, false
		}
	})
}

func told[T int32 | int64](v shared.AtomicValue[T], err error) (output, error) {
	out := output{set: v.Succeeded, pre: int64(v.PreValue), post: int64(v.PostValue), prePost: true}
	return out, err
}

type wide struct{ n *shared.DistributedAtomicLong }

func (w wide) get(ctx context.Context) (int64, error) {
	v, err := w.n.Get(ctx)
	return v.PostValue, err
}
func (w wide) add(ctx context.Context, d int64) (output, error) { return told(w.n.Add(ctx, d)) }
func (w wide) set(ctx context.Context, v int64) (output, error) { return told(w.n.TrySet(ctx, v)) }
func (w wide) cas(ctx context.Context, old, v int64) (output, error) {
	out, err := told(w.n.CompareAndSet(ctx, old, v))
	return missing(out, old), err
}

type narrow struct {
	n *shared.DistributedAtomicInteger
}

func (w narrow) get(ctx context.Context) (int64, error) {
	v, err := w.n.Get(ctx)
	return int64(v.PostValue), err
}

func (w narrow) add(ctx context.Context, d int64) (output, error) {
	return told(w.n.Add(ctx, int32(d)))
}

func (w narrow) set(ctx context.Context, v int64) (output, error) {
	return told(w.n.TrySet(ctx, int32(v)))
}

func (w narrow) cas(ctx context.Context, old, v int64) (output, error) {
	out, err := told(w.n.CompareAndSet(ctx, int32(old), int32(v)))
	return missing(out, old), err
}

// missing is out, unless a compare found no node, which reads as 0 and equals nothing:
// then it says nothing that the model knows.
func missing(out output, old int64) output {
	if !out.set && out.pre == 0 && old == 0 {
		out.unknown = true
	}
	return out
}

// counted makes the operations of a SharedCount, by what was read and TrySet.
type counted struct{ n *shared.SharedCount }

func (w counted) get(ctx context.Context) (int64, error) {
	v, err := w.n.Value(ctx)
	return int64(v), err
}

func (w counted) change(ctx context.Context, f func(int32) (int32, bool)) (output, error) {
	for {
		prev, err := w.n.Get(ctx)
		if err != nil {
			return output{}, err
		}
		next, ok := f(prev.Value)
		if !ok {
			return output{pre: int64(prev.Value), prePost: true}, nil
		}
		if set, err := w.n.TrySet(ctx, prev, next); set || err != nil {
			return output{set: set, pre: int64(prev.Value), post: int64(next), prePost: true}, err
		}
		if ctx.Err() != nil {
			return output{}, ctx.Err()
		}
	}
}

func (w counted) add(ctx context.Context, d int64) (output, error) {
	return w.change(ctx, func(v int32) (int32, bool) { return v + int32(d), true })
}

func (w counted) set(ctx context.Context, v int64) (output, error) {
	return w.change(ctx, func(int32) (int32, bool) { return int32(v), true })
}

func (w counted) cas(ctx context.Context, old, v int64) (output, error) {
	return w.change(ctx, func(now int32) (int32, bool) { return int32(v), now == int32(old) })
}
