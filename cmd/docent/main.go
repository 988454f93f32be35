// Docent is the command-line companion of the library.
//
//	docent serve [-listen host:port] [-tick duration]
//
// starts a ZooKeeper server for development. It keeps everything in memory and
// forgets it when it ends.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		fmt.Fprintln(os.Stderr, "docent:", err)
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "docent:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("usage: docent serve [-listen host:port] [-tick duration]")

func run(ctx context.Context, args []string, out, usage io.Writer) error {
	if len(args) == 0 {
		return errUsage
	}
	switch args[0] {
	case "serve":
		return serve(ctx, args[1:], out, usage)
	case "help", "-h", "-help", "--help":
		return serve(ctx, []string{"-help"}, out, usage) // there is no other command
	default:
		return fmt.Errorf("unknown command %q; %w", args[0], errUsage)
	}
}
