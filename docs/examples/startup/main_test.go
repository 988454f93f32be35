package main

import (
	"context"
	"strings"
	"testing"
	"time"
)

// None begins before the fifth is ready, and none ends before all have begun.
func TestRun(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var out strings.Builder
	if err := run(ctx, "", &out); err != nil {
		t.Fatal(err)
	}
	const want = `4 of 5 are ready, missing: w5
1 of 5 begins
2 of 5 begins
3 of 5 begins
4 of 5 begins
5 of 5 begins
1 of 5 ends
2 of 5 ends
3 of 5 ends
4 of 5 ends
5 of 5 ends
`
	if out.String() != want {
		t.Errorf("said\n%s\nwant\n%s", out.String(), want)
	}
}
