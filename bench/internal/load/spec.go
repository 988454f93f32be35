// Package load makes load: the contenders of one peer in one process, told by lines of
// text when to run. Peers in other languages follow the same protocol.
//
// The process reads a command a line from its input and answers each with a line:
//
//	setup key=value ...  connects and lets every contender stand in line: "ok"
//	open                 lets the holders go on: "ok"
//	begin                begins to record: "ok"
//	count                says how many cycles have ended since begin: "ok" and the number
//	end                  ends recording: "ok" and a Result as JSON
//	close                stops the holders where they are: "ok"
//	quit                 closes the sessions: "ok", and the process ends
//
// An answer of "error ..." says what went wrong. Between close and open every holder
// keeps its lock, and the line behind it stands. A peer whose waiters poll (redsync)
// stops before it acquires instead, so that it costs nothing while others are measured.
// The clock of the contenders stands still while the gate is closed.
package load

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Kind is a kind of lock.
type Kind string

// The kinds of locks that are measured.
const (
	Mutex     Kind = "mutex"
	ReadWrite Kind = "rw"
	Semaphore Kind = "semaphore"
	Multi     Kind = "multi"
	// Counter is a number that contenders add 1 to; Promoted is one that they lock after
	// three tries.
	Counter  Kind = "counter"
	Promoted Kind = "promoted"
)

// MultiLocks is how many locks a multi-lock has.
const MultiLocks = 3

// WriteEvery says that one cycle of so many writes, in the workload of readers.
const WriteEvery = 20

// Spec is what one process is told to set up.
type Spec struct {
	Peer       string
	Addrs      []string // host:port of each server
	Kind       Kind
	Root       string // a path that no other process uses, such as /bench/7
	Contenders int
	Sessions   int           // contender i uses session i modulo Sessions
	Locks      int           // contender i uses lock i modulo Locks
	Permits    int           // that one acquire of a semaphore takes
	Limit      int           // permits of the semaphore
	Timeout    time.Duration // of a session
}

// Line is the command that sets this up.
func (s *Spec) Line() string {
	return fmt.Sprintf("setup peer=%s addrs=%s kind=%s root=%s contenders=%d sessions=%d locks=%d permits=%d limit=%d timeout=%d",
		s.Peer, strings.Join(s.Addrs, ","), s.Kind, s.Root, s.Contenders, s.Sessions, s.Locks, s.Permits, s.Limit, s.Timeout.Milliseconds())
}

// ParseSpec reads what follows "setup" in a command.
func ParseSpec(words []string) (*Spec, error) {
	var s Spec
	for _, word := range words {
		key, value, ok := strings.Cut(word, "=")
		if !ok {
			return nil, fmt.Errorf("load: %q is not key=value", word)
		}
		if err := s.set(key, value); err != nil {
			return nil, fmt.Errorf("load: %s: %w", word, err)
		}
	}
	if s.Contenders < 1 || s.Sessions < 1 || s.Locks < 1 || len(s.Addrs) == 0 {
		return nil, fmt.Errorf("load: incomplete: %v", words)
	}
	return &s, nil
}

func (s *Spec) set(key, value string) (err error) {
	switch key {
	case "peer":
		s.Peer = value
	case "addrs":
		s.Addrs = strings.Split(value, ",")
	case "kind":
		s.Kind = Kind(value)
	case "root":
		s.Root = value
	case "contenders":
		s.Contenders, err = strconv.Atoi(value)
	case "sessions":
		s.Sessions, err = strconv.Atoi(value)
	case "locks":
		s.Locks, err = strconv.Atoi(value)
	case "permits":
		s.Permits, err = strconv.Atoi(value)
	case "limit":
		s.Limit, err = strconv.Atoi(value)
	case "timeout":
		var ms int
		ms, err = strconv.Atoi(value)
		s.Timeout = time.Duration(ms) * time.Millisecond
	default:
		err = fmt.Errorf("no such key")
	}
	return err
}

// Lone is what another process is told whose only contender contends with those of s.
func (s *Spec) Lone() *Spec {
	lone := *s
	lone.Contenders, lone.Sessions = 1, 1
	return &lone
}

// Path is the path of lock i.
func (s *Spec) Path(i int) string { return fmt.Sprintf("%s/lock%d", s.Root, i%s.Locks) }

// Server is the server that session i stays with. All peers choose alike: a follower is
// slower than a leader.
func (s *Spec) Server(i int) string { return s.Addrs[i%len(s.Addrs)] }

// Queued says whether contenders wait for each other's release of one lock. Where two
// can hold it at once, nobody can say whose release a waiter waited for.
func (s *Spec) Queued() bool {
	limit, lock, _ := s.weights()
	return s.Contenders > s.Locks && 2*lock > limit
}
