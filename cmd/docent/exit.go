package main

import (
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/spf13/cobra"
)

// The exit codes of all commands. `docent run` has more, see run.go.
const (
	exitFailure = 1
	exitUsage   = 2
)

// exitError is an error with an exit code of its own. A nil Err is not reported.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// usageError is a mistake in the command line.
func usageError(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

// exactly returns a check for n arguments, which names say.
func exactly(names ...string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return usageError("missing argument %s", names[len(args)])
		case len(args) > len(names):
			return usageError("unexpected argument %q", args[len(names)])
		}
		return nil
	}
}

// signalled is the cause of a context, or of a wait, that a signal has ended.
type signalled struct{ syscall.Signal }

func (s signalled) Error() string { return "signal: " + s.String() }

// streams are what a command reads and writes.
type streams struct {
	in       *os.File
	out, err io.Writer
}
