package lease_test

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// process is a worker as its parent sees it.
type process struct {
	w       *world
	timeout time.Duration
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	stderr  bytes.Buffer
	events  chan heard
	locks   []string
	tokens  []int64
}

// heard is an event and when it arrived here.
type heard struct {
	event
	at time.Time
}

// start starts a worker and returns when it holds all its locks. A machine
// that is too slow to keep a session of 4 s while others start gets more than
// one attempt.
func (w *world) start(servers string, timeout time.Duration, locks int) *process {
	w.Helper()
	for range 5 {
		p := w.launch(servers, timeout, locks)
		if p.holds() {
			return p
		}
		p.signal(syscall.SIGKILL)
	}
	w.Fatalf("T=%v: no worker got to hold %d locks", timeout, locks)
	return nil
}

// holds waits until p holds its locks, and reports false if it lost one.
func (p *process) holds() bool {
	p.w.Helper()
	for range p.locks {
		e := p.hear()
		if e.Kind != held {
			p.w.Logf("T=%v: a hold was lost before anything happened: %s", p.timeout, e.Why)
			return false
		}
		p.tokens[e.Lock] = e.Token
	}
	return true
}

func (w *world) launch(servers string, timeout time.Duration, locks int) *process {
	w.Helper()
	p := &process{w: w, timeout: timeout, events: make(chan heard, 1000), tokens: make([]int64, locks)}
	for range locks {
		p.locks = append(p.locks, w.directory())
	}
	self, err := os.Executable()
	w.check(err)
	text, err := json.Marshal(task{Servers: servers, Timeout: timeout, Locks: p.locks})
	w.check(err)
	p.cmd = exec.CommandContext(w.ctx, self)
	p.cmd.Env = append(os.Environ(), workerEnv+"="+string(text))
	p.cmd.Stderr = &p.stderr
	p.stdin, err = p.cmd.StdinPipe()
	w.check(err)
	out, err := p.cmd.StdoutPipe()
	w.check(err)
	w.check(p.cmd.Start())
	go p.listen(out)
	w.Cleanup(func() {
		p.signal(syscall.SIGKILL)
		_ = p.cmd.Wait()
		if w.Failed() && p.stderr.Len() > 0 {
			w.Logf("a worker said:\n%s", p.stderr.String())
		}
	})
	return p
}

// listen ends with the worker.
func (p *process) listen(out io.Reader) {
	defer close(p.events)
	dec := json.NewDecoder(out)
	for {
		var e event
		if dec.Decode(&e) != nil {
			return
		}
		p.events <- heard{e, time.Now()}
	}
}

// hear returns the next event.
func (p *process) hear() heard {
	p.w.Helper()
	select {
	case e, ok := <-p.events:
		if !ok {
			p.w.Fatal("the worker has ended")
		}
		return e
	case <-time.After(p.timeout + time.Minute):
		p.w.Fatalf("the worker says nothing for %v", p.timeout+time.Minute)
		return heard{}
	}
}

// await returns the next event, which must be of that kind.
func (p *process) await(kind string) heard {
	p.w.Helper()
	e := p.hear()
	if e.Kind != kind {
		p.w.Fatalf("worker: want %q, got %+v", kind, e.event)
	}
	return e
}

func (p *process) tell(command string) {
	p.w.Helper()
	_, err := io.WriteString(p.stdin, command+"\n")
	p.w.check(err)
}

func (p *process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// followers waits behind each hold of p and returns what their waiters got, by
// lock.
func (p *process) followers(wait func(dir string) grant) []chan grant {
	p.w.Helper()
	next := make([]chan grant, len(p.locks))
	for i, dir := range p.locks {
		next[i] = make(chan grant, 1)
		go func() { next[i] <- wait(dir) }()
	}
	for _, dir := range p.locks {
		p.w.queue(dir, 2)
	}
	return next
}

// granted receives what a waiter got.
func (w *world) granted(next <-chan grant, limit time.Duration) grant {
	w.Helper()
	select {
	case g := <-next:
		w.check(g.err)
		return g
	case <-time.After(limit):
		w.Fatalf("no waiter was granted the lock within %v", limit)
		return grant{}
	}
}
