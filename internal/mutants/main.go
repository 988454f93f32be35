// Command mutants asks how good tests are. It changes a file in many small ways, one at a
// time: a condition always or never true, an operand dropped, a statement removed, a result
// turned round. A change that no test notices has survived.
//
//	go run ./internal/mutants [-targets chain] [-write]
//
// Each survivor stands in survivors/TARGET.txt with a reason. Another survivor, or fewer
// than nine in ten that are killed, is an error. -write writes the file; then a reason is
// to be added where it says "reason?". A test of this package compares the sums of the
// files that were judged with those of today.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// least is the share of mutants that have to be killed, in percent.
const least = 90

// open is the reason of a survivor that nobody has looked at.
const open = "reason?"

func main() {
	only := flag.String("targets", "", "names of targets, with commas between; all if empty")
	write := flag.Bool("write", false, "write the survivors")
	flag.Parse()
	ok := true
	for _, t := range targets {
		if *only != "" && !strings.Contains(","+*only+",", ","+t.name+",") {
			continue
		}
		if err := run(context.Background(), t, *write); err != nil {
			fmt.Fprintln(os.Stderr, "mutants:", t.name+":", err)
			ok = false
		}
	}
	if !ok {
		os.Exit(1)
	}
}

// run judges all mutants of a target.
func run(ctx context.Context, t target, write bool) error {
	began := time.Now()
	known, err := readReport(t)
	if err != nil && !write {
		return err
	}
	b, err := build(ctx, t)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(b.dir) }()
	survived, err := b.judge(ctx)
	if err != nil {
		return err
	}
	all := len(b.mutants)
	killed := all - len(survived)
	fmt.Printf("%s: %d of %d mutants killed (%d %%) in %.0f s\n", t.name, killed, all, 100*killed/all, time.Since(began).Seconds())
	now := report{sums: map[string]string{}, all: all, survivors: map[string]string{}}
	for _, f := range t.files {
		if now.sums[f], err = sum(f); err != nil {
			return err
		}
	}
	var faults []error
	for _, m := range survived {
		reason := known.survivors[m.name]
		if reason == "" || reason == open {
			reason = open
			faults = append(faults, fmt.Errorf("a survivor without a reason: line %d, %s", m.line, m.name))
		}
		now.survivors[m.name] = reason
	}
	if 100*killed < least*all {
		faults = append(faults, fmt.Errorf("only %d of %d are killed, want %d %%", killed, all, least))
	}
	if write {
		return errors.Join(append(faults, now.write(t))...)
	}
	return errors.Join(faults...)
}

// built are the test programs of a target, with all its mutants.
type built struct {
	target
	dir      string
	mutants  []mutant
	programs []program
}

// program is a test program, and how long it takes without a mutant.
type program struct {
	judge
	path, cwd string
	takes     time.Duration
}

// build builds the judges of a target.
func build(ctx context.Context, t target) (*built, error) {
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return nil, err
	}
	b := &built{target: t, dir: dir}
	var s schema
	replace := map[string]string{}
	var pkg string
	for i, f := range t.files {
		src, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		var mutated []byte
		if mutated, pkg, err = s.write(f, src); err != nil {
			return nil, err
		}
		if err := b.overlay(replace, f, strconv.Itoa(i)+".go", mutated); err != nil {
			return nil, err
		}
	}
	b.mutants = s.mutants
	if err := b.overlay(replace, filepath.Join(filepath.Dir(t.files[0]), "mutant_chosen.go"), "chosen.go", fmt.Appendf(nil, chooser, pkg)); err != nil {
		return nil, err
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return nil, err
	}
	overlay := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, text, 0o600); err != nil {
		return nil, err
	}
	for i, j := range t.judges {
		p := program{judge: j, path: filepath.Join(dir, strconv.Itoa(i)+".test"), cwd: j.dir}
		out, err := exec.CommandContext(ctx, "go", "test", "-c", "-overlay", overlay, "-o", p.path, "./"+j.dir).CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("build the tests of %s: %w\n%s", j.dir, err, out)
		}
		began := time.Now()
		if out, alive := p.lives(ctx, 0, 10*time.Minute); !alive {
			return nil, fmt.Errorf("the tests of %s fail without a mutant:\n%s", j.dir, out)
		}
		p.takes = time.Since(began)
		b.programs = append(b.programs, p)
	}
	return b, nil
}

func (b *built) overlay(replace map[string]string, file, name string, text []byte) error {
	path, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	replace[path] = filepath.Join(b.dir, name)
	return os.WriteFile(replace[path], text, 0o600)
}

// judge runs all mutants, two at a time, and returns those that no judge has killed.
func (b *built) judge(ctx context.Context) (survived []mutant, err error) {
	lives := make([]bool, len(b.mutants))
	var wait sync.WaitGroup
	turn := make(chan struct{}, 2)
	for i, m := range b.mutants {
		turn <- struct{}{}
		wait.Go(func() {
			defer func() { <-turn }()
			lives[i] = b.outlives(ctx, m)
		})
	}
	wait.Wait()
	for i, m := range b.mutants {
		if lives[i] {
			survived = append(survived, m)
		}
	}
	return survived, ctx.Err()
}

// outlives reports whether a mutant survives all judges.
func (b *built) outlives(ctx context.Context, m mutant) bool {
	for _, p := range b.programs {
		if _, alive := p.lives(ctx, m.number, 10*time.Second+4*p.takes); !alive {
			return false
		}
	}
	return true
}

// lives runs a test program. A program that does not end within limit has noticed the mutant.
func (p program) lives(ctx context.Context, mutant int, limit time.Duration) (out []byte, alive bool) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.path, "-test.failfast", "-test.timeout=20m", "-test.run", p.run)
	cmd.Dir = p.cwd
	cmd.Env = append(os.Environ(), "MUTANT="+strconv.Itoa(mutant))
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	return out, err == nil
}

// sum is the checksum of a file.
func sum(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	s := sha256.Sum256(text)
	return hex.EncodeToString(s[:8]), nil
}
