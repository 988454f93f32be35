//go:build unix

package main

import (
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/docent-go/docent/recipes/discovery"
	"github.com/docent-go/docent/zktest"
)

// port is one where somebody listens until the test ends.
func port(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func TestRegisterExitCodes(t *testing.T) {
	t.Parallel()
	srv := server(t)
	for _, tt := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"orders", "--port", "80", "--", "sh", "-c", "exit 7"}, 7, ""},
		{[]string{"orders", "--port", "80", "--probe=false", "--", "true"}, 0, ""},
		{[]string{"orders", "--port", "80", "--", "sh", "-c", "kill -9 $$"}, exitSignalled + 9, ""},
		{[]string{"orders", "--port", "80", "--", "no-such-command"}, exitNotFound, "no-such-command"},
		{[]string{"orders", "--", "true"}, exitUsage, "--port"},
		{[]string{"orders", "--port", "80", "true"}, exitUsage, "two dashes"},
		{[]string{"orders", "--port", "80", "--"}, exitUsage, "COMMAND"},
		{[]string{"orders", "--port", "80", "--zone", "west", "--", "true"}, exitUsage, "no place for Zone"},
		{[]string{"orders", "--port", "80", "--metadata", "x", "--", "true"}, exitUsage, "key=value"},
		{[]string{"orders", "--port", "80", "--address", "a b", "--", "true"}, exitUsage, "neither a host name"},
	} {
		s := result(t, docent(t, srv, append([]string{"services", "register", "--base", "/services"}, tt.args...)...))
		if s.code != tt.code || !strings.Contains(s.err, tt.says) || tt.says == "" && s.err != "" {
			t.Errorf("%v: %+v", tt.args, s)
		}
	}
	if left := srv.Children("/services/orders"); len(left) > 0 {
		t.Errorf("instances are left: %v", left)
	}
}

// The instance stands while the command runs. After SIGTERM it is gone before the command is told.
func TestRegister(t *testing.T) {
	t.Parallel()
	srv := server(t)
	cmd := docent(t, srv, "services", "register", "orders", "--base", "/services", "--codec", "map", "--id", "a", "--zone", "west",
		"--metadata", "team=blue", "--port", port(t), "--", "sh", "-c", `trap 'echo told; exit 3' TERM; echo "$DOCENT_SERVICE"; while :; do sleep 0.05; done`)
	out, errs := new(text), new(text)
	cmd.Stdout, cmd.Stderr = out, errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return len(srv.Children("/services/orders")) == 1 })
	node, _ := srv.Node("/services/orders/a")
	for _, has := range []string{`"address":"127.0.0.1"`, `"zone":"west"`, `"team":"blue"`} {
		if !strings.Contains(string(node.Data), has) {
			t.Errorf("no %s in %s", has, node.Data)
		}
	}
	removal := srv.NewGate(zktest.Match{Path: "/services/orders/a", Op: zktest.OpMulti}, false)
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return len(removal.Parked()) == 1 })
	// A command that is told too early says so in this time; it takes some 50 ms.
	for early := time.Now().Add(500 * time.Millisecond); time.Now().Before(early) && !t.Failed(); time.Sleep(5 * time.Millisecond) {
		if strings.Contains(out.String(), "told") {
			t.Error("the command was told to end while its instance stood")
		}
	}
	removal.Open()
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 3 || out.String() != "orders\ntold\n" || strings.Contains(errs.String(), "docent:") {
		t.Errorf("code %d, out %q, err %q", code, out.String(), errs)
	}
	if left := srv.Children("/services/orders"); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}

// The instance is not registered before the command listens.
func TestRegisterWaitsForTheCommand(t *testing.T) {
	t.Parallel()
	srv := server(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	_ = l.Close()
	cmd := docent(t, srv, "services", "register", "orders", "--base", "/services", "--connect-timeout", "100ms", "--port", at[strings.LastIndex(at, ":")+1:], "--", "sleep", "60")
	errs := new(text)
	cmd.Stderr = errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return strings.Contains(errs.String(), "nobody listens at "+at+" yet") })
	if there := srv.Children("/services/orders"); len(there) > 0 {
		t.Errorf("%v is registered", there)
	}
	if l, err = net.Listen("tcp", at); err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // nobody needs it any more
	eventually(t, func() bool { return len(srv.Children("/services/orders")) == 1 })
	_ = cmd.Process.Signal(syscall.SIGTERM)
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != exitSignalled+int(syscall.SIGTERM) {
		t.Errorf("code %d: %s", code, errs)
	}
	if left := srv.Children("/services/orders"); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}

// If a server refuses the instance, the command ends, and docent says why.
func TestRegisterRefused(t *testing.T) {
	t.Parallel()
	srv := server(t)
	srv.Fail(zktest.Match{Path: "/services/orders/a", Op: zktest.OpCreate, Times: zktest.Always}, zktest.CodeNoAuth)
	s := result(t, docent(t, srv, "services", "register", "orders", "--base", "/services", "--id", "a", "--port", port(t), "--", "sleep", "60"))
	if s.code != exitOwn || !strings.Contains(s.err, "/services/orders/a") {
		t.Errorf("%+v", s)
	}
}

// A server refuses the instance, and the command ignores SIGTERM: docent says why at once, and
// kills the command after --grace.
func TestRegisterRefusedAndStubborn(t *testing.T) {
	t.Parallel()
	srv := server(t)
	create := zktest.Match{Path: "/services/orders/a", Op: zktest.OpCreate, Times: zktest.Always}
	srv.Fail(create, zktest.CodeNoAuth)
	gate := srv.NewGate(create, false) // until the command ignores it
	cmd := docent(t, srv, "services", "register", "orders", "--base", "/services", "--id", "a", "--port", port(t), "--grace", "200ms",
		"--", "sh", "-c", `trap "" TERM; echo ignores; while :; do sleep 0.05; done`)
	out, errs := new(text), new(text)
	cmd.Stdout, cmd.Stderr = out, errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { // ends with the command
		_ = cmd.Wait()
		close(ended)
	}()
	eventually(t, func() bool { return strings.Contains(out.String(), "ignores") })
	gate.Open()
	select {
	case <-ended:
	case <-time.After(15 * time.Second):
		_ = cmd.Process.Kill()
		<-ended
		t.Fatalf("the command goes on without an instance: %s", errs)
	}
	if code := cmd.ProcessState.ExitCode(); code != exitOwn || !strings.Contains(errs.String(), "SIGKILL in 200ms: discovery: /services/orders/a") || strings.Count(errs.String(), "docent:") != 2 {
		t.Errorf("code %d, %s", code, errs)
	}
}

// ZooKeeper is away when docent is told to end: the command is told all the same, soon.
func TestRegisterEndsWhileAway(t *testing.T) {
	t.Parallel()
	srv := server(t)
	cmd := docent(t, srv, "services", "register", "orders", "--base", "/services", "--id", "a", "--port", port(t),
		"--", "sh", "-c", `trap 'echo told; exit 3' TERM; while :; do sleep 0.05; done`)
	out, errs := new(text), new(text)
	cmd.Stdout, cmd.Stderr = out, errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return len(srv.Children("/services/orders")) == 1 })
	srv.Stop()
	_ = cmd.Process.Signal(syscall.SIGTERM)
	begun := time.Now()
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 3 || out.String() != "told\n" || !strings.Contains(errs.String(), "removed with the session") || time.Since(begun) > 15*time.Second {
		t.Errorf("code %d after %v, out %q, err %q", code, time.Since(begun), out, errs)
	}
}

// Another session's node stands at the place: docent says so, and registers when that is gone.
func TestRegisterTaken(t *testing.T) {
	t.Parallel()
	srv := server(t)
	first := instance(t, srv, discovery.ServiceInstance{ID: "a", Address: "10.0.0.7", Port: 80})
	cmd := docent(t, srv, "services", "register", "orders", "--base", "/services", "--id", "a", "--port", port(t), "--", "sleep", "60")
	errs := new(text)
	cmd.Stderr = errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return strings.Contains(errs.String(), "not registered yet: ") })
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return len(srv.Children("/services/orders")) == 1 })
	_ = cmd.Process.Signal(syscall.SIGTERM)
	_ = cmd.Wait()
	if n := strings.Count(errs.String(), "docent: "); n != 1 {
		t.Errorf("said %d lines, want one: %s", n, errs)
	}
}
