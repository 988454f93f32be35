package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
)

// Ls leaves out what the filters say, and never a lock that may be one that is looked for.
func TestListFilters(t *testing.T) {
	t.Parallel()
	srv := server(t)
	c, other := connect(t, srv, client.WithName("billing")), connect(t, srv)
	for _, at := range []string{"/locks/free", "/locks/waited"} {
		acquired(t, c, at)
	}
	waiting(t, other, "/locks/waited")
	first, second := acquired(t, c, "/locks/turned"), mutex(t, other, "/locks/turned")
	turned := make(chan error, 1)
	go func() {
		_, err := second.Acquire(t.Context())
		turned <- err
	}()
	eventually(t, func() bool { return strings.Contains(do(t, srv, "queue", "/locks/turned").out, "waits") })
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-turned; err != nil {
		t.Fatal(err)
	}
	if s := do(t, srv, "who", "/locks/turned"); !strings.Contains(s.out, "less than ") { // it had to wait
		t.Errorf("%+v", s)
	}
	ls := func(args ...string) string {
		s := do(t, srv, append([]string{"ls", "/locks", "--json"}, args...)...)
		var rows []struct{ Path string }
		if err := json.Unmarshal([]byte(s.out), &rows); err != nil {
			t.Fatal(err, s)
		}
		var got []string
		for _, r := range rows {
			got = append(got, strings.TrimPrefix(r.Path, "/locks/"))
		}
		return strings.Join(got, " ")
	}
	eventually(t, func() bool { return ls("--held-over", "50ms") == "free turned waited" })
	for want, args := range map[string][]string{
		"free turned waited": nil, "waited": {"--waiting", "--held-over", "1ms"}, "": {"--held-over", "1h"},
	} {
		if got := ls(args...); got != want {
			t.Errorf("%v: %v, want %s", args, got, want)
		}
	}
	if s := do(t, srv, "ls", "--held-over", "-1s"); s.code != exitUsage {
		t.Errorf("%+v", s)
	}
}

// Bounds of holds and the name of the host are in the output of programs, and --json is -o json.
func TestJSONAlias(t *testing.T) {
	t.Parallel()
	srv := server(t)
	c := connect(t, srv, client.WithName("billing"))
	acquired(t, c, "/a")
	waiting(t, connect(t, srv), "/a")
	for _, args := range [][]string{{"queue", "/a"}, {"who", "/a"}, {"ls"}, {"watch", "/a", "--once"}, {"check", "/a"}, {"deadlocks"}} {
		short, long := do(t, srv, append(args, "--json")...), do(t, srv, append(args, "-o", "json")...)
		if short.code != long.code || !json.Valid([]byte(short.out)) || !strings.HasPrefix(short.out, "[") {
			t.Errorf("%v: %+v, want %+v", args, short, long)
		}
	}
	if s := do(t, srv, "who", "/a", "--json", "-o", "wide"); s.code != 0 || json.Valid([]byte(s.out)) {
		t.Errorf("both: %+v", s)
	}
	if s := do(t, srv, "who", "/a", "--json=false"); s.code != 0 || json.Valid([]byte(s.out)) {
		t.Errorf("off: %+v", s)
	}
	var rows []struct {
		HostName     string     `json:"host_name"`
		HeldSince    *time.Time `json:"held_since"`
		HeldEarliest *time.Time `json:"held_earliest"`
		HeldLatest   *time.Time `json:"held_latest"`
	}
	if err := json.Unmarshal([]byte(do(t, srv, "who", "/a", "--json").out), &rows); err != nil {
		t.Fatal(err)
	}
	if r := rows[0]; r.HostName == "" || r.HeldEarliest == nil || r.HeldLatest == nil || r.HeldSince == nil || !r.HeldSince.Equal(*r.HeldLatest) {
		t.Errorf("%+v", r)
	}
}

// A lock is left out only if its holders are known to have held for less.
func TestHeldOver(t *testing.T) {
	t.Parallel()
	now := time.Now()
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	for _, tt := range []struct {
		holders int
		since   recipes.Since
		want    bool
	}{
		{0, recipes.Since{}, false},
		{1, recipes.Since{}, true}, // nothing is known
		{1, recipes.Since{Earliest: ago(59 * time.Second)}, false},
		{1, recipes.Since{Earliest: ago(61 * time.Second)}, true},
		{1, recipes.Since{Earliest: ago(61 * time.Second), Latest: ago(time.Second)}, true},
		{1, recipes.Since{Latest: ago(time.Hour)}, true},
	} {
		if got := (summary{Holders: tt.holders, longest: tt.since}).heldOver(time.Minute, now); got != tt.want {
			t.Errorf("%+v: %v", tt, got)
		}
	}
}
