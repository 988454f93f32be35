// Command mutants asks how good tests are. It changes a file in many small ways, one at a
// time: a condition always or never true, an operand dropped, a statement removed, a result
// turned round. A change that no test notices has survived.
//
//	go run ./internal/mutants [-targets chain] [-only REGEXP] [-write]
//
// Each survivor stands in survivors/TARGET.txt with a reason. So does each mutant that hangs,
// as a time that has run out proves nothing. Another survivor, or fewer than nine in ten that
// are killed, is an error. -write writes the file; then a reason is to be added where it says
// "reason?". -only judges some mutants, by their names, and tells of each what has killed it.
// A test of this package compares the sums of the files that were judged with those of today.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"
)

// open is the reason of a survivor that nobody has looked at.
const open = "reason?"

func main() {
	names := flag.String("targets", "", "names of targets, with commas between; all if empty")
	only := flag.String("only", "", "judge the mutants whose names match, and no others")
	write := flag.Bool("write", false, "write the survivors")
	flag.Parse()
	if *only != "" && *write {
		fmt.Fprintln(os.Stderr, "mutants: -write wants all mutants: leave -only out")
		os.Exit(2)
	}
	ok := true
	for _, t := range targets {
		if *names != "" && !strings.Contains(","+*names+",", ","+t.name+",") {
			continue
		}
		if err := judgeAll(context.Background(), t, *only, *write); err != nil {
			fmt.Fprintln(os.Stderr, "mutants:", t.name+":", err)
			ok = false
		}
	}
	if !ok {
		os.Exit(1)
	}
}

// judgeAll judges all mutants of a target, or those whose names match only.
func judgeAll(ctx context.Context, t target, only string, write bool) error {
	known, err := readReport(t)
	if err != nil && !write && only == "" {
		return err
	}
	b, err := build(ctx, t)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(b.dir) }()
	if only != "" {
		return b.some(ctx, only)
	}
	began := time.Now()
	ends := b.judge(ctx, b.mutants)
	now := report{sums: b.sums, all: len(b.mutants), survivors: map[string]string{}, hangs: map[string]string{}}
	var faults []error
	for i, m := range b.mutants {
		var at map[string]string
		var reason string
		switch ends[i].outcome {
		case killed:
			continue
		case hung:
			at, reason = now.hangs, known.hangs[m.name]
		case lived:
			at, reason = now.survivors, known.survivors[m.name]
		}
		if reason == "" || reason == open {
			reason = open
			faults = append(faults, fmt.Errorf("without a reason: line %d, %s: %v", m.line, m.name, ends[i]))
		}
		at[m.name] = reason
	}
	fmt.Printf("%s: %v in %.0f s\n", t.name, now, time.Since(began).Seconds())
	if !now.enough() {
		faults = append(faults, fmt.Errorf("too few are killed, want %d %%", least))
	}
	if write {
		faults = append(faults, now.write(t))
	}
	return errors.Join(faults...)
}

// some judges the mutants whose names match only, and tells how each has ended.
func (b *built) some(ctx context.Context, only string) error {
	re, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	var some []mutant
	for _, m := range b.mutants {
		if re.MatchString(m.name) {
			some = append(some, m)
		}
	}
	for i, end := range b.judge(ctx, some) {
		fmt.Printf("%d %s: %v\n", some[i].line, some[i].name, end)
	}
	return nil
}
