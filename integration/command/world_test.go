// Package command_test plays the command docent, as a program, on a real ensemble of
// three servers. The command under a lost lock must be gone before the next holder's
// begins. The tests also look at what a signal leaves, and at each exit code.
package command_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/integration/harness"
)

// program is the path of docent, which TestMain builds.
var program string

func TestMain(m *testing.M) {
	os.Exit(withProgram(m.Run))
}

func withProgram(run func() int) int {
	dir, err := os.MkdirTemp("", "docent-command-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "command:", err)
		return 1
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary directory
	program = filepath.Join(dir, "docent")
	build := exec.Command("go", "build", "-C", "../../cmd/docent", "-o", program, ".")
	if said, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "command: build docent: %v\n%s", err, said)
		return 1
	}
	return run()
}

const (
	tick    = 2 * time.Second // ZooKeeper's default, which is what LeasePolicy assumes
	patient = time.Minute     // for what happens at all
	atOnce  = 5 * time.Second // for what no end of a session is needed for, which takes 15 s
)

// world is an ensemble and a raw client that sees what is there.
type world struct {
	*testing.T
	ctx  context.Context
	e    *harness.Ensemble
	raw  *zk.Conn
	dirs *atomic.Int64
}

func newWorld(t *testing.T) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	t.Cleanup(cancel)
	w := &world{T: t, ctx: ctx, dirs: new(atomic.Int64), e: harness.StartEnsemble(ctx, t, 3, harness.WithTickTime(tick), harness.WithSyncLimit(5), harness.WithInitLimit(10))}
	w.raw, _ = harness.Dial(ctx, t, 20*tick, w.e.Addrs()...)
	return w
}

// TestCommand plays everything on one ensemble. The partition comes last.
func TestCommand(t *testing.T) {
	w := newWorld(t)
	for _, part := range []struct {
		name string
		play func(*world)
	}{
		{"exit codes", exitCodes},
		{"signal before the lock", signalBeforeTheLock},
		{"pipeline", pipelineEnds},
		{"killed session", killedSession},
		{"evicted node", evictedNode},
		{"partitioned server", partitionedServer},
	} {
		t.Run(part.name, func(t *testing.T) {
			sub := *w
			sub.T = t
			part.play(&sub)
		})
	}
}

func (w *world) check(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// ready returns the leader and a follower once all serve.
func (w *world) ready() (leader, follower *harness.Node) {
	w.Helper()
	leader, err := w.e.AwaitServing(w.ctx)
	w.check(err)
	for _, n := range w.e.Nodes() {
		if n != leader {
			return leader, n
		}
	}
	w.Fatal("no follower")
	return nil, nil
}

// directory is a lock's directory that stays.
func (w *world) directory() string {
	w.Helper()
	dir := fmt.Sprintf("/lock%d", w.dirs.Add(1))
	w.eventually(patient, "make "+dir, func() bool {
		_, err := w.raw.Create(dir, nil, 0, zk.WorldACL(zk.PermAll))
		return err == nil || errors.Is(err, zk.ErrNodeExists)
	})
	return dir
}

// nodes are the contenders' nodes at a path.
func (w *world) nodes(dir string) []string {
	w.Helper()
	if _, err := w.raw.Sync(dir); err != nil {
		return nil
	}
	names, _, err := w.raw.Children(dir)
	if err != nil {
		return nil
	}
	return names
}

// queue waits until n contenders stand at a path.
func (w *world) queue(dir string, n int) {
	w.Helper()
	w.queueWithin(patient, dir, n)
}

func (w *world) queueWithin(limit time.Duration, dir string, n int) {
	w.Helper()
	w.eventually(limit, fmt.Sprintf("%d nodes at %s", n, dir), func() bool {
		names := w.nodes(dir)
		return names != nil && len(names) == n || n == 0 && names != nil && len(names) == 0
	})
}

// eventually polls what no event tells.
func (w *world) eventually(limit time.Duration, what string, ok func() bool) {
	w.Helper()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	end := time.After(limit)
	for !ok() {
		select {
		case <-again.C:
		case <-end:
			w.Fatalf("not within %v: %s", limit, what)
		case <-w.ctx.Done():
			w.Fatalf("%v: %s", context.Cause(w.ctx), what)
		}
	}
}

// docent is a docent that runs. Its command says by a pipe when it begins, and by the
// pipe's end when its last process has ended.
type docent struct {
	*world
	cmd   *exec.Cmd
	said  *text
	begun chan time.Time
	ended chan time.Time
	alone atomic.Bool // no other command ran when this one began
	node  atomic.Pointer[string]
	id    atomic.Int64 // of the session
	group atomic.Int64 // of processes
}

// pipeline is a command of a shell and two more processes. All have the pipe and the lock
// of a file, which the kernel ends with the last of them. The lock tells, to the instant,
// whether another command ran when this one began.
const pipeline = `exec 3>"$0" 9>>"$1"
if flock -n 9; then alone=alone; else alone=beside; fi
sleep 1000 | {
	eval "$2"
	echo "$alone $DOCENT_NODE $DOCENT_SESSION $$" >&3
	sleep 1000
}`

// What the end of a pipeline does first.
const (
	nothing = `:`
	ignores = `trap "" TERM`
)

// start starts `docent args PATH -- pipeline` on a server, whose end does something first.
func (w *world) start(server *harness.Node, dir, lockFile, first string, args ...string) *docent {
	w.Helper()
	fifo := filepath.Join(w.TempDir(), "pipe")
	w.check(syscall.Mkfifo(fifo, 0o600))
	d := &docent{world: w, said: new(text), begun: make(chan time.Time, 1), ended: make(chan time.Time, 1)}
	go d.read(fifo)
	d.cmd = w.command(server.Addr(), append(args, dir, "--", "sh", "-c", pipeline, fifo, lockFile, first)...)
	d.cmd.Stderr = d.said
	w.check(d.cmd.Start())
	w.Cleanup(func() {
		_ = d.cmd.Process.Kill()
		_ = d.cmd.Wait()
		if group := d.group.Load(); group != 0 && len(d.ended) == 0 && w.Failed() {
			_ = syscall.Kill(-int(group), syscall.SIGKILL) // docent has left it
		}
		if f, err := os.OpenFile(fifo, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
			_ = f.Close() // lets read go on if no command has begun
		}
	})
	return d
}

// read reads what the command says.
func (d *docent) read(fifo string) {
	f, err := os.Open(fifo) // waits for the command
	if err != nil {
		return
	}
	defer f.Close() //nolint:errcheck // read only
	in := bufio.NewReader(f)
	line, err := in.ReadString('\n')
	at := time.Now()
	words := strings.Fields(line)
	if err != nil || len(words) != 4 {
		return
	}
	id, _ := strconv.ParseInt(strings.TrimPrefix(words[2], "0x"), 16, 64)
	d.alone.Store(words[0] == "alone")
	d.node.Store(&words[1])
	d.id.Store(id)
	group, _ := strconv.ParseInt(words[3], 10, 64)
	d.group.Store(group)
	d.begun <- at
	_, _ = io.Copy(io.Discard, in)
	d.ended <- time.Now()
}

// at waits for a moment.
func (d *docent) at(what string, moment <-chan time.Time) time.Time {
	d.Helper()
	select {
	case at := <-moment:
		return at
	case <-time.After(patient):
	case <-d.ctx.Done():
	}
	d.Fatalf("the command has not %s; docent said: %s", what, d.said)
	return time.Time{}
}

// code waits for the end of docent, and returns its exit code.
func (d *docent) code() int {
	d.Helper()
	_ = d.cmd.Wait()
	return d.cmd.ProcessState.ExitCode()
}

// stop ends docent as an operator does.
func (d *docent) stop() {
	d.Helper()
	d.check(d.cmd.Process.Signal(syscall.SIGTERM))
	if code := d.code(); code != 128+int(syscall.SIGTERM) {
		d.Errorf("exit code %d after SIGTERM: %s", code, d.said)
	}
}

// command is docent on servers.
func (w *world) command(servers string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(w.ctx, program, args...)
	cmd.Env = append(os.Environ(), "DOCENT_SERVERS="+servers)
	cmd.WaitDelay = 5 * time.Second // a command that outlives docent has its streams
	return cmd
}

// result runs a docent to its end.
func (w *world) result(cmd *exec.Cmd) (out, errs string, code int) {
	w.Helper()
	var o, e bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &e
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		w.Fatal(err)
	}
	return o.String(), e.String(), cmd.ProcessState.ExitCode()
}

// text is what a program has written so far.
type text struct {
	mu    sync.Mutex
	bytes bytes.Buffer
}

func (s *text) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes.Write(p)
}

func (s *text) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes.String()
}
