package client

import (
	"context"
	"log/slog"
	"sync"
)

// journal logs what is noticed on the wire's callback path, on a goroutine of
// its own: a log handler that blocks must not keep a lost session from ending.
type journal struct {
	log  *slog.Logger
	wake chan struct{} // holds a token while lines may be waiting

	mu    sync.Mutex // guards lines; never held while logging
	lines []line
}

type line struct {
	level slog.Level
	text  string
	args  []any
}

func newJournal(log *slog.Logger) *journal {
	return &journal{log: log, wake: make(chan struct{}, 1)}
}

// say never blocks.
func (j *journal) say(level slog.Level, text string, args ...any) {
	j.mu.Lock()
	j.lines = append(j.lines, line{level, text, args})
	j.mu.Unlock()
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

// run logs until ctx ends and everything said before that is logged.
func (j *journal) run(ctx context.Context) {
	for ctx.Err() == nil {
		j.flush(ctx)
		select {
		case <-j.wake:
		case <-ctx.Done():
		}
	}
	j.flush(ctx)
}

func (j *journal) flush(ctx context.Context) {
	j.mu.Lock()
	lines := j.lines
	j.lines = nil
	j.mu.Unlock()
	for _, l := range lines {
		j.log.Log(ctx, l.level, l.text, l.args...)
	}
}
