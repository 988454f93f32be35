package peers

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"testing"
)

// Script is a program that talks in lines: its standard output says what it has done,
// its standard input answers what it asks. A Script is for one goroutine.
type Script struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stderr tail
	lines  chan string // closed at the end of the output
	err    error       // how the process ended; set before lines is closed
}

// StartCuratorScript compiles the Java sources in fsys, none of them of one name, with
// Curator on the class path and runs one class's main. It ends the test when it cannot,
// with what to install if that is why. The program is killed when the test ends; if the
// test failed, the end of its log is printed. ctx bounds the compilation only.
func StartCuratorScript(ctx context.Context, t testing.TB, fsys fs.FS, class string, args ...string) *Script {
	t.Helper()
	path := compiled(ctx, t, fsys)
	return startScript(ctx, t, "java", append(javaFlags(path, class), args...))
}

func startScript(ctx context.Context, t testing.TB, name string, args []string) *Script {
	t.Helper()
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s := &Script{cmd: exec.CommandContext(life, name, args...), lines: make(chan string)}
	s.cmd.Stderr = &s.stderr
	stdin, err := s.cmd.StdinPipe()
	if err != nil {
		cancel()
		t.Fatalf("start %s: %v", name, err)
	}
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		cancel()
		t.Fatalf("start %s: %v", name, err)
	}
	s.stdin = stdin
	if err := s.cmd.Start(); err != nil {
		cancel()
		t.Fatalf("start %s: %v", name, err)
	}
	go s.read(life, stdout)
	t.Cleanup(func() {
		cancel()
		for range s.lines { // until the process is gone
		}
		if t.Failed() {
			t.Logf("log of %s, process %d, which ended with %v:\n%s", name, s.cmd.Process.Pid, s.err, s.stderr.String())
		}
	})
	return s
}

func (s *Script) read(life context.Context, stdout io.Reader) {
	defer close(s.lines)
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		select {
		case s.lines <- lines.Text():
		case <-life.Done():
		}
	}
	s.err = lines.Err()
	if err := s.cmd.Wait(); err != nil {
		s.err = err
	}
}

// Next waits for the program's next line. The error is io.EOF when the program has ended
// well, another one when it has not, and ctx's cause when ctx ends first.
func (s *Script) Next(ctx context.Context) (string, error) {
	select {
	case line, ok := <-s.lines:
		switch {
		case ok:
			return line, nil
		case s.err != nil:
			return "", fmt.Errorf("%w: %w", ErrEnded, s.err)
		}
		return "", io.EOF
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// Tell writes one line to the program. The error is ErrEnded when the program does
// not read it any more.
func (s *Script) Tell(line string) error {
	if _, err := io.WriteString(s.stdin, line+"\n"); err != nil {
		return fmt.Errorf("%w: %w", ErrEnded, err)
	}
	return nil
}
