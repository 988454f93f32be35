package main

import (
	"context"
	"strings"
	"testing"
	"time"
)

// Each night has one report, although a machine dies and an answer is lost.
func TestDemo(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var out strings.Builder
	if err := demo(ctx, &out); err != nil {
		t.Fatal(err)
	}
	const want = `a quiet night: begun by [a], report of a
a machine dies: begun by [a b], report of b
an answer is lost: begun by [a], report of a
`
	if out.String() != want {
		t.Errorf("said\n%s\nwant\n%s", out.String(), want)
	}
}

func TestNightOf(t *testing.T) {
	t.Parallel()
	for clock, want := range map[string]string{
		"2026-11-21T23:59:00Z":      "2026-11-21",
		"2026-11-22T02:00:00Z":      "2026-11-21",
		"2026-11-22T04:00:00+02:00": "2026-11-21",
		"2026-11-22T12:00:00Z":      "2026-11-22",
	} {
		now, err := time.Parse(time.RFC3339, clock)
		if err != nil {
			t.Fatal(err)
		}
		if got := nightOf(now); got != want {
			t.Errorf("the night of %s is %s, want %s", clock, got, want)
		}
	}
}
