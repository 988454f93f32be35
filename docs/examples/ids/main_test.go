package main

import (
	"context"
	"strings"
	"testing"
	"time"
)

// Every order has an id of its own.
func TestRun(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out strings.Builder
	if err := run(ctx, "", &out); err != nil {
		t.Fatal(err)
	}
	if want := "72 orders, 0 ids taken twice\n"; out.String() != want {
		t.Errorf("said %q, want %q", out.String(), want)
	}
}
