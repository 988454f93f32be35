package main

import (
	"context"
	"strings"
	"testing"
	"time"
)

// A worker whose session was lost is registered again.
func TestRun(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var out strings.Builder
	if err := run(ctx, "", &out); err != nil {
		t.Fatal(err)
	}
	if want := "at the end: w1 at 10.0.0.1:80, w2 at 10.0.0.2:80\n"; !strings.HasSuffix(out.String(), want) {
		t.Errorf("said %q, want %q at the end", out.String(), want)
	}
}
