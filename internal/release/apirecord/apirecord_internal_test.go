package main

import (
	"bytes"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// parsed is the package that a source is.
func parsed(t *testing.T, source string) *types.Package {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "p.go", source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	pkg, err := (&types.Config{Importer: importer.Default()}).Check("github.com/docent-go/docent/p", set, []*ast.File{file}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return pkg
}

const source = `package p

const (
	A State = iota
	B
	c
)

const Name = "n"

var Err error

type State int

func (s State) String() string { return "" }

type Map[K comparable, V any] struct {
	Inner[V]
	*hidden
	Size, size int
}

type Inner[V any] struct{ Value V }

func (Inner[V]) Get() (v V) { return v }

type hidden struct{ Shown int }

func (*hidden) Lent(x int) {}

func (m *Map[K, V]) Do(f func(key K, rest ...V) error) <-chan map[K][]V { return nil }

type Sealed interface{ Method(); sealed() }

type Open interface{ Method(arg string) }

type Alias = func(s State)

type Shown = hidden

const Half = 0.123456789

func Make[T ~int | ~string](arg T, more ...[]T) (*Map[string, T], error) { return nil, nil }

func unexported() { _ = unexported }
`

// Every kind of exported name has its lines, without names of parameters.
func TestRecord(t *testing.T) {
	t.Parallel()
	want := []string{
		"const A State = 0",
		"const B State = 1",
		"const Half untyped float = 0.123456789",
		`const Name untyped string = "n"`,
		"field Inner.Value V",
		"field Map.Inner Inner[V] embedded",
		"field Map.Shown int",
		"field Map.Size int",
		"field Shown.Shown int",
		"func Make[T ~int | ~string](T, ...[]T) (*Map[string, T], error)",
		"method *Map.Do(func(K, ...V) error) <-chan map[K][]V",
		"method Inner.Get() V",
		"method *Shown.Lent(int)",
		"method Map.Lent(int)",
		"method Open.Method(string)",
		"method Sealed.Method()",
		"method State.String() string",
		"type Alias = func(State)",
		"type Inner[V any] struct",
		"type Map[K comparable, V any] struct",
		"type Open interface { Method }",
		"type Sealed interface { unexported methods }",
		"type Shown = hidden",
		"type Shown struct",
		"type State int",
		"var Err error",
	}
	slices.Sort(want)
	if got := record(parsed(t, source)); !slices.Equal(got, want) {
		t.Errorf("the record is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A change of the code is one of the record.
func TestRecordChanges(t *testing.T) {
	t.Parallel()
	before := ids(record(parsed(t, source)))
	for _, c := range []struct{ from, to, id string }{
		{"const (\n\tA", "const (\n\tZ State = iota\n\tA", "A"},
		{"Method(arg string)", "Method(arg string); More()", "Open"},
		{"func (s State) String", "func (s *State) String", "State.String"},
		{"(arg T,", "(arg string, one T,", "Make"},
		{"Size, size int", "Size, size int64", "Map.Size"},
		{"struct{ Shown int }", "struct{ shown int }", "Map.Shown"},
		{"K comparable", "K string", "Map"},
		{"var Err error", "var Err any", "Err"},
		{"(*hidden) Lent(x int)", "(*hidden) Lent()", "Shown.Lent"},
		{"0.123456789", "0.12345678", "Half"},
		{"(s State)\n", "(s *State)\n", "Alias"},
	} {
		after := ids(record(parsed(t, strings.Replace(source, c.from, c.to, 1))))
		if before[c.id] == after[c.id] {
			t.Errorf("%q for %q leaves the line of %s: %s", c.to, c.from, c.id, before[c.id])
		}
	}
	if after := ids(record(parsed(t, strings.Replace(source, "arg T", "other T", 1)))); before["Make"] != after["Make"] {
		t.Errorf("another name of a parameter is %q, and was %q", after["Make"], before["Make"])
	}
}

// tree is a repository with one package, and a changelog.
func tree(t *testing.T, record []string, entries ...string) (repository, map[string][]string) {
	t.Helper()
	r := repository(t.TempDir())
	changelog := "# Changelog\n\n## [Unreleased]\n\n### Added\n\n"
	for _, e := range entries {
		changelog += "- " + e + "\n"
	}
	now := map[string][]string{"client": record}
	if err := os.WriteFile(filepath.Join(string(r), "CHANGELOG.md"), []byte(changelog+"\n## [0.0.1]\n\n- `Later` is said below.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.write("api", now); err != nil {
		t.Fatal(err)
	}
	return r, now
}

// What the changelog must say of a change, since the release.
func TestCheck(t *testing.T) {
	t.Parallel()
	old := []string{"func Connect() error", "method *Client.Get() int", "type Client struct"}
	for _, c := range []struct {
		name    string
		record  []string
		entries []string
		want    string // part of what is printed, empty if all is well
	}{
		{"nothing has changed", old, nil, ""},
		{"a new function", append([]string{"func Later()"}, old...), nil, "client: Later is new"},
		{"said before the release", append([]string{"func Old()"}, old...), nil, "client: Old is new"},
		{"said", append([]string{"func Later()"}, old...), []string{"`client.Later` waits."}, ""},
		{"said on the second line", append([]string{"func Later()"}, old...), []string{"one\n  `client.Later` waits."}, ""},
		{"part of a word", append([]string{"func Later()"}, old...), []string{"`client.LaterOn` waits."}, "client: Later is new"},
		{"not between backquotes", append([]string{"func Later()"}, old...), []string{"Later or not."}, "client: Later is new"},
		{"a new type without its methods", append([]string{"type X struct", "method X.Do()"}, old...), []string{"`X` is a type."}, ""},
		{"a new method", append([]string{"method *Client.Do()"}, old...), []string{"`Client` does."}, "client: Client.Do is new"},
		{"a new method of another type", append([]string{"method *Client.Do()"}, old...), []string{"`Lock.Do` waits."}, "client: Client.Do is new"},
		{"a new method of the type", append([]string{"method *Client.Do()"}, old...), []string{"`Client` has `Do`."}, ""},
		{"gone, said as if new", old[1:], []string{"`Connect` is gone."}, "client: Connect has changed or gone"},
		{"gone", old[1:], []string{"**Breaking** `Connect` is gone."}, ""},
		{"changed", []string{old[0], "method *Client.Get() string", old[2]}, nil, "client: Client.Get has changed or gone"},
		{"the package is gone", nil, nil, "client has changed or gone"},
	} {
		r, _ := tree(t, old, "`client.Old` was said before.")
		if err := r.release(map[string][]string{"client": old}); err != nil {
			t.Fatal(err)
		}
		later, now := tree(t, c.record, append(c.entries, "`client.Old` was said before.")...)
		if len(c.record) == 0 {
			now = map[string][]string{"other": {"func F()"}}
			if err := os.Remove(filepath.Join(string(later), "api/client.txt")); err != nil {
				t.Fatal(err)
			}
			if err := later.write("api", now); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.CopyFS(filepath.Join(string(later), released), os.DirFS(filepath.Join(string(r), released))); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		err := later.check(now, &out)
		if (err != nil) != (c.want != "") || !strings.Contains(out.String(), c.want) {
			t.Errorf("%s: error %v, and %q, want %q", c.name, err, out.String(), c.want)
		}
	}
}

// A record that is not that of the code is refused with the lines that differ.
func TestCheckRecord(t *testing.T) {
	t.Parallel()
	r, now := tree(t, []string{"func Connect() error"})
	if err := r.release(now); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	err := r.check(map[string][]string{"client": {"func Connect()"}}, &out)
	if err == nil || !strings.Contains(err.Error(), "make api") || out.String() != "- client: func Connect() error\n+ client: func Connect()\n" {
		t.Errorf("error %v, and %q", err, out.String())
	}
	if err := r.check(nil, &out); err == nil {
		t.Error("a record of nothing is accepted")
	}
}
