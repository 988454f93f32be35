package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// built are the test programs of a target, with all its mutants.
type built struct {
	target
	dir      string
	sums     map[string]string // of the files as they were read
	mutants  []mutant
	programs []program
}

// program is a test program, and how long it takes without a mutant.
type program struct {
	judge
	path  string
	takes time.Duration
}

// outcome is what has become of a mutant.
type outcome int

const (
	lived  outcome = iota
	killed         // a test has failed, or the program has
	hung           // a program does not end
)

// end is how a mutant has ended, and by which judge.
type end struct {
	outcome
	judge judge
}

// String is one line.
func (e end) String() string {
	switch e.outcome {
	case killed:
		return "killed by " + e.judge.String()
	case hung:
		return "hangs in " + e.judge.String()
	case lived:
	}
	return "survives"
}

// build builds the judges of a target: one program for each package, with all mutants in it.
func build(ctx context.Context, t target) (*built, error) {
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return nil, err
	}
	b := &built{target: t, dir: dir, sums: map[string]string{}}
	overlay, err := b.mutate()
	if err != nil {
		return nil, err
	}
	paths := map[string]string{}
	for _, j := range t.judges {
		if paths[j.dir] == "" {
			paths[j.dir] = filepath.Join(dir, strconv.Itoa(len(paths))+".test")
			out, err := exec.CommandContext(ctx, "go", "test", "-c", "-overlay", overlay, "-o", paths[j.dir], "./"+j.dir).CombinedOutput()
			if err != nil {
				return nil, fmt.Errorf("build the tests of %s: %w\n%s", j.dir, err, out)
			}
		}
		p := program{judge: j, path: paths[j.dir]}
		began := time.Now()
		if out, end := p.play(ctx, 0, 10*time.Minute); end != lived {
			return nil, fmt.Errorf("the tests of %v fail without a mutant:\n%s", j, out)
		}
		p.takes = time.Since(began)
		b.programs = append(b.programs, p)
	}
	return b, nil
}

// mutate writes the mutants, and returns the overlay for the go command that has them.
func (b *built) mutate() (overlay string, err error) {
	var s schema
	replace := map[string]string{}
	var pkg string
	for i, f := range b.files {
		src, err := os.ReadFile(f)
		if err != nil {
			return "", err
		}
		b.sums[f] = sum(src)
		var mutated []byte
		if mutated, pkg, err = s.write(f, src); err != nil {
			return "", err
		}
		if err := b.overlay(replace, f, strconv.Itoa(i)+".go", mutated); err != nil {
			return "", err
		}
	}
	b.mutants = s.mutants
	if err := b.overlay(replace, filepath.Join(filepath.Dir(b.files[0]), "mutant_chosen.go"), "chosen.go", fmt.Appendf(nil, chooser, pkg)); err != nil {
		return "", err
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(b.dir, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o600)
}

func (b *built) overlay(replace map[string]string, file, name string, text []byte) error {
	path, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	replace[path] = filepath.Join(b.dir, name)
	return os.WriteFile(replace[path], text, 0o600)
}

// judge runs mutants, two at a time, and returns how each has ended.
func (b *built) judge(ctx context.Context, mutants []mutant) []end {
	ends := make([]end, len(mutants))
	var wait sync.WaitGroup
	turn := make(chan struct{}, 2)
	for i, m := range mutants {
		turn <- struct{}{}
		wait.Go(func() {
			defer func() { <-turn }()
			ends[i] = b.end(ctx, m)
		})
	}
	wait.Wait()
	return ends
}

// end runs the judges of a mutant until one notices it. The cheapest is the first.
func (b *built) end(ctx context.Context, m mutant) end {
	for _, p := range b.programs {
		if _, o := p.play(ctx, m.number, 30*time.Second+10*p.takes); o != lived {
			return end{o, p.judge}
		}
	}
	return end{}
}

// play runs a test program, on one thread. A program that is not through after limit hangs.
// Servers have one seed, so that chance kills no mutant.
func (p program) play(ctx context.Context, mutant int, limit time.Duration) ([]byte, outcome) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	args := []string{"-test.failfast", "-test.timeout=0", "-test.run", p.run}
	if p.skip != "" {
		args = append(args, "-test.skip", p.skip)
	}
	cmd := exec.CommandContext(ctx, p.path, args...)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1", "ZKTEST_SEED=1", "MUTANT="+strconv.Itoa(mutant), p.env)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	switch {
	case err == nil:
		return out, lived
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return out, hung
	default:
		return out, killed
	}
}

// sum is the checksum of a file.
func sum(text []byte) string {
	s := sha256.Sum256(text)
	return hex.EncodeToString(s[:8])
}
