package exclusion_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	workers  = 8
	routines = 8

	sessionTimeout = 4 * time.Second
	tick           = 500 * time.Millisecond // of the servers
)

// fleet is the worker processes of one case.
type fleet struct {
	witness *witness
	procs   []*process
}

// process is one worker.
type process struct {
	cmd    *exec.Cmd
	stdin  io.Closer
	stdout bytes.Buffer
	stderr bytes.Buffer
	ended  chan error // has the result of Wait
	killed bool       // by the case
}

// launch starts the workers. The first half share one session in each
// process; in the others every goroutine has its own. Odd workers run on one
// processor. Worker i talks to servers[i%len(servers)].
func launch(t *testing.T, lock string, servers ...string) *fleet {
	t.Helper()
	f := &fleet{witness: startWitness(t)}
	for i := range workers {
		tk := task{
			Worker: i, Routines: routines, Sessions: 1,
			Servers: servers[i%len(servers)], Lock: lock,
			Socket: f.witness.socket, Timeout: sessionTimeout,
		}
		if i >= workers/2 {
			tk.Sessions = routines
		}
		f.procs = append(f.procs, start(t, tk))
	}
	return f
}

func start(t *testing.T, tk task) *process {
	t.Helper()
	self, err := os.Executable()
	check(t, err)
	text, err := json.Marshal(tk)
	check(t, err)
	p := &process{cmd: exec.CommandContext(t.Context(), self), ended: make(chan error, 1)}
	p.cmd.Env = append(os.Environ(), workerEnv+"="+string(text))
	if tk.Worker%2 == 1 {
		p.cmd.Env = append(p.cmd.Env, "GOMAXPROCS=1")
	}
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	p.stdin, err = p.cmd.StdinPipe()
	check(t, err)
	check(t, p.cmd.Start())
	go func() { p.ended <- p.cmd.Wait() }() // ends with the process, which the test's context ends
	return p
}

// signal sends a signal to one worker. It may be called from a hook.
func (f *fleet) signal(worker int, s syscall.Signal) error {
	p := f.procs[worker]
	p.killed = p.killed || s == syscall.SIGKILL
	return p.cmd.Process.Signal(s)
}

// stop lets the workers come to their end and adds up what they say.
func (f *fleet) stop(ctx context.Context, t *testing.T) outcome {
	t.Helper()
	for _, p := range f.procs {
		_ = p.stdin.Close()
	}
	all := outcome{Errors: map[string]int{}}
	for i, p := range f.procs {
		select {
		case err := <-p.ended:
			if p.killed {
				continue
			}
			var o outcome
			if e := json.Unmarshal(p.stdout.Bytes(), &o); err != nil || e != nil {
				t.Errorf("worker %d: %v, %v; it said:\n%s", i, err, e, p.stderr.String())
				continue
			}
			if races := strings.Count(p.stderr.String(), "DATA RACE"); races > 0 {
				t.Errorf("worker %d: %d data races:\n%s", i, races, p.stderr.String())
			}
			all.add(o)
		case <-ctx.Done():
			_ = p.cmd.Process.Signal(syscall.SIGQUIT) // every goroutine's stack
			<-p.ended
			t.Errorf("worker %d did not end:\n%s", i, p.stderr.String())
		}
	}
	return all
}

func (o *outcome) add(b outcome) {
	o.Acquired += b.Acquired
	o.GaveUp += b.GaveUp
	o.Lost += b.Lost
	o.Long += b.Long
	o.Leaked += b.Leaked
	o.Unexpected = append(o.Unexpected, b.Unexpected...)
	for what, n := range b.Errors {
		o.Errors[what] += n
	}
}

func (o *outcome) String() string {
	return fmt.Sprintf("%d holds, %d gave up waiting, %d lost, %d long, errors %v", o.Acquired, o.GaveUp, o.Lost, o.Long, o.Errors)
}
