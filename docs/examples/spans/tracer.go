package main

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// span stands for that of a tracing library. A nil one notes nothing.
type span struct {
	name  string
	begun time.Time

	mu       sync.Mutex
	took     time.Duration
	detail   string
	events   []event
	children []*span
}

type event struct {
	at   time.Time
	text string
}

type spanKey struct{}

// of is the span that ctx is in, nil if it is in none.
func of(ctx context.Context) *span {
	s, _ := ctx.Value(spanKey{}).(*span)
	return s
}

// start begins a span within that of ctx.
func start(ctx context.Context, name string) (context.Context, *span) {
	s := &span{name: name, begun: time.Now()}
	if parent := of(ctx); parent != nil {
		parent.mu.Lock()
		parent.children = append(parent.children, s)
		parent.mu.Unlock()
	}
	return context.WithValue(ctx, spanKey{}, s), s
}

func (s *span) event(text string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, event{time.Now(), text})
}

func (s *span) end(detail string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.took, s.detail = time.Since(s.begun), detail
}

// print prints the span and all within it, with their beginnings after zero. first
// stands in front of the span, rest in front of what is within it.
func (s *span) print(zero time.Time, first, rest string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	const ms = float64(time.Millisecond)
	fmt.Printf("%7.1f ms  %6.1f ms  %s%s  %s\n", float64(s.begun.Sub(zero))/ms, float64(s.took)/ms, first, s.name, s.detail)
	for _, e := range s.events {
		fmt.Printf("%7.1f ms             %s - %s\n", float64(e.at.Sub(zero))/ms, rest, e.text)
	}
	for i, c := range s.children {
		if i < len(s.children)-1 {
			c.print(zero, rest+"├─ ", rest+"│  ")
		} else {
			c.print(zero, rest+"└─ ", rest+"   ")
		}
	}
}
