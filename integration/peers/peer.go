// Package peers runs clients in other languages together with Docent's. One kind is a
// Curator or a kazoo process that takes commands, to contend with on the same paths.
// The other kind is a whole program that uses Curator or kazoo and writes its results
// line by line.
//
// Without Java, Curator or kazoo a test never skips. It fails and names the Debian
// packages to install.
package peers

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// controlThread runs what belongs to no thread, so that it never waits behind a lock.
const (
	controlThread = "control"
	sessionThread = "session" // waits, so it must not keep Close waiting
)

// Forever is how long to wait for what has no limit of time.
const Forever time.Duration = -1

// ErrTimeUp means that a peer waited as long as the test had said, and got
// nothing.
var ErrTimeUp = errors.New("peers: time is up")

// Error is an exception that the peer caught.
type Error struct {
	Class   string // of the exception, or empty for an error of the peer itself
	Message string
}

// Error returns class and message.
func (e *Error) Error() string {
	if e.Class == "" {
		return "peer: " + e.Message
	}
	return "peer: " + e.Class + ": " + e.Message
}

// Peer is one process with any number of clients and recipes, each with a name, a word.
// Its methods are safe for concurrent use. When a call's context ends first, the call
// returns its cause and the command goes on in the peer.
type Peer struct {
	process *process
}

// startPeer runs a program that takes commands. When the test ends the peer closes its
// clients and is ended; if the test failed, the end of its log is printed.
func startPeer(ctx context.Context, t testing.TB, name string, args ...string) *Peer {
	t.Helper()
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	process, err := launch(life, name, args...)
	if err != nil {
		cancel()
		t.Fatalf("start %s: %v", name, err)
	}
	p := &Peer{process: process}
	t.Cleanup(func() {
		defer cancel()
		_ = p.Unpause()
		process.quit(life)
		if t.Failed() {
			t.Logf("log of peer %s, process %d:\n%s", name, process.cmd.Process.Pid, process.stderr.String())
		}
	})
	return p
}

// Connect makes a client with this session timeout and returns its session.
func (p *Peer) Connect(ctx context.Context, client, addr string, timeout time.Duration) (int64, error) {
	return p.sessionFrom(ctx, controlThread, fmt.Sprintf("connect %s %s %d", client, addr, timeout.Milliseconds()))
}

// Session returns the id of a client's session, waiting up to 30 s for one while the
// client is between two. A session that is over is returned until the client has
// noticed.
func (p *Peer) Session(ctx context.Context, client string) (int64, error) {
	return p.sessionFrom(ctx, sessionThread, "session "+client)
}

func (p *Peer) sessionFrom(ctx context.Context, thread, command string) (int64, error) {
	text, err := p.call(ctx, thread, command)
	if err != nil {
		return 0, err
	}
	id, err := strconv.ParseUint(strings.TrimPrefix(text, "0x"), 16, 64)
	return int64(id), err
}

// Close closes a client, and its session with it. Its recipes must not be used any more.
func (p *Peer) Close(ctx context.Context, client string) error {
	_, err := p.call(ctx, controlThread, "close "+client)
	return err
}

// Make makes a recipe of a client. The kinds and their arguments:
//
//	Curator  mutex path, revocable path, rw path (makes name.read and name.write),
//	         semaphore path max, counted-semaphore path count, semaphore-mutex path,
//	         latch path, selector path, multi lock..., count path seed,
//	         persistent-node mode protected path data, group-member path id data,
//	         long path tries [lock path]
//	kazoo    lock path pattern..., read path pattern..., write path pattern...,
//	         semaphore path max
func (p *Peer) Make(ctx context.Context, name, client, kind string, args ...string) error {
	_, err := p.call(ctx, controlThread, strings.Join(append([]string{"make", name, client, kind}, args...), " "))
	return err
}

// Participants returns what the peer says of who stands in line for a lock.
func (p *Peer) Participants(ctx context.Context, lock string) ([]string, error) {
	text, err := p.call(ctx, controlThread, "participants "+lock)
	return strings.Fields(text), err
}

// Kill ends the process with SIGKILL and returns when it is gone. Its sessions stay
// till they expire.
func (p *Peer) Kill(ctx context.Context) error {
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	select {
	case <-p.process.ended:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Pause stops the process where it is, as a long collection of garbage does.
func (p *Peer) Pause() error { return p.signal(syscall.SIGSTOP) }

// Unpause lets a paused process go on.
func (p *Peer) Unpause() error { return p.signal(syscall.SIGCONT) }

func (p *Peer) signal(s syscall.Signal) error {
	if err := p.process.cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("%w: %w", ErrEnded, err)
	}
	return nil
}

// call returns what follows "ok", or the answer as an error.
func (p *Peer) call(ctx context.Context, thread, command string) (string, error) {
	text, err := p.process.ask(ctx, thread, command)
	if err != nil {
		return "", err
	}
	kind, rest, _ := strings.Cut(text, " ")
	switch kind {
	case "ok":
		return rest, nil
	case "false":
		return "", fmt.Errorf("%s: %w", command, ErrTimeUp)
	}
	class, message, ok := strings.Cut(rest, ": ")
	if !ok || strings.Contains(class, " ") {
		class, message = "", rest
	}
	return "", fmt.Errorf("%s: %w", command, &Error{Class: class, Message: message})
}
