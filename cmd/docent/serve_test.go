package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
)

func TestServe(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	serving, stop := context.WithCancel(ctx)
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- run(serving, []string{"serve", "-listen", "127.0.0.1:0"}, w, io.Discard) }()
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil || !strings.Contains(line, "in memory") {
		t.Fatalf("said %q, %v", line, err)
	}
	_, rest, _ := strings.Cut(line, "127.0.0.1:")
	port, _, _ := strings.Cut(rest, ".")
	c, err := client.Connect(ctx, net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Create(ctx, "/a", nil); err != nil {
		t.Error(err)
	}
	if err := c.CloseContext(ctx); err != nil {
		t.Error(err)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestServeRefuses(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	for _, tt := range []struct {
		args  []string
		usage bool
		says  string
	}{
		{nil, true, "usage"},
		{[]string{"sing"}, true, `"sing"`},
		{[]string{"serve", "now"}, true, `"now"`},
		{[]string{"serve", "-tick", "-1s"}, true, "-1s"},
		{[]string{"serve", "-port", "2181"}, true, "-port"},
		{[]string{"serve", "-listen", taken.Addr().String()}, false, "in use"},
	} {
		var beside strings.Builder
		err := run(t.Context(), tt.args, io.Discard, &beside)
		if beside.Len() != 0 {
			t.Errorf("%v: said twice: %s", tt.args, &beside)
		}
		if err == nil || errors.Is(err, errUsage) != tt.usage || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%v: %v", tt.args, err)
		}
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"help"}, {"-h"}, {"--help"}, {"serve", "-h"}} {
		var says strings.Builder
		if err := run(t.Context(), args, io.Discard, &says); !errors.Is(err, flag.ErrHelp) || !strings.Contains(says.String(), "-listen") {
			t.Errorf("%v: %v, says %q", args, err, &says)
		}
	}
}
