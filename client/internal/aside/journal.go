package aside

import (
	"context"
	"log/slog"
	"sync/atomic"
)

// Journal writes log lines on a goroutine of its own. A log handler that blocks must
// not delay the end of a lost session. While a handler blocks, the first lines wait;
// lines that find no room are dropped and counted.
type Journal struct {
	log     *slog.Logger
	lines   chan line
	dropped atomic.Int64 // since the handler was told last
}

const journalLines = 1000

type line struct {
	level slog.Level
	text  string
	args  []any
}

// NewJournal returns a journal that writes to log, once Run runs.
func NewJournal(log *slog.Logger) *Journal {
	return &Journal{log: log, lines: make(chan line, journalLines)}
}

// Say queues a line. It never blocks.
func (j *Journal) Say(level slog.Level, text string, args ...any) {
	select {
	case j.lines <- line{level, text, args}:
	default:
		j.dropped.Add(1)
	}
}

// Run logs until ctx has ended and every line of before that is logged.
func (j *Journal) Run(ctx context.Context) {
	for {
		select {
		case l := <-j.lines:
			j.log.Log(ctx, l.level, l.text, l.args...)
		case <-ctx.Done():
			if len(j.lines) == 0 {
				return
			}
		}
		if n := j.dropped.Load(); n > 0 && len(j.lines) == 0 {
			j.dropped.Add(-n)
			j.log.Log(ctx, slog.LevelWarn, "zookeeper: lines are missing here, because the log handler was too slow", "dropped", n)
		}
	}
}
