//go:build !unix

package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

func newRun(*target, streams) *cobra.Command {
	return unixOnly("run", "Run a command while a lock is held (not on this system)")
}

func newElect(*target, streams) *cobra.Command {
	return unixOnly("elect", "Run a command while this process leads (not on this system)")
}

func newServicesRegister(*registry, streams) *cobra.Command {
	return unixOnly("register", "Register an instance while a command runs (not on this system)")
}

// errUnixOnly says why a command is missing. A hold that is lost must end its command and all
// that this has started, which docent does by process groups and signals.
var errUnixOnly = errors.New("needs the process groups and signals of Unix to end a command before another client can hold: " +
	"use the library (InterProcessMutex.Do, LeaderLatch.Run, ServiceDiscovery.Register), or run docent in WSL or a container")

// unixOnly is a command that refuses to run, with the exit code of docent's own failures.
func unixOnly(name, short string) *cobra.Command {
	return &cobra.Command{
		Use: name + " PATH -- COMMAND [ARGUMENT...]", Short: short, DisableFlagParsing: true,
		RunE: func(*cobra.Command, []string) error {
			return &exitError{125, fmt.Errorf("%s %w", name, errUnixOnly)}
		},
	}
}
