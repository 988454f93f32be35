package client_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/zktest"
)

// Connect refuses a wrong option before it dials, and says what is wrong.
func TestOptionsInvalid(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		option client.Option
		want   string
	}{
		{"nil", nil, "nil Option"},
		{"session timeout 0", client.WithSessionTimeout(0), "session timeout 0s"},
		{"session timeout negative", client.WithSessionTimeout(-time.Second), "session timeout -1s"},
		{"session timeout in wrong unit", client.WithSessionTimeout(15), "session timeout 15ns"},
		{"session timeout of a millisecond", client.WithSessionTimeout(time.Millisecond), "session timeout 1ms is too short for this client"},
		{"session timeout too long", client.WithSessionTimeout(600 * time.Hour), "session timeout 600h"},
		{"connect timeout 0", client.WithConnectTimeout(0), "connect timeout 0s"},
		{"connect timeout negative", client.WithConnectTimeout(-1), "connect timeout -1ns"},
		{"TLS", client.WithTLS(nil), "WithTLS"},
		{"dialer", client.WithDialer(nil), "WithDialer"},
		{"logger", client.WithLogger(nil), "WithLogger"},
		{"rand", client.WithRand(nil), "WithRand"},
		{"auth without a colon", client.WithAuth("digest", "nopassword"), "the credentials of scheme digest are \"user:password\""},
		{"auth scheme", client.WithAuth("", "user:secret"), "scheme"},
		{"max request", client.WithMaxRequest(1023), "1023"},
		{"max request negative", client.WithMaxRequest(-1), "-1"},
		{"max reply", client.WithMaxReply(0), "0 bytes"},
		{"namespace empty", client.WithNamespace(""), "namespace"},
		{"namespace absolute", client.WithNamespace("/a"), "namespace"},
		{"namespace slash", client.WithNamespace("a/"), "namespace"},
		{"namespace dots", client.WithNamespace("a/.."), "namespace"},
		{"namespace NUL", client.WithNamespace("a\x00"), "namespace"},
	} {
		bubble(t, func(r *rig) {
			c, err := r.Open("zk", "a", tt.option)
			if c != nil || err == nil || !strings.HasPrefix(err.Error(), "client: ") || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: Connect = %v, %v; want %q", tt.name, c, err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("%s: %v shows the credentials", tt.name, err)
			}
			if n := r.Srv.Count(zktest.OpConnect); n != 0 {
				t.Errorf("%s: connected %d times", tt.name, n)
			}
		})
	}
}

func TestDefaultACL(t *testing.T) {
	t.Parallel()
	mine := zk.DigestACL(zk.PermAll, "user", "secret")[0]
	reader := zk.ACL{Perms: zk.PermRead | zk.PermCreate, Scheme: "world", ID: "anyone"}
	admin := zk.ACL{Perms: zk.PermAdmin, Scheme: "ip", ID: "10.0.0.1"}
	for _, tt := range []struct {
		name    string
		options []client.Option
		want    []zk.ACL
	}{
		{"open", nil, zk.WorldACL(zk.PermAll)},
		{"auth", []client.Option{client.WithAuth("digest", "user:secret")}, []zk.ACL{mine}},
		{"auth and more", []client.Option{
			client.WithDefaultACL(append(zk.AuthACL(zk.PermAll), reader)...),
			client.WithAuth("digest", "user:secret"),
		}, []zk.ACL{mine, reader}},
		{"own in place of auth", []client.Option{client.WithDefaultACL(reader), client.WithAuth("digest", "user:secret")}, []zk.ACL{reader}},
		{"own, the last one", []client.Option{client.WithDefaultACL(admin), client.WithDefaultACL(reader)}, []zk.ACL{reader}},
	} {
		bubble(t, func(r *rig) {
			c := r.Connect("a", tt.options...)
			_, err := c.Create(r.Ctx, "/p/a", nil, client.WithParents())
			r.Check(err)
			_, err = c.Multi(r.Ctx, client.CreateOp("/m", nil))
			r.Check(err)
			for _, path := range []string{"/p", "/p/a", "/m"} {
				acl, _, err := c.GetACL(r.Ctx, path)
				r.Check(err)
				if !sameACL(acl, tt.want) {
					t.Errorf("%s: %s has %v, want %v", tt.name, path, acl, tt.want)
				}
			}
		})
	}
}

func sameACL(a, b []zk.ACL) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func TestDefaultData(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		given := []byte("me")
		c := r.Connect("a", client.WithDefaultData(given))
		given[0] = 'x'
		inner.DefaultData(c)[0] = 'y'
		if got := string(inner.DefaultData(c)); got != "me" {
			t.Errorf("DefaultData = %q", got)
		}
		if got := inner.DefaultData(r.Connect("b")); got != nil {
			t.Errorf("without an address: %q", got)
		}
	})
}

// The default is the address that a server sees, as text.
func TestDefaultDataIsAddress(t *testing.T) {
	t.Parallel()
	srv := zktest.NewServer(t)
	c, err := client.Connect(t.Context(), srv.Addr(), testrig.Quiet())
	if err != nil {
		t.Fatal(err)
	}
	if got := string(inner.DefaultData(c)); got != "127.0.0.1" {
		t.Errorf("DefaultData = %q", got)
	}
	if err := c.CloseContext(t.Context()); err != nil {
		t.Error(err)
	}
}

// A named client writes an address, a process and its name; data that is given
// goes before it.
func TestName(t *testing.T) {
	t.Parallel()
	srv := zktest.NewServer(t)
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		opt  client.Option
		want string
	}{
		{nil, fmt.Sprintf("127.0.0.1 pid=%d host=%s client=billing eu", os.Getpid(), host)},
		{client.WithDefaultData([]byte("me")), "me"},
	} {
		opts := []client.Option{testrig.Quiet(), client.WithName("billing eu")}
		if tt.opt != nil {
			opts = append(opts, tt.opt)
		}
		c, err := client.Connect(t.Context(), srv.Addr(), opts...)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(inner.DefaultData(c)); got != tt.want {
			t.Errorf("DefaultData = %q, want %q", got, tt.want)
		}
		if err := c.CloseContext(t.Context()); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"", " x", "x ", "a\nb", "a\x00", "\xff", strings.Repeat("x", 129)} {
		if _, err := client.Connect(t.Context(), srv.Addr(), client.WithName(name)); err == nil || !strings.Contains(err.Error(), "name") {
			t.Errorf("name %q: %v", name, err)
		}
	}
}

func TestNegotiatedTimeout(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		for _, tt := range []struct{ ask, want time.Duration }{
			{10 * time.Second, 10 * time.Second},
			{100 * time.Millisecond, time.Second},
			{time.Hour, 2 * time.Minute},
		} {
			c := r.Connect(tt.ask.String(), client.WithSessionTimeout(tt.ask), client.WithConnectTimeout(time.Minute))
			if got := r.Session(c).Timeout(); got != tt.want {
				t.Errorf("asked for %v: %v, want %v", tt.ask, got, tt.want)
			}
		}
	})
}
