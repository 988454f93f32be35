package main

import (
	"strings"
	"testing"

	"github.com/docent-go/docent/zktest"
)

func TestLogin(t *testing.T) {
	t.Parallel()
	user := zktest.WithSASLUser("ops", "s3cret")
	offers, wants, none := server(t, user), server(t, user, zktest.WithRequiredAuth()), server(t)
	with := func(password string, args ...string) []string {
		return append([]string{"--sasl-user", "ops", "--sasl-password", password}, args...)
	}
	for _, tt := range []struct {
		srv  *zktest.Server
		args []string
		code int
		says string
	}{
		{offers, with("s3cret", "ls"), 0, ""},
		{wants, with("s3cret", "ls"), 0, ""},
		{offers, with("s3cret", "check"), 0, `: DIGEST-MD5; this command logs in: DIGEST-MD5 user "ops"`},
		{wants, with("s3cret", "check"), 0, `: DIGEST-MD5, and required; this command logs in`},
		{offers, []string{"check"}, 0, ": DIGEST-MD5"},
		{wants, []string{"check"}, 1, ": DIGEST-MD5, and required: see --sasl-user"},
		{none, []string{"check"}, 0, ": none is offered"},
		{offers, with("wrong-pa55", "ls"), 1, `user "ops" or the password is wrong`},
		{offers, []string{"--sasl-user", "ops", "ls"}, 1, "belong together"},
		{offers, []string{"--kerberos-principal", "ops", "ls"}, 1, "belong together"},
		{offers, with("s3cret", "--kerberos-cache", "/nowhere", "ls"), 1, "give one"},
		{offers, []string{"--kerberos-cache", "/nowhere", "ls"}, 1, "kerberos: "},
	} {
		s := do(t, tt.srv, tt.args...)
		all := s.out + s.err
		if (s.code == 0) != (tt.code == 0) || !strings.Contains(all, tt.says) || strings.Contains(all, "s3cret") || strings.Contains(all, "wrong-pa55") {
			t.Errorf("%v: %+v, want %q", tt.args, s, tt.says)
		}
	}
	for _, s := range none.Sessions() { // the questions of check leave no session
		t.Errorf("left behind: %v", s)
	}
}
