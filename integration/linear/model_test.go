package linear_test

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// input is one operation on a number.
type input struct {
	op       string // "get", "add", "cas", "set"
	old, arg int64  // old is what cas compares with
}

// output is what its caller was told. An operation that failed for certain is in no
// history: it must have had no effect.
type output struct {
	unknown   bool // it may have been applied, or may be at any later time
	set       bool // by cas
	pre, post int64
	prePost   bool // the caller was told both
}

// model is a number. An operation of unknown outcome never returns, so it may be
// placed behind all others, where it has no effect on what they see.
func model() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return int64(0) },
		Step: func(state, in, out any) (bool, any) {
			now, i, o := state.(int64), in.(input), out.(output) //nolint:errcheck,forcetypeassert // its own types
			next := now
			switch i.op {
			case "get":
				return o.post == now, now
			case "add":
				next = now + i.arg
			case "set":
				next = i.arg
			case "cas":
				if i.old != now {
					return !o.set && (o.unknown || !o.prePost || o.pre == now), now
				}
				if !o.unknown && !o.set {
					return false, now
				}
				next = i.arg
			}
			return o.unknown || !o.prePost || o.pre == now && o.post == next, next
		},
		DescribeOperation: func(in, out any) string { return fmt.Sprintf("%+v: %+v", in, out) },
	}
}

// history collects operations. Its clock ticks with every call and return.
type history struct {
	clock atomic.Int64
	mu    sync.Mutex
	all   []porcupine.Operation
}

// do records one operation by f, which reports false if it failed for certain.
func (h *history) do(client int, in input, f func() (output, bool)) {
	call := h.clock.Add(1)
	out, there := f()
	end := h.clock.Add(1)
	if !there {
		return
	}
	if out.unknown {
		end = math.MaxInt64
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, porcupine.Operation{ClientId: client, Input: in, Call: call, Output: out, Return: end})
}

// check fails the test unless the history is linearizable.
func (h *history) check(t *testing.T, what string) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if got := porcupine.CheckOperationsTimeout(model(), h.all, time.Minute); got != porcupine.Ok {
		t.Errorf("%s: %v", what, got)
		for _, op := range h.all {
			t.Logf("%d: %d to %d: %+v: %+v", op.ClientId, op.Call, op.Return, op.Input, op.Output)
		}
	}
}

// unknowns is how many operations have an unknown outcome.
func (h *history) unknowns() (n int) {
	for _, op := range h.all {
		if op.Output.(output).unknown { //nolint:errcheck,forcetypeassert // its own type
			n++
		}
	}
	return n
}

// TestModel shows histories that are not linearizable to the model.
func TestModel(t *testing.T) {
	t.Parallel()
	is := func(pre, post int64) output { return output{pre: pre, post: post, prePost: true, set: true} }
	for name, tt := range map[string]struct {
		ops []porcupine.Operation
		ok  bool
	}{
		"one after the other": {[]porcupine.Operation{
			{Input: input{op: "add", arg: 1}, Call: 1, Return: 2, Output: is(0, 1)},
			{Input: input{op: "get"}, Call: 3, Return: 4, Output: is(1, 1)},
		}, true},
		"counted twice": {[]porcupine.Operation{
			{Input: input{op: "add", arg: 1}, Call: 1, Return: 2, Output: is(1, 2)},
			{Input: input{op: "get"}, Call: 3, Return: 4, Output: is(2, 2)},
		}, false},
		"lost": {[]porcupine.Operation{
			{Input: input{op: "add", arg: 1}, Call: 1, Return: 2, Output: is(0, 1)},
			{Input: input{op: "get"}, Call: 3, Return: 4, Output: is(0, 0)},
		}, false},
		"unknown, and applied later": {[]porcupine.Operation{
			{Input: input{op: "add", arg: 1}, Call: 1, Return: math.MaxInt64, Output: output{unknown: true}},
			{Input: input{op: "get"}, Call: 3, Return: 4, Output: is(0, 0)},
			{Input: input{op: "get"}, Call: 5, Return: 6, Output: is(1, 1)},
		}, true},
		"handed out twice": {[]porcupine.Operation{
			{Input: input{op: "add", arg: 1}, Call: 1, Return: 4, Output: is(0, 1)},
			{Input: input{op: "add", arg: 1}, Call: 2, Return: 3, Output: is(0, 1)},
		}, false},
		"set, and refused": {[]porcupine.Operation{
			{Input: input{op: "cas", old: 0, arg: 7}, Call: 1, Return: 2, Output: output{}},
			{Input: input{op: "get"}, Call: 3, Return: 4, Output: is(0, 0)},
		}, false},
	} {
		if got := porcupine.CheckOperations(model(), tt.ops); got != tt.ok {
			t.Errorf("%s: %v", name, got)
		}
	}
}
