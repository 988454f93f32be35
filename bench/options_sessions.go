package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/docent-go/docent/bench/internal/report"
	"github.com/docent-go/docent/bench/internal/sessions"
)

// sessionsName is the file of results of -sessions below -out.
const sessionsName = "sessions.json"

// doSessions measures sessions that stay, or reports what was measured.
func (o *options) doSessions(ctx context.Context) error {
	results, err := o.sessionResults(ctx)
	if results == nil || len(results.All) == 0 {
		return errors.Join(err, errNothing)
	}
	text := sessions.Text(results)
	fmt.Print(text)
	if o.out != "" {
		failed := os.MkdirAll(o.out, 0o755) //nolint:gosec // holds nothing secret
		if failed == nil {
			failed = sessions.Write(results, filepath.Join(o.out, sessionsName))
		}
		err = errors.Join(err, failed)
	}
	if o.doc != "" {
		err = errors.Join(err, report.Replace(o.doc, text))
	}
	return err
}

func (o *options) sessionResults(ctx context.Context) (*sessions.Results, error) {
	if o.from != "" {
		return sessions.Read(o.from)
	}
	if err := enoughFiles(o.sessions.Sizes); err != nil {
		return nil, err
	}
	fmt.Fprintf(os.Stderr, "sessions %v: about %v\n", o.sessions.Sizes, o.sessions.Length())
	return o.sessions.Run(ctx)
}

// enoughFiles refuses sizes for which a process may not open enough files. Go has raised
// the limit of this process as far as it goes, and its children have the same.
func enoughFiles(sizes []int) error {
	const others = 200
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	for _, n := range sizes {
		if uint64(n)+others > limit.Max { //nolint:gosec // n is positive
			return fmt.Errorf("%d sessions take more open files than %d: raise ulimit -Hn", n, limit.Max)
		}
	}
	return nil
}
