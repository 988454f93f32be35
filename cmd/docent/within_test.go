package main

import (
	"math"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
)

func TestNested(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", longestName-len(" within=0x2a"))
	for _, tt := range []struct{ environment, name, nested, outer string }{
		{"", "docent", "docent", ""},
		{"0x2a", "docent", "docent within=0x2a", "0x2a"},
		{"0xff00000000000001", "docent", "docent within=0xff00000000000001", "0xff00000000000001"},
		{"-0x2a", "docent", "docent", ""},
		{"0", "docent", "docent", ""},
		{"soon", "docent", "docent", ""},
		{"0x2a", "a within=0x1", "a within=0x1 within=0x2a", "0x2a"},
		{"0x2a", long, long + " within=0x2a", "0x2a"},
		{"0x2a", long + "x", long + "x", ""},
	} {
		if got := nested(tt.name, tt.environment); got != tt.nested {
			t.Errorf("%s within %q is %q", tt.name, tt.environment, got)
		}
		if name, outer := unnested(tt.nested); name != tt.name || outer != tt.outer {
			t.Errorf("%q is %q within %q", tt.nested, name, outer)
		}
	}
	if name, outer := unnested("a within=reason"); name != "a within=reason" || outer != "" {
		t.Errorf("%q within %q", name, outer)
	}
}

// A server whose number is 128 or more makes sessions that are negative.
func TestSessionWithoutSign(t *testing.T) {
	t.Parallel()
	if got := hex(-1 << 56); got != "0xff00000000000000" {
		t.Errorf("%s", got)
	}
	for owner, want := range map[int64]string{0: "", 42: "0x2a", -1 << 56: "0xff00000000000000", math.MinInt64: ""} { // a container of Keeper
		if got := sessionOf(owner); got != want {
			t.Errorf("%#x: %q", owner, got)
		}
	}
}

// What other clients have written neither moves the cursor nor turns a line around.
func TestShown(t *testing.T) {
	t.Parallel()
	if got := shown("a\x1b[2J\u202eb\u2069\u009bé"); got != "a?[2J?b??é" {
		t.Errorf("%q", got)
	}
	srv := server(t)
	c := connect(t, srv)
	const hidden = "/locks/\u202ehidden"
	if _, err := c.Create(t.Context(), hidden, nil, client.WithParents(), client.ACL(zk.DigestACL(zk.PermAll, "a", "b")...)); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"ls", "deadlocks"} {
		if s := do(t, srv, command); strings.Contains(s.err, "\u202e") || !strings.Contains(s.err, "may not list /locks/?hidden") {
			t.Errorf("%s: %+v", command, s)
		}
	}
}
