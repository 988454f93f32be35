package main

import (
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
)

// An error of the library names options of Go. The command has flags.
func TestErrorsNameFlags(t *testing.T) {
	t.Parallel()
	srv := server(t)
	c := connect(t, srv, client.WithAuth("digest", "ops:secret"))
	if _, err := c.Create(t.Context(), "/closed", nil, client.ACL(zk.AuthACL(zk.PermAll)...)); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args []string
		says string
	}{
		{[]string{"who", "/closed"}, "pass them with --auth"},
		{[]string{"--auth", "digest:ops:wrong", "who", "/closed"}, "check --auth"},
		{[]string{"--auth", "ops:secret", "who", "/closed"}, "the servers refuse what --auth gave"},
		{[]string{"--servers", srv.Addr() + "/none", "ls"}, "use --namespace"},
		{[]string{"check", "/closed"}, "pass them with --auth"},
		{[]string{"check", "/closed"}, "1 directory could not be listed"},
	} {
		s := do(t, srv, tt.args...)
		all := s.out + s.err
		if s.code == 0 || !strings.Contains(all, tt.says) || strings.Contains(all, "With") {
			t.Errorf("%v: %+v", tt.args, s)
		}
		if strings.Contains(tt.says, "--auth") && strings.Contains(all, "DOCENT_SERVERS") {
			t.Errorf("%v: it is not the servers' address: %+v", tt.args, s)
		}
	}
}
