package main

import (
	"bytes"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/docent-go/docent/recipes"
)

// written collects what a process writes.
type written struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (w *written) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.Write(p)
}

func (w *written) has(text string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Contains(w.buf.String(), text)
}

// Without a connection top says so, and since when what it shows is old.
func TestTopIsBlind(t *testing.T) {
	t.Parallel()
	srv := server(t)
	acquired(t, connect(t, srv), "/held")
	var out written
	cmd := docent(t, srv, "top", "--interval", "20ms")
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer end(cmd)
	eventually(t, func() bool { return out.has("/held") })
	if out.has("no connection") {
		t.Error("with a connection")
	}
	srv.Stop()
	eventually(t, func() bool { return out.has("no connection since ") && out.has("; what follows was seen at ") })
}

// A directory that does not exist is no empty one: its name may be wrong, or nobody has come yet.
func TestTopOfNothing(t *testing.T) {
	t.Parallel()
	srv := server(t)
	if s := do(t, srv, "top", "--count", "1", "/nix"); s.code != 0 || !strings.Contains(s.out, "the directory does not exist") {
		t.Errorf("%+v", s)
	}
	if s := do(t, srv, "top", "--count", "1", "/"); s.code != 0 || strings.Contains(s.out, "exist") {
		t.Errorf("%+v", s)
	}
}

// Bounds come of what was seen, and never contradict it.
func TestSightings(t *testing.T) {
	t.Parallel()
	at := func(second int) time.Time { return time.Unix(int64(second), 0) }
	seen := &sightings{}
	look := func(whole bool, second int, holder bool, told recipes.Since) recipes.Since {
		seen.next(whole)
		queue := []recipes.Contender{{Path: "/a/1", FencingToken: 7, Holder: holder, Held: told}}
		seen.narrow(queue, at(second), at(second+1))
		return queue[0].Held
	}
	for i, tt := range []struct {
		whole  bool // the round before was
		second int
		holder bool
		told   recipes.Since
		want   recipes.Since
	}{
		{true, 10, false, recipes.Since{}, recipes.Since{}},
		{true, 20, true, recipes.Since{Earliest: at(5)}, recipes.Since{Earliest: at(10), Latest: at(21)}},
		{true, 30, true, recipes.Since{Earliest: at(5), Latest: at(15)}, recipes.Since{Earliest: at(10), Latest: at(15)}},
		{true, 40, true, recipes.Since{Earliest: at(5), Latest: at(35)}, recipes.Since{Earliest: at(10), Latest: at(21)}},
		{true, 50, true, recipes.Since{Earliest: at(45)}, recipes.Since{Earliest: at(10), Latest: at(21)}}, // the server's clock is wrong
		{true, 60, true, recipes.Since{Earliest: at(12), Latest: at(12)}, recipes.Since{Earliest: at(12), Latest: at(12)}},
	} {
		if got := look(tt.whole, tt.second, tt.holder, tt.told); got != tt.want {
			t.Errorf("%d: %v, want %v", i, got, tt.want)
		}
	}
	seen.next(true)
	seen.next(false) // a look failed: what was known stays known
	if got := look(false, 70, true, recipes.Since{}); got != (recipes.Since{Earliest: at(10), Latest: at(21)}) {
		t.Errorf("after a look that failed: %v", got)
	}
	seen.next(true)
	seen.next(true) // a whole look without the node
	if got := look(true, 90, true, recipes.Since{Earliest: at(80)}); got != (recipes.Since{Earliest: at(80), Latest: at(91)}) {
		t.Errorf("another node: %v", got)
	}
	(*sightings)(nil).narrow([]recipes.Contender{{Holder: true}}, at(1), at(2)) // remembers nothing
	*seen = sightings{}
	look(true, 100, false, recipes.Since{}) // the first look of all fails behind this lock
	if got := look(false, 110, true, recipes.Since{}); got != (recipes.Since{Earliest: at(100), Latest: at(111)}) {
		t.Errorf("after a first look that failed: %v", got)
	}
}

// Keys that come at once are told apart.
func TestKeysOf(t *testing.T) {
	t.Parallel()
	got := keysOf("\x1b[B\x1b[B\x1bOAqé\r\x1b[1;5Cx\x1b")
	if want := []string{"\x1b[B", "\x1b[B", "\x1bOA", "q", "é", "\r", "\x1b[1;5C", "x", "\x1b"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A hold of which bounds are known says so.
func TestHeldFor(t *testing.T) {
	t.Parallel()
	now := time.Now()
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	for _, tt := range []struct {
		since recipes.Since
		want  string
	}{
		{recipes.Since{}, ""},
		{recipes.Since{Latest: ago(40 * time.Second)}, "at least 40s"},
		{recipes.Since{Earliest: ago(9500 * time.Millisecond)}, "less than 10s"},
		{recipes.Since{Earliest: ago(70 * time.Second), Latest: ago(10 * time.Second)}, "10s to 1m10s"},
		{recipes.Since{Earliest: ago(3700 * time.Millisecond), Latest: ago(3 * time.Second)}, "3s"},
		{recipes.Since{Earliest: ago(69100 * time.Millisecond), Latest: ago(10900 * time.Millisecond)}, "10s to 1m10s"},
		{recipes.Since{Earliest: ago(119*time.Minute + time.Second), Latest: ago(time.Hour)}, "1h00m to 2h00m"},
		{recipes.Since{Earliest: ago(time.Hour)}, "less than 1h01m"},
		{recipes.Since{Earliest: ago(100 * time.Hour)}, "less than 4d05h"},
		{recipes.Since{Earliest: ago(time.Hour), Latest: ago(time.Hour)}, "1h00m"},
	} {
		if got := heldFor(tt.since, now); got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.since, got, tt.want)
		}
	}
}

// many is a picture of 60 locks. The one of place 41 has the longest wait, that of 7 a short one,
// that of 50 the longest hold.
func many() *picture {
	p := &picture{at: time.Unix(10_000, 0)}
	ago := func(d time.Duration) *time.Time { return moment(p.at.Add(-d)) }
	for i := range 60 {
		s := summary{Path: fmt.Sprintf("/locks/l%02d", i), Kind: kindMutex, Holders: 1, Holder: "billing", Host: fmt.Sprint("web-", i)}
		held := ago(time.Minute)
		switch i {
		case 7:
			s.Waiters, s.Longest, s.LongestSince = 1, "1s", ago(time.Second)
		case 41:
			s.Waiters, s.Longest, s.LongestSince = 2, "5m00s", ago(5*time.Minute)
		case 50:
			held = ago(time.Hour)
		}
		s.held = recipes.Since{Earliest: *held}
		s.longest = s.held
		s.rows = []row{{Place: 1, State: holds, Client: "billing", Node: "n"}}
		p.locks = append(p.locks, s)
	}
	return p
}

// The candidates of an election wait by design, and hide no lock that is stuck.
func TestTopPutsElectionsBehind(t *testing.T) {
	t.Parallel()
	srv := server(t)
	c := connect(t, srv)
	for range 2 {
		e, err := recipes.NewLeaderLatch(c, "/leaders/a")
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = e.Campaign(t.Context()) }() // ends with the test
	}
	acquired(t, c, "/locks/a")
	waiting(t, c, "/locks/a")
	look := func(at string) (s summary) {
		l, err := mustLock(t.Context(), c, at)
		if err == nil {
			s, err = summarise(t.Context(), l, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	eventually(t, func() bool { return len(srv.Children("/leaders/a")) == 2 })
	election, lock := look("/leaders/a"), look("/locks/a")
	if election.Waiters != 1 || !election.campaigns || lock.campaigns {
		t.Fatalf("%+v, %+v", election, lock)
	}
	p := many()
	election.LongestSince = moment(p.at.Add(-72 * time.Hour))
	var paths []string
	for _, s := range byWait.sorted(append(p.locks, election))[:4] {
		paths = append(paths, s.Path)
	}
	if want := []string{"/locks/l41", "/locks/l07", "/leaders/a", "/locks/l50"}; !slices.Equal(paths, want) {
		t.Errorf("%q, want %q", paths, want)
	}
}

// Keys change what is shown, and the picture fits every terminal.
func TestTopKeys(t *testing.T) {
	t.Parallel()
	p := many()
	for name, tt := range map[string]struct {
		keys  []string
		want  []string // in this order
		not   string
		does  action
		lines int // of 24
	}{
		"at first":       {nil, []string{"\x1b[7m/locks/l41", "/locks/l07", "/locks/l50", "/locks/l00", "and 41 more", "q quit"}, "", nothing, 24},
		"by hold":        {[]string{"s"}, []string{"/locks/l50", "/locks/l41", "/locks/l07", "sort: hold"}, "", nothing, 24},
		"by waiters":     {[]string{"s", "s"}, []string{"/locks/l41", "/locks/l07", "sort: waiters"}, "", nothing, 24},
		"by path":        {[]string{"s", "s", "s"}, []string{"/locks/l00", "/locks/l01", "sort: path"}, "l41", nothing, 24},
		"all orders":     {[]string{"s", "s", "s", "s"}, []string{"/locks/l41", "sort: wait"}, "", nothing, 24},
		"waiting":        {[]string{"w"}, []string{"/locks/l41", "/locks/l07"}, "l00", nothing, 24},
		"typing":         {[]string{"/", "q", "s"}, []string{"no lock to show", "filter: qs_"}, "l00", nothing, 24},
		"a filter":       {[]string{"/", "l", "5", "x", "\x7f", "\n"}, []string{"l50", "l51", "filter: l5 (Esc)"}, "l41", nothing, 24},
		"by host":        {[]string{"/", "b", "-", "3", "3", "\n"}, []string{"l33"}, "l41", nothing, 24},
		"no filter":      {[]string{"/", "l", "5", "\x1b"}, []string{"l41"}, "filter:", nothing, 24},
		"dropped filter": {[]string{"/", "l", "5", "\n", "\x1b"}, []string{"l41"}, "filter:", nothing, 24},
		"down":           {[]string{"j", "\x1b[B", "k"}, []string{"/locks/l41", "\x1b[7m/locks/l07"}, "", nothing, 24},
		"far down":       {slices.Repeat([]string{"\x1b[B"}, 70), []string{"\x1b[7m/locks/l59", "and 41 more"}, "l41", nothing, 24},
		"far up":         {append(slices.Repeat([]string{"j"}, 40), slices.Repeat([]string{"\x1b[A"}, 50)...), []string{"\x1b[7m/locks/l41"}, "", nothing, 24},
		"details":        {[]string{"j", "\n"}, []string{"/locks/l07, mutex", "held by n", "holds"}, "l41", nothing, 24},
		"and back":       {[]string{"j", "\n", "\x1b"}, []string{"l41"}, "", nothing, 24},
		"a question":     {[]string{"a"}, []string{"y/n: ask the holder of /locks/l41 to release, billing web-41 n?"}, "", nothing, 24},
		"answered":       {[]string{"a", "y"}, nil, "", askHolder, 24},
		"refused":        {[]string{"a", "q"}, []string{"nothing was done: the answer was not y"}, "", nothing, 24},
		"quit":           {[]string{"q"}, nil, "", quit, 24},
		"interrupt":      {[]string{"a", "\x03"}, nil, "", quit, 24},
		"unknown":        {[]string{"\x1b[5~", "é"}, []string{"l41"}, "", nothing, 24},
	} {
		v := &view{keys: true}
		does := nothing
		v.lines(p, "head", "", size{80, 24})
		for _, k := range tt.keys {
			does = v.key(k, p)
			v.lines(p, "head", "", size{80, 24}) // as after each key
		}
		lines := v.lines(p, "head", "", size{80, 24})
		text := strings.Join(lines, "\n")
		rest, ok := text, true
		for _, want := range tt.want {
			var found bool
			_, rest, found = strings.Cut(rest, want)
			ok = ok && found
		}
		if !ok || tt.not != "" && strings.Contains(text, tt.not) || does != tt.does || len(lines) != tt.lines {
			t.Errorf("%s: %d lines, %v:\n%s", name, len(lines), does, text)
		}
	}
}

// Nothing is outside any terminal, and the word about an old picture is on it.
func TestTopFitsAnything(t *testing.T) {
	t.Parallel()
	p := many()
	for width := 1; width <= 200; width += 7 {
		for height := 1; height < 90; height++ {
			for _, v := range []*view{{}, {keys: true}, {keys: true, details: true, selected: "/locks/l07"}} {
				lines := v.lines(p, "head", "no connection", size{width, height})
				if len(lines) > height {
					t.Fatalf("%dx%d: %d lines", width, height, len(lines))
				}
				if height > 5 && width > 20 && !slices.Contains(lines, "no connection") {
					t.Fatalf("%dx%d: %q", width, height, lines)
				}
				for _, line := range lines {
					line = strings.NewReplacer(reversed, "", "\x1b[0m", "").Replace(line)
					if utf8.RuneCountInString(line) > width {
						t.Fatalf("%dx%d: %q", width, height, line)
					}
				}
			}
		}
	}
}

func end(cmd *exec.Cmd) {
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

// The locks that somebody waits for come first.
func TestTopShowsWaitsFirst(t *testing.T) {
	t.Parallel()
	srv := server(t)
	c, other := connect(t, srv), connect(t, srv)
	for _, at := range []string{"/a", "/b", "/c"} {
		acquired(t, c, at)
	}
	waiting(t, other, "/c")
	waiting(t, other, "/b")
	s := do(t, srv, "top", "--count", "1")
	c1, b, a := strings.Index(s.out, "/c "), strings.Index(s.out, "/b "), strings.Index(s.out, "/a ")
	if s.code != 0 || c1 < 0 || c1 > b || b > a {
		t.Errorf("want c, b, a: %+v", s)
	}
}
