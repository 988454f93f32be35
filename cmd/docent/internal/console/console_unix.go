//go:build unix

// Package console is what differs between terminals of Unix and consoles of Windows.
package console

import (
	"os"
	"os/signal"
	"syscall"
)

// NotifyResized tells of changes of the size of the terminal.
func NotifyResized(to chan os.Signal) { signal.Notify(to, syscall.SIGWINCH) }

// Draws reports whether a terminal takes the sequences for colors and places.
func Draws(*os.File) bool { return true }
