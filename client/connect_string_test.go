package client_test

import (
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
)

func TestConnectStringGood(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		in      string
		servers []string
		chroot  string
	}{
		{"zk:2181", []string{"zk:2181"}, ""},
		{"zk", []string{"zk:2181"}, ""},
		{"10.0.0.1", []string{"10.0.0.1:2181"}, ""},
		{"a:1,b:65535", []string{"a:1", "b:65535"}, ""},
		{" a:1 , b\r", []string{"a:1", "b:2181"}, ""},
		{"[::1]:2182", []string{"[::1]:2182"}, ""},
		{"[::1]", []string{"[::1]:2181"}, ""},
		{"[fe80::1%eth0]:2181,b", []string{"[fe80::1%eth0]:2181", "b:2181"}, ""},
		{"a,a:2181,b", []string{"a:2181", "b:2181"}, ""},
		{"a:1/", []string{"a:1"}, ""},
		{"a:1/app", []string{"a:1"}, "/app"},
		{"a:1,b:2/app/sub/", []string{"a:1", "b:2"}, "/app/sub"},
		{"a/äöü", []string{"a:2181"}, "/äöü"},
	} {
		servers, chroot, err := client.ParseConnectString(tt.in)
		if err != nil || !slices.Equal(servers, tt.servers) || chroot != tt.chroot {
			t.Errorf("%q: %v, %q, %v; want %v, %q", tt.in, servers, chroot, err, tt.servers, tt.chroot)
		}
	}
}

// Every refusal names what was given and what to do about it.
func TestConnectStringBad(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ in, remedy string }{
		{"", "expected \"host:port"},
		{" \t", "expected \"host:port"},
		{",", "server 1 is empty"},
		{"a:1,,b:2", "server 2 is empty"},
		{"a:1,", "server 2 is empty"},
		{",a:1", "server 1 is empty"},
		{"a:1, ,b:1", "server 2 is empty"},
		{"/app", "server 1 is empty"},
		{"zk://a:2181", "has a scheme"},
		{"http://a:2181/app", "has a scheme"},
		{"a b:2181", "no blanks"},
		{"a:", "port"},
		{"a:0", "1 to 65535"},
		{"a:65536", "1 to 65535"},
		{"a:1,b:99999", "server 2: the port is not a number from 1 to 65535"},
		{"a:-1", "1 to 65535"},
		{"a:+2181", "1 to 65535"},
		{"a:port", "1 to 65535"},
		{":2181", "host is missing"},
		{"[]:2181", "host is missing"},
		{"a:2181;b:2181", "commas, not semicolons"},
		{"a;b", "commas, not semicolons"},
		{"a:2181:2181", "more than one colon"},
		{"::1", "brackets"},
		{"::1:2181", "brackets"},
		{"2001:db8::1", "brackets"},
		{"[::1", "bracket"},
		{"::1]", "bracket"},
		{"[::1]x:2181", "bracket"},
		{"a]", "bracket"},
		{"[a", "bracket"},
		{"a\x00b:2181", "host"},
		{"a\x7f:2181", "host"},
		{"a:1//", "the chroot has no name between its slashes; leave them out"},
		{"a:1///", "no name between its slashes"},
		{"a:1//app", "chroot"},
		{"a:1/app//", "chroot"},
		{"a:1/app//sub", "chroot"},
		{"a:1/app/..", "chroot"},
		{"a:1/.", "chroot"},
		{"a:1/app\n", "chroot"},
		{"a:1/\U0001f512", "chroot"},
		{"a:1/a\xff", "chroot"},
	} {
		servers, chroot, err := client.ParseConnectString(tt.in)
		switch {
		case err == nil:
			t.Errorf("%q: accepted as %v, %q", tt.in, servers, chroot)
		case !strings.Contains(err.Error(), strconv.Quote(tt.in)), !strings.Contains(err.Error(), tt.remedy):
			t.Errorf("%q: error %q does not name it or lacks %q", tt.in, err, tt.remedy)
		}
	}
}

// A connect string with an @ may hold a password, in any of its parts: the error
// names the place and quotes nothing.
func TestConnectStringKeepsPasswords(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ in, remedy string }{
		{"admin:hunter2@zk1:2181,zk2:2181", "server 1: a host has no blanks and no user name; credentials are given with WithAuth"},
		{"zk1:2181,admin:hunter2@zk2:2181/app", "server 2: a host has no blanks and no user name"},
		{"admin:hunter2,more@zk1:2181", "server 1: the port is not a number"},
		{"hunter2@zk1", "WithAuth"},
		{"zk://admin:hunter2@zk1:2181", "scheme"},
		{"hunter2@zk://zk1:2181", "scheme"},
		{"zk1:hunter2/app@home", "server 1: the port is not a number"},
		{"zk1:2181/admin:hunter2@zk2//app", "chroot: "},
		{"zk1:2181/./admin:hunter2@zk2", "chroot: "},
		{"zk1:2181/admin:hunter2@zk2\x00", "chroot: "},
	} {
		_, _, err := client.ParseConnectString(tt.in)
		wantErrText(t, err, tt.remedy, "hunter2")
	}
	bubble(t, func(r *rig) {
		_, err := r.Open("zk1:2181/admin:hunter2@zk2:2181", "a")
		testrig.WantErr(t, err, client.ErrNoChroot)
		wantErrText(t, err, "not shown", "hunter2")
	})
}

// Connect refuses before it does anything.
func TestConnectRefusesConnectString(t *testing.T) {
	t.Parallel()
	if c, err := client.Connect(t.Context(), "a:0"); err == nil || c != nil {
		t.Errorf("Connect = %v, %v", c, err)
	}
}

// A string that is accepted can be dialed. Every server has a host and a port, no
// server is there twice, and the chroot is a path. Written out and parsed again,
// the string gives the same.
func FuzzConnectString(f *testing.F) {
	for _, s := range []string{"a:1,b/c", "[::1]:2181", "[::1", "a:1//", "a:1/b/", "zk://a", "u@h", " a ,b", "::", "[a]b", "a:+1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		servers, chroot, err := client.ParseConnectString(s)
		if err != nil {
			if len(servers) != 0 || chroot != "" {
				t.Errorf("%q: an error beside %v, %q", s, servers, chroot)
			}
			return
		}
		if len(servers) == 0 {
			t.Fatalf("%q: no server", s)
		}
		seen := map[string]bool{}
		for _, server := range servers {
			host, port, err := net.SplitHostPort(server)
			if err != nil || host == "" || strings.ContainsAny(host, "[]@/, \t\r\n\x00") {
				t.Errorf("%q: server %q, host %q, %v", s, server, host, err)
			}
			if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
				t.Errorf("%q: port %q", s, port)
			}
			if seen[server] {
				t.Errorf("%q: %q twice", s, server)
			}
			seen[server] = true
		}
		if chroot != "" && (chroot == "/" || client.ValidatePath(chroot) != nil) {
			t.Errorf("%q: chroot %q", s, chroot)
		}
		again, root, err := client.ParseConnectString(strings.Join(servers, ",") + chroot)
		if err != nil || !slices.Equal(again, servers) || root != chroot {
			t.Errorf("%q: %v %q, written out: %v %q %v", s, servers, chroot, again, root, err)
		}
	})
}
