package command_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docent-go/docent/integration/harness"
)

// page is a page of docent ui without a browser.
type page struct {
	status, picture atomic.Pointer[string]
}

// open opens a page of a view.
func (w *world) open(address, view string) *page {
	w.Helper()
	req, err := http.NewRequestWithContext(w.ctx, http.MethodGet, address+"events?view="+view, http.NoBody)
	w.check(err)
	res, err := http.DefaultClient.Do(req)
	w.check(err)
	w.Cleanup(func() { _ = res.Body.Close() })
	p := new(page)
	go func() { // ends with the body
		lines := bufio.NewScanner(res.Body)
		lines.Buffer(nil, 1<<20)
		for kind := ""; lines.Scan(); {
			if name, is := strings.CutPrefix(lines.Text(), "event: "); is {
				kind = name
			}
			data, is := strings.CutPrefix(lines.Text(), "data: ")
			switch {
			case is && kind == "status":
				p.status.Store(&data)
			case is:
				p.picture.Store(&data)
			}
		}
	}()
	return p
}

// shows reports whether the page is in a state, and has a lock with so many waiters.
func (p *page) shows(state, lock string, waiters int) bool {
	var status struct{ State string }
	var picture struct {
		Locks []struct {
			Path             string
			Holders, Waiters int
		}
	}
	s, q := p.status.Load(), p.picture.Load()
	if s == nil || q == nil || json.Unmarshal([]byte(*s), &status) != nil || json.Unmarshal([]byte(*q), &picture) != nil {
		return false
	}
	for _, l := range picture.Locks {
		if l.Path == lock {
			return status.State == state && l.Holders == 1 && l.Waiters == waiters
		}
	}
	return false
}

// started starts a docent that ends with the test.
func (w *world) started(cmd *exec.Cmd) {
	w.Helper()
	w.check(cmd.Start())
	w.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
}

// docent top and docent ui show a lock, its waiter and an election of a real server. They say within five
// seconds that the server was killed, and go on by themselves when it is back.
func TestPicturesOfARestart(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	t.Cleanup(cancel)
	w := &world{T: t, ctx: ctx}
	server := harness.StartServer(ctx, t, harness.WithTickTime(tick))
	top, said := new(text), new(text)
	docent := func(args ...string) *exec.Cmd {
		cmd := w.command(server.Addr(), args...)
		cmd.Stderr = said
		return cmd
	}
	run := func(command, path string) { // its hold outlasts the restart
		w.started(docent(command, "--session-timeout", "40s", path, "--", "sleep", "1000"))
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("top:\n%s\nstandard error:\n%s", top, said)
		}
	})
	run("run", "/locks/orders")
	run("elect", "/leaders/nightly")
	ui := docent("ui", "--listen", "127.0.0.1:0")
	out, err := ui.StdoutPipe()
	w.check(err)
	w.started(ui)
	address, err := bufio.NewReader(out).ReadString('\n')
	w.check(err)
	locks, elections := w.open(strings.TrimSpace(address), "locks"), w.open(strings.TrimSpace(address), "elections")
	w.eventually(patient, "the page with a held lock", func() bool { return locks.shows("live", "/locks/orders", 0) })
	run("run", "/locks/orders")
	shows := docent("top", "--interval", "500ms")
	shows.Stdout = top
	w.started(shows)
	pictures := func() bool {
		return locks.shows("live", "/locks/orders", 1) && elections.shows("live", "/leaders/nightly", 0)
	}
	w.eventually(patient, "the page with the waiter and the election", pictures)
	w.eventually(patient, "the lines of top", func() bool {
		return strings.Contains(top.String(), "/locks/orders") && strings.Contains(top.String(), "/leaders/nightly")
	})

	const gone = "no connection since"
	w.check(server.Kill(ctx))
	w.eventually(atOnce, "the lost server on both screens", func() bool {
		return locks.shows("lost", "/locks/orders", 1) && strings.Contains(top.String(), gone)
	})
	w.check(server.Start(ctx))
	w.eventually(patient, "the same page again", pictures)
	w.eventually(patient, "the lines of top again", func() bool {
		since := top.String()
		since = since[strings.LastIndex(since, gone):]
		return strings.Count(since, "WAITERS") >= 2 && strings.Count(since, "/locks/orders") >= 2 // the first is the old picture
	})
}
