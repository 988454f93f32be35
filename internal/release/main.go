// Release rehearses a release of all published modules, and publishes nothing: it signs, tags and
// pushes nothing.
//
//	go run -C internal/release . 0.1.0     # or make release-rehearsal VERSION=0.1.0
//
// From the commit that is checked out it makes what would be published: each module without
// replace, with its requirements of the others at the version, as a zip in a module proxy that is
// a directory. Then it builds and tests each module as unpacked from its zip, lets a module
// outside of the repository get them all, and runs what README.md and docs/quickstart.md show.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/semver"

	"github.com/docent-go/docent/internal/release/published"
)

func main() {
	root := flag.String("root", "../..", "the repository")
	out := flag.String("out", "", "an empty or new directory for the proxy and the notes, which is kept; without it nothing is kept")
	quick := flag.Bool("quick", false, "build and vet each module, and run no tests of it")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := rehearse(ctx, *root, *out, flag.Args(), *quick)
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to stop
	}
}

// rehearsal is one run.
type rehearsal struct {
	version string // with its v
	dir     string // of all that is made
	begun   time.Time
	modules []published.Module
	quick   bool
}

func rehearse(ctx context.Context, root, out string, args []string, quick bool) error {
	if len(args) != 1 {
		return errors.New("name the version, such as 0.1.0")
	}
	version := args[0]
	if !strings.HasPrefix(version, "v") {
		version = "v" + version
	}
	if semver.Canonical(version) != version {
		return fmt.Errorf("%s is no version such as 0.1.0", args[0])
	}
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	dir, kept, err := place(out)
	if err != nil {
		return err
	}
	if !kept {
		defer os.RemoveAll(dir) //nolint:errcheck // a directory of temporary files
	}
	r := &rehearsal{version: version, dir: dir, begun: time.Now(), quick: quick}
	for _, step := range []func() error{
		func() error { return r.export(ctx, root) },
		r.notes,
		func() error { return r.publish(ctx) },
		func() error { return r.check(ctx) },
		func() error { return r.outside(ctx) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	r.say("all %d modules can be released as %s; nothing was published", len(r.modules), version)
	return nil
}

// place is the directory of all that is made, and whether it is kept.
func place(out string) (dir string, kept bool, err error) {
	if out == "" {
		dir, err = os.MkdirTemp("", "release-")
		return dir, false, err
	}
	if there, _ := os.ReadDir(out); len(there) > 0 {
		return "", true, fmt.Errorf("%s is not empty", out)
	}
	dir, err = filepath.Abs(out)
	return dir, true, err
}

// say prints a line with the seconds since the beginning.
func (r *rehearsal) say(format string, args ...any) {
	fmt.Printf("%4.0f s  %s\n", time.Since(r.begun).Seconds(), fmt.Sprintf(format, args...))
}

// in returns the path of something that the rehearsal makes.
func (r *rehearsal) in(parts ...string) string {
	return filepath.Join(append([]string{r.dir}, parts...)...)
}
