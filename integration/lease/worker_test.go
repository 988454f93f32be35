package lease_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
)

// task is what a worker process is told: to hold these locks, each in a
// session of its own, until standard input ends.
type task struct {
	Servers string
	Timeout time.Duration
	Locks   []string
}

// event is what a worker says of one of its holds.
type event struct {
	Kind     string // held, given, ended or belief
	Lock     int
	Token    int64         `json:",omitempty"`
	At       time.Time     // of the end; or when a hold that seemed good was last looked at
	Why      string        `json:",omitempty"`
	Left     time.Duration // until the deadline that the holder was given
	SeemsOff bool          `json:",omitempty"`
}

// The kinds of events.
const (
	held   = "held"
	given  = "given"
	ended  = "ended"
	belief = "belief"
)

// Commands of a worker, one a line.
const (
	sayBelief = "belief"
	setClock  = "clock" // and a duration
)

// asks reports whether the worker's code at that lock asks Hold.Err, as it
// should. The rest only looks at the hold's context.
func asks(lock int) bool { return lock%2 == 0 }

// user is the code that works under one hold.
type user struct {
	lock int
	hold *recipes.Hold
	mu   sync.Mutex
	last time.Time // when it last began to look and then found the hold good
	off  bool      // the hold is over
}

type speaker struct {
	mu  sync.Mutex
	enc *json.Encoder
}

func (s *speaker) say(e event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.enc.Encode(e) // without the parent there is no process to tell
}

func (tk task) run(ctx context.Context) error {
	out := &speaker{enc: json.NewEncoder(os.Stdout)}
	users := make([]*user, len(tk.Locks))
	errs := make([]error, len(tk.Locks))
	var group sync.WaitGroup
	for i := range tk.Locks {
		group.Go(func() { users[i], errs[i] = tk.take(ctx, i, out) })
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return listen(os.Stdin, out, users)
}

// take takes a lock and works under it.
func (tk task) take(ctx context.Context, i int, out *speaker) (*user, error) {
	c, err := client.Connect(ctx, tk.Servers,
		client.WithSessionTimeout(tk.Timeout),
		client.WithConnectTimeout(time.Minute),
		client.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return nil, err
	}
	m, err := recipes.NewInterProcessMutex(c, tk.Locks[i])
	if err != nil {
		return nil, err
	}
	h, err := m.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	out.say(event{Kind: held, Lock: i, Token: h.FencingToken()})
	u := &user{lock: i, hold: h}
	go u.work()
	go func() {
		<-h.Context().Done()
		out.say(event{Kind: ended, Lock: i, At: time.Now(), Why: context.Cause(h.Context()).Error()})
	}()
	return u, nil
}

// listen obeys until in ends.
func listen(in io.Reader, out *speaker, users []*user) error {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var what, arg string
		_, _ = fmt.Sscan(lines.Text(), &what, &arg)
		switch what {
		case sayBelief:
			for _, u := range users {
				out.say(u.belief())
			}
		case setClock:
			for _, u := range users {
				out.say(event{Kind: given, Lock: u.lock, Left: time.Until(u.hold.Deadline())})
			}
			by, err := time.ParseDuration(arg)
			if err == nil {
				err = shiftWallClock(by)
			}
			if err != nil {
				return err
			}
		}
	}
	return lines.Err()
}

// work looks at the hold again and again. The moment is taken before the look, so
// that a user that is stopped between the two has not believed anything yet.
func (u *user) work() {
	again := time.NewTicker(2 * time.Millisecond)
	defer again.Stop()
	for {
		at := time.Now()
		good := u.hold.Context().Err() == nil
		if asks(u.lock) {
			good = u.hold.Err() == nil
		}
		u.mu.Lock()
		if good {
			u.last = at
		}
		u.off = !good
		u.mu.Unlock()
		if !good {
			return
		}
		<-again.C
	}
}

func (u *user) belief() event {
	u.mu.Lock()
	defer u.mu.Unlock()
	return event{Kind: belief, Lock: u.lock, At: u.last, SeemsOff: u.off}
}
