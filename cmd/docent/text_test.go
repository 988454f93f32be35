package main

import (
	"bytes"
	"sync"
)

// text is what a command has written so far.
type text struct {
	mu    sync.Mutex
	bytes bytes.Buffer
}

func (s *text) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes.Write(p)
}

func (s *text) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes.String()
}
