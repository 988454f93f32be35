package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/docent-go/docent/cmd/docent/internal/console"
)

// format is how a command writes rows.
type format string

const (
	table  format = "table"
	wide   format = "wide"
	asJSON format = "json"
	jsonl  format = "jsonl"
)

// String, Set and Type make format a flag.
func (f *format) String() string { return string(*f) }

// Set refuses what is no format.
func (f *format) Set(s string) error {
	switch format(s) {
	case table, wide, asJSON, jsonl:
		*f = format(s)
		return nil
	}
	return fmt.Errorf("%q is no format; take table, wide, json or jsonl", s)
}

// Type names the values of the flag.
func (f *format) Type() string { return "table|wide|json|jsonl" }

func formatFlag(cmd *cobra.Command) *format {
	f := table
	cmd.Flags().VarP(&f, "output", "o", "how to write")
	choices(cmd, "output", string(table), string(wide), string(asJSON), string(jsonl))
	cmd.Flags().Var(&alias{&f, asJSON}, "json", "the same as -o json; the last one of both counts")
	cmd.Flags().Lookup("json").NoOptDefVal = "true"
	return &f
}

// alias is a flag without a value that stands for a format.
type alias struct {
	of   *format
	name format
}

// String, Set and Type make alias a flag.
func (a *alias) String() string { return "false" }

// Set takes the format, unless the value is false.
func (a *alias) Set(s string) error {
	on, err := strconv.ParseBool(s)
	if err == nil && on {
		*a.of = a.name
	}
	return err
}

// Type names the values of the flag.
func (a *alias) Type() string { return "bool" }

// choices lets a shell complete the values of a flag.
func choices(cmd *cobra.Command, flag string, values ...string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// write writes rows, structs with a text for each field. A field has a tag `col` with
// its heading, and ",wide" behind it if only the wide table has it. With ",some" a table has
// it if a row does.
func write[T any](w io.Writer, f format, rows []T) error {
	if f == asJSON {
		out := json.NewEncoder(w)
		out.SetIndent("", "  ")
		if rows == nil {
			rows = []T{}
		}
		return out.Encode(rows)
	}
	return newListing(w, f, rows...).add(rows...)
}

// A level of attention that a row wants, on a terminal with colors.
type level int

const (
	usual level = iota
	doubtful
	bad
)

// leveled is a row that says how much attention it wants.
type leveled interface{ level() level }

// listing writes rows as they come, as lines of JSON or of a table.
type listing[T any] struct {
	out     io.Writer
	lines   *json.Encoder // nil for a table
	columns []int
	heads   []string
	widths  []int
	begun   bool
	colors  bool
}

// newListing begins a listing. Its columns with ",some" are those of rows.
func newListing[T any](w io.Writer, f format, rows ...T) *listing[T] {
	l := &listing[T]{out: w, colors: terminal(w) && os.Getenv("NO_COLOR") == ""}
	if f == jsonl {
		l.lines = json.NewEncoder(w)
		return l
	}
	l.columns, l.heads = headings(f == wide, rows)
	l.widths = make([]int, len(l.heads))
	return l
}

// add writes more rows. The columns of a table fit all rows so far, and these.
func (l *listing[T]) add(rows ...T) error {
	if l.lines != nil {
		for _, row := range rows {
			if err := l.lines.Encode(row); err != nil {
				return err
			}
		}
		return nil
	}
	cells := make([][]string, len(rows))
	for i, row := range rows {
		v := reflect.ValueOf(row)
		for _, column := range l.columns {
			cells[i] = append(cells[i], cell(v.Field(column)))
		}
		l.fit(cells[i])
	}
	var text strings.Builder
	if !l.begun {
		l.begun = true
		l.fit(l.heads)
		l.line(&text, l.heads, "1")
	}
	for i, row := range rows {
		color := ""
		if of, ok := any(row).(leveled); ok {
			color = [...]string{usual: "", doubtful: "33", bad: "31"}[of.level()]
		}
		l.line(&text, cells[i], color)
	}
	_, err := io.WriteString(l.out, text.String())
	return err
}

// fit widens the columns for a row. The last column needs no width.
func (l *listing[T]) fit(cells []string) {
	for i, c := range cells[:len(cells)-1] {
		l.widths[i] = max(l.widths[i], utf8.RuneCountInString(c))
	}
}

// line writes a row, in a color of the terminal if there is one.
func (l *listing[T]) line(text *strings.Builder, cells []string, color string) {
	var row strings.Builder
	for i, c := range cells {
		row.WriteString(c)
		if i < len(cells)-1 {
			row.WriteString(strings.Repeat(" ", l.widths[i]-utf8.RuneCountInString(c)+2))
		}
	}
	line := strings.TrimRight(row.String(), " ")
	if l.colors && color != "" {
		line = "\x1b[" + color + "m" + line + "\x1b[0m"
	}
	text.WriteString(line + "\n")
}

// headings are the columns of a table.
func headings[T any](all bool, rows []T) (columns []int, heads []string) {
	of := reflect.TypeFor[T]()
	for i := range of.NumField() {
		head, when, _ := strings.Cut(of.Field(i).Tag.Get("col"), ",")
		has := func(row T) bool { return !reflect.ValueOf(row).Field(i).IsZero() }
		if head != "" && (when == "" || when == "wide" && all || when == "some" && slices.ContainsFunc(rows, has)) {
			columns, heads = append(columns, i), append(heads, head)
		}
	}
	return columns, heads
}

// cell is a value in a table. What is not known is a dash.
func cell(v reflect.Value) string {
	if v.IsZero() && v.Kind() != reflect.Int {
		return "-"
	}
	return shown(fmt.Sprint(v.Interface()))
}

// shown is a text as a terminal may get it.
func shown(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || unicode.Is(unicode.Bidi_Control, r) {
			return '?' // other clients wrote it: it must not move the cursor, or turn a line around
		}
		return r
	}, s)
}

// counted is a number of things, such as "1 lock" and "2 locks".
func counted(n int, one, several string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, several)
}

// terminal reports whether w is a terminal that may be drawn on.
func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd())) && console.Draws(f)
}

// say writes a line of docent's own to standard error, with the flags for the options of Go.
func say(w io.Writer, text string, args ...any) {
	_, _ = fmt.Fprintln(w, "docent:", flagNames.Replace(fmt.Sprintf(text, args...)))
}
