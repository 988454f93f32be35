package ui_test

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/docent-go/docent/cmd/docent/internal/ui"
	"github.com/docent-go/docent/zktest"
)

// command builds docent as users have it, without the race detector, and runs its page on
// a server. It returns the address of the page, and the process.
func command(t testing.TB, servers string, args ...string) (address string, cmd *exec.Cmd) {
	t.Helper()
	docent := filepath.Join(t.TempDir(), "docent")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", docent, "../..").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	cmd = exec.CommandContext(t.Context(), docent, append([]string{"ui", "--servers", servers, "--listen", "127.0.0.1:0"}, args...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatal("docent ui printed no address")
	}
	return lines.Text(), cmd
}

// peak is the most memory that a process has had, in MB.
func peak(t *testing.T, cmd *exec.Cmd) (mb int) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb := 0
			if _, err := fmt.Sscan(rest, &kb); err != nil {
				t.Fatal(err)
			}
			return kb >> 10
		}
	}
	t.Fatal("the system does not tell the memory")
	return 0
}

// asked remembers when requests came that are neither pings nor handshakes.
type asked struct {
	client string // whose; of a connection by TCP if empty

	mu    sync.Mutex
	times []time.Time
}

func (a *asked) hear(r zktest.Request) {
	if r.Client == cmp.Or(a.client, zktest.TCPClient) && r.Op != zktest.OpPing && r.Op != zktest.OpConnect {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.times = append(a.times, r.Time)
	}
}

// most is the most requests of any second.
func (a *asked) most() (most int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range a.times {
		n := 0
		for _, t := range a.times[i:] {
			if t.Sub(a.times[i]) >= time.Second {
				break
			}
			n++
		}
		most = max(most, n)
	}
	return most
}

func (a *asked) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.times)
}

// painted waits for the first locks of a page.
var painted = until("document.querySelectorAll('tbody tr').length >= 100")

// BenchmarkFirstPaint measures the time from the address to the first of 2,000 locks with 10,000 contenders, with
// a new docent and a new browser each time.
func BenchmarkFirstPaint(b *testing.B) {
	r := newRig(b, ui.Config{}, zktest.WithListen("127.0.0.1:0"))
	r.crowd(2000, 10_000, 20)
	var longest, all time.Duration
	for b.Loop() {
		page, _ := command(b, r.srv.Addr())
		with := browser(b, 1100, 700)
		begun := time.Now()
		r.run(with, chromedp.Navigate(page), painted)
		took := time.Since(begun)
		longest, all = max(longest, took), all+took
	}
	b.ReportMetric(all.Seconds()/float64(b.N), "s/paint")
	b.ReportMetric(longest.Seconds(), "s/longest")
	b.ReportMetric(0, "ns/op")
}

// With 2,000 locks and 10,000 contenders docent stays small. It asks at most 50 times in a second, and
// not at all without a page.
func TestManyLocks(t *testing.T) { //nolint:paralleltest // it measures times
	r := newRig(t, ui.Config{}, zktest.WithListen("127.0.0.1:0"))
	r.crowd(2000, 10_000, 20)
	var requests asked
	r.srv.OnRequest(requests.hear)
	page, process := command(t, r.srv.Addr())
	if n := requests.count(); n > 0 {
		t.Errorf("%d requests without a page", n)
	}
	b := browser(t, 1100, 700)
	begun := time.Now()
	r.run(b, chromedp.Navigate(page), painted)
	first := time.Since(begun)
	r.run(b, has("Live"), has("2000 locks"), has("Locks (2000)"), has("and 1800 more"), shot("many"))
	whole := time.Since(begun)
	mb := peak(t, process)
	t.Logf("first paint %v, everything read %v, %d MB, %d requests, at most %d in a second", first, whole, mb, requests.count(), requests.most())
	if mb >= 200 {
		t.Errorf("%d MB", mb)
	}
	if most := requests.most(); most > 50 {
		t.Errorf("%d requests in a second", most)
	}
	r.run(b, chromedp.Navigate("about:blank"))
	r.gone()
	before := requests.count()
	select {
	case <-time.After(2 * time.Second): // what is measured
	case <-t.Context().Done():
	}
	if after := requests.count(); after != before {
		t.Errorf("%d requests without a page", after-before)
	}
}

// gone waits until docent has no connection: the clients in memory have names.
func (r *rig) gone() {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), 20*time.Second)
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		alone := true
		for _, s := range r.srv.Sessions() {
			alone = alone && s.Client != zktest.TCPClient
		}
		if alone {
			return
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			r.Fatal("docent ui keeps its session without a page")
		}
	}
}
