// Package peers runs clients in other languages beside Docent's: a Curator process that
// takes commands, to contend with on the same paths, and whole programs that use Curator
// or kazoo and say line by line how they fare.
//
// A test never skips for want of Java, Curator or kazoo: it fails and names the Debian
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
	sessionThread = "session" // waits, so it must not keep Close and KillSession waiting
)

// Error is an exception that the peer caught.
type Error struct {
	Class   string // of the exception, or empty for an error of the peer itself
	Message string
}

// Error returns class and message.
func (e *Error) Error() string {
	if e.Class == "" {
		return "java peer: " + e.Message
	}
	return "java peer: " + e.Class + ": " + e.Message
}

// Java is one Java process with at most one Curator client. Its methods are safe for
// concurrent use. When a call's context ends first, the call returns its cause and
// the command goes on in the peer.
type Java struct {
	process *process
}

// StartJava starts a peer, having compiled it if need be. It ends the test when it
// cannot. When the test ends the peer closes its client and is ended; if the test
// failed, the end of its log is printed. ctx bounds the compilation only.
func StartJava(ctx context.Context, t testing.TB) *Java {
	t.Helper()
	path := compiled(ctx, t, ownSources)
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	process, err := launch(life, "java", javaFlags(path, "Peer")...)
	if err != nil {
		cancel()
		t.Fatalf("start the Java peer: %v", err)
	}
	j := &Java{process: process}
	t.Cleanup(func() {
		defer cancel()
		_ = j.Unpause()
		process.quit(life)
		if t.Failed() {
			t.Logf("log of Java peer, process %d:\n%s", process.cmd.Process.Pid, process.stderr.String())
		}
	})
	return j
}

// javaFlags are the arguments that run a class of the program on this class path.
func javaFlags(classPath, class string) []string {
	return []string{
		"-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=info", "-Dorg.slf4j.simpleLogger.showDateTime=true",
		"-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
		"-cp", classPath, class,
	}
}

// Connect starts a Curator client with this session timeout and returns its session.
// It retries with Curator's exponential policy of 100 ms and 5 retries.
func (j *Java) Connect(ctx context.Context, addr string, timeout time.Duration) (int64, error) {
	return j.sessionFrom(ctx, controlThread, fmt.Sprintf("connect %s %d", addr, timeout.Milliseconds()))
}

// Session returns the id of the client's session, waiting up to 30 s for one while the
// client is between two. A session that is over is returned until the client has
// noticed.
func (j *Java) Session(ctx context.Context) (int64, error) {
	return j.sessionFrom(ctx, sessionThread, "session")
}

func (j *Java) sessionFrom(ctx context.Context, thread, command string) (int64, error) {
	text, err := j.call(ctx, thread, command)
	if err != nil {
		return 0, err
	}
	id, err := strconv.ParseUint(strings.TrimPrefix(text, "0x"), 16, 64)
	return int64(id), err
}

// KillSession ends the client's session behind its back, as an expiry would; after nil
// it is over. The client finds out by itself and starts a new one.
func (j *Java) KillSession(ctx context.Context) error {
	_, err := j.call(ctx, controlThread, "kill")
	return err
}

// Close closes the client, and its session with it. The peer can connect again; its
// mutexes are forgotten.
func (j *Java) Close(ctx context.Context) error {
	_, err := j.call(ctx, controlThread, "close")
	return err
}

// Mutex makes an InterProcessMutex on path and gives it a name.
func (j *Java) Mutex(ctx context.Context, name, path string) error {
	_, err := j.call(ctx, controlThread, "mutex "+name+" "+path)
	return err
}

// Participants returns the full paths of a mutex's nodes, the owner's first.
func (j *Java) Participants(ctx context.Context, mutex string) ([]string, error) {
	text, err := j.call(ctx, controlThread, "participants "+mutex)
	return strings.Fields(text), err
}

// Kill ends the process with SIGKILL and returns when it is gone. Its session stays
// till it expires.
func (j *Java) Kill(ctx context.Context) error {
	if err := j.signal(syscall.SIGKILL); err != nil {
		return err
	}
	select {
	case <-j.process.ended:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Pause stops the process where it is, as a long collection of garbage does.
func (j *Java) Pause() error { return j.signal(syscall.SIGSTOP) }

// Unpause lets a paused process go on.
func (j *Java) Unpause() error { return j.signal(syscall.SIGCONT) }

func (j *Java) signal(s syscall.Signal) error {
	if err := j.process.cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("%w: %w", ErrEnded, err)
	}
	return nil
}

// Thread is a thread of the peer, made at its first command. Curator's locks belong to
// threads: the one that acquired must release, and may acquire again.
type Thread struct {
	java *Java
	name string
}

// Thread returns the thread of this name, a word.
func (j *Java) Thread(name string) *Thread { return &Thread{java: j, name: name} }

// Acquire waits for a mutex as long as it takes.
func (th *Thread) Acquire(ctx context.Context, mutex string) error {
	_, err := th.java.call(ctx, th.name, "acquire "+mutex)
	return err
}

// TryAcquire waits for a mutex at most this long, in Curator's clock, and reports
// whether it was acquired.
func (th *Thread) TryAcquire(ctx context.Context, mutex string, wait time.Duration) (bool, error) {
	_, err := th.java.call(ctx, th.name, fmt.Sprintf("acquire %s %d", mutex, wait.Milliseconds()))
	if errors.Is(err, errFalse) {
		return false, nil
	}
	return err == nil, err
}

// Release undoes one Acquire of this thread.
func (th *Thread) Release(ctx context.Context, mutex string) error {
	_, err := th.java.call(ctx, th.name, "release "+mutex)
	return err
}

var errFalse = errors.New("peers: false")

// call returns what follows "ok", or the answer as an error.
func (j *Java) call(ctx context.Context, thread, command string) (string, error) {
	text, err := j.process.ask(ctx, thread, command)
	if err != nil {
		return "", err
	}
	kind, rest, _ := strings.Cut(text, " ")
	switch kind {
	case "ok":
		return rest, nil
	case "false":
		return "", errFalse
	}
	class, message, ok := strings.Cut(rest, ": ")
	if !ok || strings.Contains(class, " ") {
		class, message = "", rest
	}
	return "", fmt.Errorf("%s: %w", command, &Error{Class: class, Message: message})
}
