package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/docent-go/docent/bench/internal/caches"
	"github.com/docent-go/docent/bench/internal/report"
)

// cachesName is the file of results of -caches below -out.
const cachesName = "caches.json"

// doCaches measures caches, or reports what was measured.
func (o *options) doCaches(ctx context.Context) error {
	results, err := o.cacheResults(ctx)
	if results == nil || len(results.All) == 0 {
		return errors.Join(err, errNothing)
	}
	text := caches.Text(results)
	fmt.Print(text)
	if o.out != "" {
		failed := os.MkdirAll(o.out, 0o755) //nolint:gosec // holds nothing secret
		if failed == nil {
			failed = caches.Write(results, filepath.Join(o.out, cachesName))
		}
		err = errors.Join(err, failed)
	}
	if o.doc != "" && err == nil {
		err = report.Replace(o.doc, text)
	}
	return err
}

func (o *options) cacheResults(ctx context.Context) (*caches.Results, error) {
	if o.from != "" {
		return caches.Read(o.from)
	}
	fmt.Fprintf(os.Stderr, "caches of %d nodes: about %v\n", caches.ShapeOf(o.caches.Nodes).Nodes(), o.caches.Length())
	return o.caches.Run(ctx)
}
