package plan

import "time"

// Setting is the servers and the way to them.
type Setting struct {
	Name      string
	Title     string
	Servers   int
	Fsync     bool
	RoundTrip time.Duration // added by a link; 0: none
}

// Settings is every setting.
func Settings() []Setting {
	return []Setting{
		{"one-fsync", "one server, fsync", 1, true, 0},
		{"one", "one server, no fsync", 1, false, 0},
		{"three-fsync", "three servers, fsync", 3, true, 0},
		{"three", "three servers, no fsync", 3, false, 0},
		{"one-link", "one server, no fsync, a link of 1 ms round trip", 1, false, time.Millisecond},
	}
}
