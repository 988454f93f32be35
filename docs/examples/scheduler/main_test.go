package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// When a leader is killed another one takes over.
func TestDemo(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out strings.Builder
	if err := demo(ctx, &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	said := out.String()
	for _, want := range []string{"leader 1 is killed\n", "leader 2 is killed\n", "the third leader leads\n", "schedules\n"} {
		if !strings.Contains(said, want) {
			t.Errorf("said %q, want %q in it", said, want)
		}
	}
}

// Each process has an id of its own, also without -id.
func TestSelf(t *testing.T) {
	t.Parallel()
	if id := self(); !strings.HasSuffix(id, fmt.Sprint("-", os.Getpid())) {
		t.Errorf("the id is %q", id)
	}
}
