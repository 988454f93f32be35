package shared_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/shared"
)

// exploreNumberEnv is "KIND: CALL, CALL": the only program to play, as a finding names it.
const exploreNumberEnv = "DOCENT_EXPLORE_NUMBER"

// shortNumber is where a program of a number is played, with what is so by the rule: one
// value, which each call changes in turn, whoever makes it. A missing node is 0.
type shortNumber struct {
	*rig

	path    string
	opts    []shared.AtomicOption
	clients map[string]*client.Client
	longs   map[string]*shared.DistributedAtomicLong
	counts  map[string]*shared.SharedCount

	there  bool
	value  int64
	writes int                              // of the node
	known  map[string]shared.VersionedCount // that a client has read
	at     map[string]int                   // after so many writes
}

// numberKind is a kind of number with the calls of its programs. A call of a client has the
// client's name behind it.
type numberKind struct {
	name  string
	calls []string
	opts  []shared.AtomicOption
}

// An operator may write the node, or delete it with the marks below it. A pause lets marks go.
var numberKinds = []numberKind{
	{"long", []string{"add a", "add b", "compare a", "compare wrong b", "write", "delete", "cut a", "expire a", "pause"}, nil},
	{"long without marks", []string{"add a", "add b", "compare a", "set b", "write", "delete", "cut a", "pause"}, []shared.AtomicOption{shared.WithoutMark()}},
	{"count", []string{"read a", "read b", "try a", "try b", "force b", "write", "delete", "expire a"}, nil},
}

// TestEveryShortNumber plays every program of a few calls of two clients, an operator and the
// network, one after the other. Each call must say what the rule says.
func TestEveryShortNumber(t *testing.T) {
	t.Parallel()
	length := 4
	if exploresLess {
		length = 2
	} else if os.Getenv("DOCENT_EXPLORE_LONG") != "" {
		length = 6
	}
	replay := os.Getenv(exploreNumberEnv)
	for _, k := range numberKinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			if replay != "" {
				if name, calls, _ := strings.Cut(replay, ": "); name == k.name {
					k.play(t, [][]string{strings.Split(calls, ", ")})
				}
				return
			}
			played := 0
			var batch [][]string
			for program := range k.programs(length) {
				if batch = append(batch, program); len(batch) == 200 {
					k.play(t, batch)
					batch = nil
				}
				if played++; t.Failed() {
					return
				}
			}
			k.play(t, batch)
			t.Logf("%d programs of %d calls", played, length)
		})
	}
}

// programs yields all programs of so many calls.
func (k numberKind) programs(length int) func(yield func([]string) bool) {
	return func(yield func([]string) bool) {
		at := make([]int, length)
		for {
			program := make([]string, length)
			for i, c := range at {
				program[i] = k.calls[c]
			}
			if !yield(program) {
				return
			}
			i := length - 1
			for ; i >= 0 && at[i] == len(k.calls)-1; i-- {
				at[i] = 0
			}
			if i < 0 {
				return
			}
			at[i]++
		}
	}
}

// play plays programs on one server, each on a path of its own, until one fails.
func (k numberKind) play(t *testing.T, programs [][]string) {
	t.Helper()
	bubble(t, func(r *rig) {
		clients := map[string]*client.Client{"a": r.Connect("a"), "b": r.Connect("b")}
		for i, program := range programs {
			w := &shortNumber{
				rig: r, path: fmt.Sprint("/short/", i), opts: k.opts, clients: clients,
				longs: map[string]*shared.DistributedAtomicLong{}, counts: map[string]*shared.SharedCount{},
				known: map[string]shared.VersionedCount{}, at: map[string]int{},
			}
			for j, call := range program {
				if err := w.call(call); err != nil {
					t.Errorf("call %d: %v\nrepeat: %s='%s: %s' go test -run TestEveryShortNumber ./recipes/shared",
						j, err, exploreNumberEnv, k.name, strings.Join(program, ", "))
					return
				}
			}
		}
		time.Sleep(10 * time.Second)
		testrig.WantNoGoroutine(t, ourFrames)
	})
}

// call makes one call and compares what it says with the rule.
func (w *shortNumber) call(text string) error {
	what, by := text, ""
	if i := strings.LastIndexByte(text, ' '); i > 0 {
		what, by = text[:i], text[i+1:]
	}
	defer synctest.Wait()
	switch what {
	case "add", "compare", "compare wrong", "set":
		return w.change(what, w.long(by))
	case "read", "try", "force":
		return w.changeCount(what, by, w.count(by))
	case "write":
		if !w.there {
			return nil
		}
		w.set(w.value + 10)
		return w.Srv.SetData(w.path, w.data())
	case "delete":
		if w.Srv.Delete(w.path) == nil {
			w.there, w.value, w.writes = false, 0, w.writes+1
		}
	case "cut":
		w.Srv.Client(by).Cut()
		time.Sleep(100 * time.Millisecond)
	case "expire":
		w.Srv.ExpireSession(w.SessionID(w.clients[by]))
		time.Sleep(time.Second) // the client hears of it; a write before that has an unknown outcome
	case "pause":
		time.Sleep(2 * time.Second)
	default:
		return errors.New("there is no such call")
	}
	return nil
}

func (w *shortNumber) set(v int64) { w.there, w.value, w.writes = true, v, w.writes+1 }

// data is the value as the node has it.
func (w *shortNumber) data() []byte {
	if len(w.counts) > 0 {
		return binary.BigEndian.AppendUint32(nil, uint32(w.value))
	}
	return binary.BigEndian.AppendUint64(nil, uint64(w.value))
}

func (w *shortNumber) long(by string) *shared.DistributedAtomicLong {
	if w.longs[by] == nil {
		n, err := shared.NewDistributedAtomicLong(w.clients[by], w.path, w.opts...)
		w.Check(err)
		w.longs[by] = n
	}
	return w.longs[by]
}

func (w *shortNumber) count(by string) *shared.SharedCount {
	if w.counts[by] == nil {
		n, err := shared.NewSharedCount(w.clients[by], w.path, 0)
		w.Check(err)
		w.counts[by] = n
	}
	return w.counts[by]
}

func (w *shortNumber) change(what string, n *shared.DistributedAtomicLong) error {
	was, next, done := w.value, w.value+1, true
	var got shared.AtomicValue[int64]
	var err error
	switch what {
	case "add":
		got, err = n.Increment(w.Ctx)
	case "set":
		next = 7
		got, err = n.TrySet(w.Ctx, next)
	case "compare":
		done = w.there
		got, err = n.CompareAndSet(w.Ctx, was, next)
	case "compare wrong":
		done = false
		got, err = n.CompareAndSet(w.Ctx, was+1, next)
	}
	if done {
		w.set(next)
	}
	switch {
	case err != nil:
		return err
	case got.Succeeded != done, got.PreValue != was, done && got.PostValue != next:
		return fmt.Errorf("%s says %v, from %d to %d; by the rule %v, from %d to %d", what, got.Succeeded, got.PreValue, got.PostValue, done, was, w.value)
	}
	return w.compare()
}

func (w *shortNumber) changeCount(what, by string, n *shared.SharedCount) error {
	switch what {
	case "read":
		now, err := n.Get(w.Ctx)
		if err != nil || int64(now.Value) != w.value {
			return fmt.Errorf("reads %d, by the rule %d: %w", now.Value, w.value, errors.Join(err))
		}
		if !w.there { // the read has made it
			w.set(0)
		}
		w.known[by], w.at[by] = now, w.writes
	case "try":
		prev, read := w.known[by]
		if !read {
			return nil
		}
		done := w.there && w.at[by] == w.writes
		got, err := n.TrySet(w.Ctx, prev, prev.Value+1)
		if err != nil || got != done {
			return fmt.Errorf("sets what it has read: %v, by the rule %v: %w", got, done, errors.Join(err))
		}
		if done {
			w.set(int64(prev.Value) + 1)
		}
	case "force":
		if err := n.Set(w.Ctx, 7); err != nil {
			return err
		}
		w.set(7)
	}
	return w.compare()
}

// compare compares the node on the server with the rule.
func (w *shortNumber) compare() error {
	node, there := w.Srv.Node(w.path)
	if there != w.there && w.value != 0 || there && w.there && string(node.Data) != string(w.data()) {
		return fmt.Errorf("the node is there: %v, %x; by the rule %v, %x", there, node.Data, w.there, w.data())
	}
	w.there = there // one with 0 may have been made
	return nil
}
