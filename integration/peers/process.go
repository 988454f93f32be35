package peers

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// ErrEnded means that the peer's process has ended, by Kill or by itself.
var ErrEnded = errors.New("peers: process has ended")

const (
	quitLimit   = 5 * time.Second
	stderrLimit = 16 << 10
)

// process is a running peer and the answers it owes.
type process struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stderr tail
	ended  chan struct{} // closed when the process is gone and its output read

	mu    sync.Mutex // guards owed and the order of writes to stdin
	owed  map[string][]chan string
	over  bool
	cause error
}

func launch(ctx context.Context, name string, args ...string) (*process, error) {
	p := &process{cmd: exec.CommandContext(ctx, name, args...), ended: make(chan struct{}), owed: map[string][]chan string{}}
	p.cmd.Stderr = &p.stderr
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.stdin = stdin
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go p.read(stdout)
	return p, nil
}

// read hands each answer to the oldest call of its thread.
func (p *process) read(stdout io.Reader) {
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		thread, text, ok := strings.Cut(lines.Text(), " ")
		if !ok || !strings.HasPrefix(thread, "@") {
			_, _ = fmt.Fprintf(&p.stderr, "not an answer: %s\n", lines.Text())
			continue
		}
		p.mu.Lock()
		if queue := p.owed[thread]; len(queue) > 0 {
			queue[0] <- text
			p.owed[thread] = queue[1:]
		}
		p.mu.Unlock()
	}
	err := errors.Join(lines.Err(), p.cmd.Wait())
	p.mu.Lock()
	p.over = true
	p.cause = err
	p.mu.Unlock()
	close(p.ended)
}

// ask sends a command to a thread and waits for its answer. When ctx ends first the
// command goes on, and its answer will be dropped.
func (p *process) ask(ctx context.Context, thread, command string) (string, error) {
	answer := make(chan string, 1)
	if err := p.send("@"+thread, command, answer); err != nil {
		return "", fmt.Errorf("%s: %w", command, err)
	}
	select {
	case text := <-answer:
		return text, nil
	case <-ctx.Done():
		return "", fmt.Errorf("%s: %w", command, context.Cause(ctx))
	case <-p.ended:
	}
	select { // the answer may have come just before the end
	case text := <-answer:
		return text, nil
	default:
		return "", fmt.Errorf("%s: %w: %w", command, ErrEnded, p.endedBy())
	}
}

func (p *process) send(thread, command string, answer chan string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return fmt.Errorf("%w: %w", ErrEnded, p.cause)
	}
	p.owed[thread] = append(p.owed[thread], answer)
	if _, err := fmt.Fprintf(p.stdin, "%s %s\n", thread, command); err != nil {
		p.owed[thread] = p.owed[thread][:len(p.owed[thread])-1]
		return fmt.Errorf("%w: %w", ErrEnded, err)
	}
	return nil
}

func (p *process) endedBy() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cause == nil {
		return errors.New("exit status 0")
	}
	return p.cause
}

// quit lets the peer close its session, for a limited time, and ends it.
func (p *process) quit(ctx context.Context) {
	bounded, cancel := context.WithTimeout(ctx, quitLimit)
	defer cancel()
	_, _ = p.ask(bounded, "control", "quit")
	_ = p.stdin.Close()
	select {
	case <-p.ended:
	case <-bounded.Done():
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
}

// tail keeps the end of what a process says on standard error.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	if over := len(t.text) - stderrLimit; over > 0 {
		t.text = bytes.Clone(t.text[over:])
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
