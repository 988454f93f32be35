package sessions

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
)

// Memory is what a process of sessions uses, after a collection of garbage.
type Memory struct {
	Resident   int64 `json:"resident"` // bytes
	Heap       int64 `json:"heap"`
	Stacks     int64 `json:"stacks"`
	Goroutines int   `json:"goroutines"`
}

// Beats is what heartbeats were like since the last "begin".
type Beats struct {
	Number int           `json:"number"`
	P50    time.Duration `json:"p50"`
	P99    time.Duration `json:"p99"`
	Left   time.Duration `json:"left"` // the least that was left of any hold behind one
	Failed int           `json:"failed"`
	Lost   int           `json:"lost"` // holds, since they began
}

// atOnce is how many sessions are opened at one time.
const atOnce = 32

// Serve obeys the commands of in: "open" with an Order as JSON, "work", "memory",
// "begin", "end", "close" and "quit". Each is answered with a line, "ok" or "error" and more.
func Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	s := &server{}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		verb, rest, _ := strings.Cut(lines.Text(), " ")
		answer, err := s.obey(ctx, verb, rest)
		answer = strings.TrimSpace("ok " + answer)
		if err != nil {
			answer = "error " + strings.Join(strings.Fields(err.Error()), " ")
		}
		if _, err := fmt.Fprintln(out, answer); err != nil || verb == "quit" {
			return err
		}
	}
	return lines.Err()
}

// Order is what "open" is told.
type Order struct {
	Load   Load     `json:"load"`
	Addrs  []string `json:"addrs"`
	Root   string   `json:"root"`   // a path that no other run uses
	Period string   `json:"period"` // of heartbeats; "0s" for the default
}

type server struct {
	clients []*client.Client
	holds   []*recipes.Hold
	wait    sync.WaitGroup // the waiters
	leave   context.CancelFunc

	mu    sync.Mutex
	beats []time.Duration
	sum   Beats
}

func (s *server) obey(ctx context.Context, verb, rest string) (string, error) {
	switch verb {
	case "open":
		var o Order
		if err := json.Unmarshal([]byte(rest), &o); err != nil {
			return "", err
		}
		return "", s.open(ctx, &o)
	case "work":
		return "", s.work(ctx)
	case "memory":
		return said(memory())
	case "begin":
		s.begin()
		return "", nil
	case "end":
		return said(s.end(), nil)
	case "close":
		return "", s.close(ctx)
	case "quit":
		return "", nil // the end of the process ends what is left
	}
	return "", fmt.Errorf("no such command: %s", verb)
}

func said(v any, err error) (string, error) {
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(v)
	return string(text), err
}

// open connects every session, and then lets the contenders stand in line, the holders
// first.
func (s *server) open(ctx context.Context, o *Order) error {
	period, err := time.ParseDuration(o.Period)
	if err != nil {
		return err
	}
	s.clients = make([]*client.Client, o.Load.Sessions())
	err = each(len(s.clients), func(i int) (err error) {
		s.clients[i], err = client.Connect(ctx, o.Addrs[i%len(o.Addrs)], client.WithSessionTimeout(o.Load.Timeout),
			client.WithLeasePolicy(client.LeasePolicy{HeartbeatPeriod: period}),
			client.WithLogger(slog.New(slog.DiscardHandler)), client.WithObserver(client.Observer{Heartbeat: s.beat}))
		return err
	})
	if err != nil {
		return err
	}
	s.holds = make([]*recipes.Hold, o.Load.Holding)
	err = each(len(s.holds), func(i int) error {
		m, err := recipes.NewInterProcessMutex(s.clients[i], o.lock(i))
		if err != nil {
			return err
		}
		s.holds[i], err = m.Acquire(ctx)
		return err
	})
	if err != nil {
		return err
	}
	waiting, leave := context.WithCancel(ctx)
	s.leave = leave
	for i := range o.Load.Waiting {
		m, err := recipes.NewInterProcessMutex(s.clients[len(s.holds)+i], o.lock(i))
		if err != nil {
			return err
		}
		s.wait.Go(func() {
			if h, err := m.Acquire(waiting); err == nil {
				_ = h.Release(waiting) // a holder was lost, which is counted
			}
		})
	}
	return nil
}

// heartbeatsOfWork is how many writes each session makes when it works. It is enough
// for a new server to have compiled what it needs.
const heartbeatsOfWork = 2000

// work lets every holder commit what a heartbeat commits, and read, as fast as it can.
func (s *server) work(ctx context.Context) error {
	return each(len(s.holds), func(i int) error {
		for range heartbeatsOfWork {
			if err := s.holds[i].Confirm(ctx); err != nil {
				return err
			}
			if _, _, err := s.clients[i].Exists(ctx, s.holds[i].Path()); err != nil {
				return err
			}
		}
		return nil
	})
}

// lock is the path of the lock of the i-th holder or waiter.
func (o *Order) lock(i int) string { return fmt.Sprintf("%s/lock%d", o.Root, i%o.Load.Holding) }

// each calls f for 0 to n-1, some at a time.
func each(n int, f func(i int) error) error {
	var (
		wg   sync.WaitGroup
		errs = make([]error, n)
		turn = make(chan struct{}, atOnce)
	)
	for i := range n {
		turn <- struct{}{}
		wg.Go(func() {
			errs[i] = f(i)
			<-turn
		})
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			return fmt.Errorf("session %d of %d: %w", i+1, n, err)
		}
	}
	return nil
}

// beat is the hook of every client.
func (s *server) beat(b client.HeartbeatInfo) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.beats) == 0 || b.Left < s.sum.Left {
		s.sum.Left = b.Left
	}
	s.beats = append(s.beats, b.Duration)
	if b.Err != nil {
		s.sum.Failed++
	}
}

func (s *server) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.beats, s.sum = s.beats[:0], Beats{}
}

func (s *server) end() Beats {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := s.sum
	sum.Number = len(s.beats)
	if sum.Number > 0 {
		slices.Sort(s.beats)
		sum.P50, sum.P99 = s.beats[sum.Number/2], s.beats[sum.Number*99/100]
	}
	for _, h := range s.holds {
		if h.Err() != nil {
			sum.Lost++
		}
	}
	return sum
}

// close closes every session. The waiters leave first, so no lock is handed over.
func (s *server) close(ctx context.Context) error {
	if s.leave != nil {
		s.leave()
		s.wait.Wait()
	}
	clients := s.clients
	s.clients = nil
	return each(len(clients), func(i int) error {
		if clients[i] == nil {
			return nil // it could not be opened
		}
		return clients[i].CloseContext(ctx)
	})
}

// memory is what this process uses now.
func memory() (Memory, error) {
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return Memory{}, err
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return Memory{}, errors.New("not /proc/self/statm")
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	return Memory{
		Resident: pages * int64(os.Getpagesize()), Heap: int64(m.HeapAlloc), Stacks: int64(m.StackInuse), //nolint:gosec // no such sizes
		Goroutines: runtime.NumGoroutine(),
	}, err
}
