package console

import (
	"os"

	"golang.org/x/sys/windows"
)

// NotifyResized tells nothing: no signal comes. Each new picture asks for the size.
func NotifyResized(chan os.Signal) {}

// Draws reports whether a console takes the sequences for colors and places, and makes one take
// them that does not yet. Those before Windows 10 do not.
func Draws(f *os.File) bool {
	console := windows.Handle(f.Fd())
	var mode uint32
	if err := windows.GetConsoleMode(console, &mode); err != nil {
		return false
	}
	return windows.SetConsoleMode(console, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) == nil
}
