package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/zktest"
)

// A bad value does not take the place of the last good one.
func TestRun(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var out strings.Builder
	srv := zktest.NewServer(t)
	for _, servers := range []string{srv.Addr(), srv.Addr(), ""} { // the second run finds what the first has left
		if err := run(ctx, servers, &out); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{
		"cart begins as {Limit:20 On:true}, error <nil>\n",
		"cart is {Limit:10 On:true}\n", "cart stays {Limit:10 On:true}", "cart is {Limit:20 On:true}, was {Limit:10 On:true}\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
