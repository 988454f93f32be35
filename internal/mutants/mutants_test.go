package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const sample = `package sample

func pick(a, b, c bool) bool {
	n := 0
	if a && b || c {
		n++
		return true
	}
	switch {
	case n > 0:
		say(n)
	}
	switch n {
	case 2, 3:
		say(n)
	case 4:
	}
	return false
}
`

// The generator makes each kind of mutant, and Go accepts the file.
func TestSchema(t *testing.T) {
	t.Parallel()
	var s schema
	out, pkg, err := s.write("sample.go", []byte(sample))
	if err != nil || pkg != "sample" {
		t.Fatalf("package %q, %v", pkg, err)
	}
	var names []string
	for i, m := range s.mutants {
		if m.number != i+1 {
			t.Errorf("mutant %d has number %d", i+1, m.number)
		}
		names = append(names, strings.TrimPrefix(m.name, "sample.go: pick: "))
	}
	want := []string{
		"always: a && b || c", "never: a && b || c",
		"drop a && b from: a && b || c", "drop c from: a && b || c", "drop a from: a && b", "drop b from: a && b",
		"remove: n++", "return true -> the other",
		"always: n > 0", "never: n > 0", "remove: say(n)",
		"no case 2 of n", "no case 3 of n", "remove: say(n) (2)",
		"return false -> the other",
	}
	slices.Sort(want)
	slices.Sort(names)
	if !slices.Equal(names, want) {
		t.Errorf("mutants %q,\nwant %q", names, want)
	}
	for i := range s.mutants {
		use := regexp.MustCompile(fmt.Sprintf(`mutant [!=]= %d\b`, i+1))
		if n := len(use.FindAll(out, -1)); n != 1 {
			t.Errorf("mutant %d stands %d times in\n%s", i+1, n, out)
		}
	}
}

// Each target has a report of the files as they are now. At least nine in ten mutants are
// killed, and each survivor has a reason.
func TestReportsAreFresh(t *testing.T) {
	t.Chdir(filepath.Join("..", ".."))
	for _, target := range targets {
		r, err := readReport(target)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, f := range target.files {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			if r.sums[f] != sum(text) {
				t.Errorf("%s has changed since its mutants were judged: run `make mutants TARGETS=%s WRITE=-write`", f, target.name)
			}
		}
		if !r.enough() {
			t.Errorf("%s: %v, want %d %%", target.name, r, least)
		}
		for _, all := range []map[string]string{r.hangs, r.survivors} {
			for name, reason := range all {
				if reason == "" || reason == open {
					t.Errorf("%s: %s has survived, or hangs, without a reason", target.name, name)
				}
			}
		}
	}
}

// A report that was written is read back.
func TestReport(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.MkdirAll("internal/mutants/survivors", 0o750); err != nil {
		t.Fatal(err)
	}
	x := target{name: "x"}
	r := report{
		sums: map[string]string{"a/b.go": "12"}, all: 7,
		hangs:     map[string]string{"b.go: f: never: done": "nothing else ends the loop"},
		survivors: map[string]string{"b.go: f: remove: c()": "it is only faster"},
	}
	if err := r.write(x); err != nil {
		t.Fatal(err)
	}
	got, err := readReport(x)
	if err != nil || !reflect.DeepEqual(got, r) {
		t.Errorf("%+v, %v", got, err)
	}
	if text := got.String(); text != "killed 6 of 7 (85 %), 1 of these hang" || got.enough() {
		t.Errorf("%s, enough %v", text, got.enough())
	}
}
