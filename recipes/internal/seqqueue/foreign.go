package seqqueue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"
)

// ErrForeign says that a lock of another recipe or library is in use in the
// directory, so that neither would wait for the other.
var ErrForeign = errors.New("another recipe or library has a lock in this directory, and the two would not wait for each other")

// Unmixed is [Queue.Line], but fails with [ErrForeign] if a child belongs to
// another recipe or library.
func (q *Queue) Unmixed(ctx context.Context) ([]Node, error) {
	children, _, err := q.c.Children(ctx, q.dir)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return nil, err
	}
	if err := q.mix(ctx, q.c, judge(q.tags, Node{}, children, AllBlock)); err != nil {
		return nil, err
	}
	return line(q.tags, children), nil
}

// mix returns the error that names a foreign child, and nil without one. It asks a
// server only if the site's last name is there alone.
func (q *Queue) mix(ctx context.Context, at Reader, v verdict) error {
	err := q.tags.refuse(q.dir, v.foreign)
	if site := q.tags.Site; err == nil && v.maybe {
		var node string
		if node, err = site.Used(ctx, at, q.dir+"/"+site.Last); err == nil && node != "" {
			err = fmt.Errorf("%w: %s belongs to a %s: give each a path of its own", ErrForeign, node, site.Recipe)
		}
	}
	q.mixed.Store(errors.Is(err, ErrForeign))
	return err
}

// Refuse returns an error that matches [ErrForeign] if one of the children of
// dir belongs to another recipe or library.
func (t Tags) Refuse(dir string, children []string) error {
	return t.refuse(dir, judge(t, Node{}, children, AllBlock).foreign)
}

// refuse returns the error that names a foreign child, and nil without one.
func (t Tags) refuse(dir, name string) error {
	if name == "" {
		return nil
	}
	if slices.Contains(t.Site.Names, name) {
		return fmt.Errorf("%w: %s/%s belong to a %s: give each a path of its own, or delete these directories if no %s uses them",
			ErrForeign, dir, strings.Join(t.Site.Names, " and "+dir+"/"), t.Site.Recipe, t.Site.Recipe)
	}
	for _, f := range t.Foreign {
		if _, v := parse(f.Tag, name); v == noNumber {
			continue
		}
		if library := f.Library(name); library != "" {
			return fmt.Errorf("%w: %s/%s belongs to a %s of %s: give each a path of its own%s",
				ErrForeign, dir, name, f.Recipe, library, f.Remedy)
		}
	}
	return nil
}
