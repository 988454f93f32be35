package sessions_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/bench/internal/sessions"
	"github.com/docent-go/docent/zktest"
)

// dialogue talks to a process of sessions.
type dialogue struct {
	t   *testing.T
	in  io.Writer
	out *bufio.Reader
}

func talk(t *testing.T) *dialogue {
	t.Helper()
	theirIn, in := io.Pipe()
	out, theirOut := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- sessions.Serve(t.Context(), theirIn, theirOut) }()
	t.Cleanup(func() {
		_ = in.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return &dialogue{t, in, bufio.NewReader(out)}
}

func (d *dialogue) ask(command string) string {
	d.t.Helper()
	if _, err := io.WriteString(d.in, command+"\n"); err != nil {
		d.t.Fatal(err)
	}
	line, err := d.out.ReadString('\n')
	if err != nil {
		d.t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// Every session of a load is there, and what it does is what the load says.
func TestServe(t *testing.T) {
	t.Parallel()
	srv := zktest.NewServer(t, zktest.WithListen("127.0.0.1:0"))
	d := talk(t)
	load := sessions.Load{Idle: 2, Waiting: 6, Holding: 3, Timeout: 4 * time.Second}
	order, err := json.Marshal(sessions.Order{Load: load, Addrs: []string{srv.Addr()}, Root: "/s", Period: "500ms"})
	if err != nil {
		t.Fatal(err)
	}
	if got := d.ask("open " + string(order)); got != "ok" {
		t.Fatal(got)
	}
	if got := len(srv.Sessions()); got != load.Sessions() {
		t.Errorf("%d sessions", got)
	}
	for i := range load.Holding {
		for len(srv.Children(fmt.Sprintf("/s/lock%d", i))) != 3 {
			time.Sleep(time.Millisecond)
		}
	}
	for _, command := range []string{"work", "begin"} {
		if got := d.ask(command); got != "ok" {
			t.Errorf("%s: %s", command, got)
		}
	}
	var beats sessions.Beats
	for beats.Number < load.Holding {
		if err := json.Unmarshal([]byte(strings.TrimPrefix(d.ask("end"), "ok ")), &beats); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	if beats.Lost != 0 || beats.Failed != 0 || beats.P99 <= 0 || beats.Left <= 0 {
		t.Errorf("%+v", beats)
	}
	var m sessions.Memory
	if err := json.Unmarshal([]byte(strings.TrimPrefix(d.ask("memory"), "ok ")), &m); err != nil || m.Resident <= 0 || m.Goroutines < load.Sessions() {
		t.Errorf("%+v, %v", m, err)
	}
	if got := d.ask("what"); !strings.HasPrefix(got, "error ") {
		t.Errorf("what: %s", got)
	}
	if got := d.ask("close"); got != "ok" {
		t.Errorf("close: %s", got)
	}
	if got := len(srv.Sessions()); got != 0 {
		t.Errorf("%d sessions are left", got)
	}
	if got := d.ask("quit"); got != "ok" {
		t.Errorf("quit: %s", got)
	}
}
