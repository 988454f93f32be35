package sessions_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/bench/internal/sessions"
)

// The prices come from the runs of one size, and the model of another size is
// made of them. Results that were saved say the same.
func TestText(t *testing.T) {
	t.Parallel()
	const timeout = 15 * time.Second
	r := &sessions.Results{Version: "ZooKeeper 3.8.0", Setting: "one server, fsync"}
	r.Base.ServerCPU = 0.01
	for _, n := range []int{100, 1000} {
		for _, l := range sessions.Loads(n, timeout) {
			e := l.Expected(r.Policy)
			one := sessions.Result{Load: l, Requests: e.Requests(), Writes: e.Heartbeats, Watches: e.Watches}
			one.ServerCPU = 0.01 + e.Pings*50e-6 + e.Heartbeats*200e-6
			r.All = append(r.All, one)
		}
	}
	text := sessions.Text(r)
	for _, want := range []string{
		"Sessions of 15s", "runs with 1000 sessions: 50.0 us for a ping, 200 us for a heartbeat, and 1.00 %",
		"| 1000     | holding |        600 |   600 |      400 |   400 |    1000 |  1000 |         10.0 |  10.0 |",
		"| 100      |    idle |       20.0 |  20.0 |        0 |     0 |       0 |     0 |         1.10 |  1.10 |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	path := filepath.Join(t.TempDir(), "sessions.json")
	if err := sessions.Write(r, path); err != nil {
		t.Fatal(err)
	}
	again, err := sessions.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := sessions.Text(again); got != text {
		t.Errorf("read again:\n%s", got)
	}
}
