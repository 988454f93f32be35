package main

import (
	"context"
	"strings"
	"testing"
	"time"
)

// The list has who is there and what each does, and not who has left.
func TestRun(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var out strings.Builder
	if err := run(ctx, "", &out); err != nil {
		t.Fatal(err)
	}
	if want := "workers: w1 idle, w2 idle\nworkers: w1 job 7, w2 idle\nworkers: w1 job 7\n"; out.String() != want {
		t.Errorf("%s\nwant\n%s", out.String(), want)
	}
}
