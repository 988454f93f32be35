package main

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
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
	return &f
}

// choices lets a shell complete the values of a flag.
func choices(cmd *cobra.Command, flag string, values ...string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// write writes rows, structs with a text for each field. A field has a tag `col` with
// its heading, and ",wide" behind it if only the wide table has it.
func write[T any](w io.Writer, f format, rows []T) error {
	switch f {
	case asJSON:
		out := json.NewEncoder(w)
		out.SetIndent("", "  ")
		if rows == nil {
			rows = []T{}
		}
		return out.Encode(rows)
	case jsonl:
		out := json.NewEncoder(w)
		for _, row := range rows {
			if err := out.Encode(row); err != nil {
				return err
			}
		}
		return nil
	}
	tab := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	columns, heads := headings(reflect.TypeFor[T](), f == wide)
	_, _ = fmt.Fprintln(tab, strings.Join(heads, "\t"))
	for _, row := range rows {
		v := reflect.ValueOf(row)
		cells := make([]string, len(columns))
		for i, column := range columns {
			cells[i] = cell(v.Field(column))
		}
		_, _ = fmt.Fprintln(tab, strings.TrimRight(strings.Join(cells, "\t"), "\t "))
	}
	return tab.Flush()
}

// headings are the columns of a table.
func headings(of reflect.Type, all bool) (columns []int, heads []string) {
	for i := range of.NumField() {
		head, when, _ := strings.Cut(of.Field(i).Tag.Get("col"), ",")
		if head != "" && (all || when == "") {
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
	s := fmt.Sprint(v.Interface())
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?' // other clients wrote it: it must not move the cursor
		}
		return r
	}, s)
}
