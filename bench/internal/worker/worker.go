// Package worker talks to the processes that contend, by the protocol of package load.
package worker

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/docent-go/docent/bench/internal/load"
	"github.com/docent-go/docent/bench/internal/servers"
)

const (
	answerTimeout = 3 * time.Minute // the contenders of setup may be thousands
	quitTimeout   = 30 * time.Second
)

// ErrNoCycle means that no cycle has ended while it was recorded.
var ErrNoCycle = errors.New("no cycle ended in the window")

// Worker is one process that contends.
type Worker struct {
	process *servers.Process
	in      io.WriteCloser
	answers chan string // one a command; closed at the end of its output
}

// Start starts a program. Its log goes to a file in dir.
func Start(args []string, dir, name string) (*Worker, error) {
	cmd := exec.Command(args[0], args[1:]...)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, said, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = said.Close() }()
	cmd.Stdout = said
	process, err := servers.StartProcess(cmd, dir, name)
	if err != nil {
		_ = out.Close()
		return nil, err
	}
	process.Watch()
	w := &Worker{process: process, in: in, answers: make(chan string, 1)}
	go w.read(out)
	return w, nil
}

// read ends with the process.
func (w *Worker) read(out *os.File) {
	defer func() { _ = out.Close() }()
	defer close(w.answers)
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		w.answers <- strings.TrimSpace(line)
	}
}

// CPU is the processor time that the process has used so far.
func (w *Worker) CPU() (time.Duration, error) { return w.process.CPU() }

// Do sends a command whose answer says nothing but "ok".
func (w *Worker) Do(ctx context.Context, command string) error {
	_, err := w.ask(ctx, command, answerTimeout)
	return err
}

// Ask sends a command and returns what its answer says behind "ok".
func (w *Worker) Ask(ctx context.Context, command string) (string, error) {
	return w.ask(ctx, command, answerTimeout)
}

// Count returns how many cycles have ended since begin.
func (w *Worker) Count(ctx context.Context) (int, error) {
	said, err := w.ask(ctx, "count", answerTimeout)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(said)
}

// End ends recording. An overlap or the error of a contender is an error, and with
// [ErrNoCycle] there is a result.
func (w *Worker) End(ctx context.Context) (*load.Result, error) {
	said, err := w.ask(ctx, "end", answerTimeout)
	if err != nil {
		return nil, err
	}
	var r load.Result
	if err := json.Unmarshal([]byte(said), &r); err != nil {
		return nil, err
	}
	return &r, check(&r)
}

func check(r *load.Result) error {
	switch {
	case r.Overlaps > 0:
		return fmt.Errorf("not exclusive: %d times a contender came in that should not have", r.Overlaps)
	case len(r.Errors) > 0:
		return errors.New(strings.Join(r.Errors, "; "))
	case r.Cycles == 0:
		return ErrNoCycle
	}
	return nil
}

// Quit closes the sessions, so that their nodes do not expire in the middle of what is
// measured next, and ends the process.
func (w *Worker) Quit(ctx context.Context) error {
	_, err := w.ask(ctx, "quit", quitTimeout)
	w.process.Kill()
	return err
}

// Kill ends the process without a word. Its sessions expire later.
func (w *Worker) Kill() { w.process.Kill() }

func (w *Worker) ask(ctx context.Context, command string, patience time.Duration) (string, error) {
	verb, _, _ := strings.Cut(command, " ")
	if _, err := io.WriteString(w.in, command+"\n"); err != nil {
		return "", fmt.Errorf("%s: the process has ended; %s", verb, w.process.Tail())
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case said, ok := <-w.answers:
		if !ok {
			return "", fmt.Errorf("%s: the process has ended; %s", verb, w.process.Tail())
		}
		kind, rest, _ := strings.Cut(said, " ")
		if kind != "ok" {
			return "", fmt.Errorf("%s: %s", verb, rest)
		}
		return rest, nil
	case <-late.C:
		return "", fmt.Errorf("%s: no answer in %v; %s", verb, patience, w.process.Tail())
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}
