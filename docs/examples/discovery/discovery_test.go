//go:build unix

package discovery_test

import (
	"bufio"
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/docent-go/docent/zktest"
)

// program is one that runs, with the lines that it prints.
type program struct {
	*exec.Cmd
	lines *bufio.Scanner
}

func start(ctx context.Context, t *testing.T, binary string, args ...string) *program {
	t.Helper()
	p := &program{Cmd: exec.CommandContext(ctx, binary, args...)}
	p.Stderr = t.Output()
	out, err := p.StdoutPipe()
	if err == nil {
		err = p.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	p.lines = bufio.NewScanner(out)
	return p
}

// after returns the rest of the next line, which must begin so.
func (p *program) after(t *testing.T, prefix string) string {
	t.Helper()
	if !p.lines.Scan() {
		t.Fatalf("%s has ended; want a line that begins with %q", p.Path, prefix)
	}
	rest, ok := strings.CutPrefix(p.lines.Text(), prefix)
	if !ok {
		t.Fatalf("%s says %q, want a line that begins with %q", p.Path, p.lines.Text(), prefix)
	}
	return rest
}

func (p *program) end(t *testing.T) {
	t.Helper()
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
}

// Both servers get calls. One ends on SIGTERM, and the client loses no call by that.
func TestPrograms(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	srv := zktest.NewServer(t)
	bin := t.TempDir()
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", bin, "./server", "./client").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	servers := map[string]*program{}
	for range 2 {
		p := start(ctx, t, filepath.Join(bin, "server"), "-servers", srv.Addr())
		servers[p.after(t, "registered at ")] = p
	}
	c := start(ctx, t, filepath.Join(bin, "client"), "-servers", srv.Addr(), "-every", "5ms")
	seen := map[string]bool{}
	for len(seen) < len(servers) {
		seen[c.after(t, "answered by ")] = true
	}
	for address, p := range servers {
		p.end(t)
		if got := p.after(t, "deregistered "); got != address {
			t.Errorf("deregistered %s, want %s", got, address)
		}
		if err := p.Wait(); err != nil {
			t.Error(err)
		}
		delete(servers, address)
		break
	}
	for range 50 {
		c.after(t, "answered by ")
	}
	if got := c.after(t, "answered by "); servers[got] == nil {
		t.Errorf("answered by %s, which has ended", got)
	}
	c.end(t)
	for c.lines.Scan() {
		if !strings.HasPrefix(c.lines.Text(), "answered by ") {
			t.Error(c.lines.Text())
		}
	}
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
}
