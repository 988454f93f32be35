package seqqueue_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/docent-go/docent/recipes/internal/seqqueue"
)

const prefix = "lock-"

var tags = seqqueue.Tags{Contenders: []string{prefix, seqqueue.Bare}}

// sorted is the queue as Curator sorts it: by the text after the last prefix, or by the whole
// name without one, compared as text. Children without a number there are left out.
func sorted(children []string) []string {
	var in []string
	for _, name := range children {
		if key := curatorKeyOrName(prefix, name); tenDigits.MatchString(key) {
			in = append(in, name)
		}
	}
	slices.SortFunc(in, func(a, b string) int {
		ka, kb := curatorKeyOrName(prefix, a), curatorKeyOrName(prefix, b)
		switch {
		case ka != kb:
			return strings.Compare(ka, kb)
		case a == ka: // a number alone comes last, though no counter gives a number twice
			return 1
		case b == kb:
			return -1
		}
		return strings.Compare(a, b)
	})
	return in
}

// wantQueue compares everything that is said about children with the slow
// oracle, for every contender and two rules.
func wantQueue(t *testing.T, children []string) {
	t.Helper()
	before := slices.Clone(children)
	want := sorted(children)
	got := seqqueue.LineOf(tags, children)
	if len(got) != len(want) {
		t.Fatalf("%q: line %v, want %v", children, got, want)
	}
	wrapped := slices.ContainsFunc(children, func(name string) bool {
		key, tagged := curatorKey(prefix, name)
		return tagged && wrappedNumber.MatchString(key)
	})
	odd := func(n seqqueue.Node) bool { return n.Sequence()%2 == 1 }
	for i, own := range got {
		if own.Name != want[i] {
			t.Fatalf("%q: place %d has %s, want %s", children, i, own.Name, want[i])
		}
		v := seqqueue.Judge(tags, own, children, seqqueue.AllBlock)
		if !v.Listed || v.Wrapped != wrapped || v.Blocked != (i > 0) || i > 0 && v.Nearest != got[i-1] {
			t.Errorf("%q: judge %s: %+v", children, own.Name, v)
		}
		nearest := ""
		for _, n := range got[:i] {
			if odd(n) {
				nearest = n.Name
			}
		}
		if v := seqqueue.Judge(tags, own, children, odd); v.Blocked != (nearest != "") || v.Nearest.Name != nearest {
			t.Errorf("%q: judge %s by odd ones: %+v, want %q", children, own.Name, v, nearest)
		}
	}
	if !slices.Equal(children, before) {
		t.Error("the list was changed")
	}
}

func TestLine(t *testing.T) {
	t.Parallel()
	for _, children := range [][]string{
		nil,
		{""},
		{"lock-0000000001"},
		{"b-lock-0000000002", "a-lock-0000000003", "c-lock-0000000001"},
		{"a-lock-0000000001", "b-lock-0000000001"}, // a counter that sticks
		{"x", "lock-", "lock-abc", "lock--1", "a-lock-0000000001", "lock--x", "a-lease-0000000000"},
		{"lock--2147483648", "a-lock-2147483647"},
		{"a-lock-0999999999", "a-lock-1000000000", "a-lock-2147483647"},
		{"lock-0000000005-lock-0000000001", "lock-0000000003"},
		{"0000000002", "a-lock-0000000003", "0000000001", "b-lock-0000000000", "1", "00000000000", "x0000000001"},
		{"-2147483648", "a-lock-0000000001"},
	} {
		wantQueue(t, children)
	}
}

// A member that is not in the list is told so, whatever is in the list.
func TestJudgeNotListed(t *testing.T) {
	t.Parallel()
	own := seqqueue.Node{Name: "me-lock-0000000005", Key: "0000000005"}
	for _, children := range [][]string{nil, {}, {"a-lock-0000000005"}, {"you-lock-0000000004"}, {"me-lock-000000000"}} {
		if v := seqqueue.Judge(tags, own, children, seqqueue.AllBlock); v.Listed {
			t.Errorf("%q: %+v", children, v)
		}
	}
}

// A contender of other rules is in the line, but no member is granted a turn
// beside it. If the tags name it among our contenders, members wait for it by
// number.
func TestForeign(t *testing.T) {
	t.Parallel()
	children := []string{"a-lock-0000000003", "k__lock__0000000002", "b-lock-0000000001", "k__lock__x", "k__rlock__0000000000"}
	apart := seqqueue.Tags{Contenders: []string{prefix}, Foreign: []seqqueue.Foreign{
		{Tag: "__lock__", Recipe: "other", Library: func(string) string { return "others" }},
		{Tag: "__rlock__", Recipe: "none", Library: func(string) string { return "" }},
	}}
	together := seqqueue.Tags{Contenders: []string{prefix, "__lock__"}}
	own := seqqueue.Node{Name: "a-lock-0000000003", Key: "0000000003", Tag: prefix}
	for _, tags := range []seqqueue.Tags{apart, together} {
		if line := seqqueue.LineOf(tags, children); len(line) != 3 || line[1].Name != "k__lock__0000000002" || line[1].Tag != "__lock__" {
			t.Errorf("line %v", line)
		} else if foreign := line[1].Recipe != ""; foreign != (tags.Foreign != nil) || line[0].Recipe != "" {
			t.Errorf("foreign %v: line %+v", tags.Foreign != nil, line)
		}
	}
	if v := seqqueue.Judge(apart, own, children, seqqueue.AllBlock); v.Foreign != "k__lock__0000000002" || v.Nearest.Name != "b-lock-0000000001" {
		t.Errorf("apart: %+v", v)
	}
	if v := seqqueue.Judge(together, own, children, seqqueue.AllBlock); v.Foreign != "" || v.Nearest.Name != "k__lock__0000000002" {
		t.Errorf("together: %+v", v)
	}
	err := apart.Refuse("/dir", children)
	if !errors.Is(err, seqqueue.ErrForeign) || !strings.Contains(err.Error(), ": /dir/k__lock__0000000002 belongs to a other of others: ") {
		t.Errorf("apart: %v", err)
	}
	if err := together.Refuse("/dir", children); err != nil {
		t.Errorf("together: %v", err)
	}
}

// A recipe that works in directories below is known by all of them together.
func TestSite(t *testing.T) {
	t.Parallel()
	site := seqqueue.Tags{Contenders: []string{prefix}, Site: seqqueue.Site{Names: []string{"one", "two"}, Recipe: "thing"}}
	own := seqqueue.Node{Name: "a-lock-0000000003", Key: "0000000003", Tag: prefix}
	for _, tt := range []struct {
		children []string
		foreign  string
	}{
		{[]string{own.Name}, ""},
		{[]string{own.Name, "one"}, ""},
		{[]string{"two", own.Name}, ""},
		{[]string{"twofold", own.Name, "one"}, ""},
		{[]string{"two", own.Name, "one"}, "one"},
	} {
		v := seqqueue.Judge(site, own, tt.children, seqqueue.AllBlock)
		if v.Foreign != tt.foreign || !v.Listed || v.Blocked {
			t.Errorf("%v: %+v", tt.children, v)
		}
		err := site.Refuse("/dir", tt.children)
		if (err != nil) != (tt.foreign != "") || err != nil && !strings.Contains(err.Error(), ": /dir/one and /dir/two belong to a thing: ") {
			t.Errorf("%v: %v", tt.children, err)
		}
		if line := seqqueue.LineOf(site, tt.children); len(line) != 1 {
			t.Errorf("%v: line %v", tt.children, line)
		}
	}
	if v := seqqueue.Judge(tags, own, []string{own.Name, ""}, seqqueue.AllBlock); v.Foreign != "" {
		t.Errorf("no site: %+v", v)
	}
}

// A read/write lock has two tags and one line.
func TestTwoTags(t *testing.T) {
	t.Parallel()
	rw := seqqueue.Tags{Contenders: []string{"__READ__", "__WRIT__"}}
	children := []string{"a-__READ__0000000003", "b-__WRIT__0000000001", "c-__READ__0000000002", "d-__WRIT__0000000002", "e-lock-0000000000"}
	var order []string
	for _, n := range seqqueue.LineOf(rw, children) {
		order = append(order, n.Name[:1]+n.Tag)
	}
	// c and d have one number: c is what d was downgraded to.
	if want := []string{"b__WRIT__", "d__WRIT__", "c__READ__", "a__READ__"}; !slices.Equal(order, want) {
		t.Errorf("order %v, want %v", order, want)
	}
	own := seqqueue.Node{Name: children[0], Key: "0000000003", Tag: "__READ__"}
	writers := func(n seqqueue.Node) bool { return n.Tag == "__WRIT__" }
	if v := seqqueue.Judge(rw, own, children, writers); !v.Blocked || v.Nearest.Name != children[3] {
		t.Errorf("reader: %+v", v)
	}
}

func FuzzLine(f *testing.F) {
	f.Add("a-lock-0000000002,b-lock-0000000001,lock--1,x")
	f.Add("lock--2147483648,a-lock-2147483647")
	f.Add("a-lock-0000000001,b-lock-0000000001")
	f.Add("0000000001,a-lock-0000000001,-2147483648")
	f.Fuzz(func(t *testing.T, list string) {
		children := strings.Split(list, ",")
		slices.Sort(children)
		wantQueue(t, slices.Compact(children)) // a directory has no name twice
	})
}

// A thousand contenders in any order.
func TestLineLong(t *testing.T) {
	t.Parallel()
	var children []string
	for i := range 300 {
		children = append(children, fmt.Sprintf("_c_%08x-lock-%010d", rand.Uint32(), i*31), fmt.Sprintf("foreign-%d", i))
	}
	rand.Shuffle(len(children), func(i, j int) { children[i], children[j] = children[j], children[i] })
	wantQueue(t, children)
}
