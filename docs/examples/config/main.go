// Command config is a service whose configuration reloads itself: each node below
// /config/shop is one setting. A bad value is reported, and the last good one stays in
// force. Without -servers it runs on an in-process server. An operator in the same
// process changes the setting cart, on any server.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/zktest"
)

func main() {
	servers := flag.String("servers", "", "connect string; empty: an in-process server")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := run(ctx, *servers, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		cancel()
		os.Exit(1) //nolint:gocritic // the deferred cancel was called
	}
}

const top = "/config/shop"

// setting is the value of one node, as JSON.
type setting struct {
	Limit int  `json:"limit"`
	On    bool `json:"on"`
}

func run(ctx context.Context, servers string, out io.Writer) error {
	if servers == "" {
		srv, err := zktest.Start()
		if err != nil {
			return err
		}
		defer func() { _ = srv.Close() }()
		servers = srv.Addr()
	}
	c, err := client.Connect(ctx, servers, client.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	settings, err := cache.NewTree(c, top, cache.JSON[setting]())
	if err != nil {
		return err
	}
	if err := settings.Start(ctx); err != nil {
		return err
	}
	defer settings.Close()
	return follow(ctx, c, settings, out)
}

// follow tells of the settings, and plays the operator: each change asks for the next.
func follow(ctx context.Context, operator *client.Client, settings *cache.Tree[setting], out io.Writer) error {
	for change, err := range settings.Changes(ctx) {
		if err != nil {
			return err
		}
		if change.Path == top {
			continue // the directory is no setting
		}
		switch change.Kind {
		case cache.Began: // what there is already
			for name, s := range change.Snapshot.Children(top) {
				_, _ = fmt.Fprintf(out, "%s begins as %+v, error %v\n", name, s.Value, s.Err)
			}
			if err := begin(ctx, operator); err != nil {
				return err
			}
		case cache.Created, cache.Recreated:
			_, _ = fmt.Fprintf(out, "%s is %+v\n", change.New.Name(), change.New.Value)
			if _, err := operator.Set(ctx, change.Path, []byte(`{"limit":`), client.AnyVersion); err != nil {
				return err
			}
		case cache.Undecodable:
			_, _ = fmt.Fprintf(out, "%s stays %+v: its new value is no JSON\n", change.New.Name(), change.New.Value)
			if _, err := operator.Set(ctx, change.Path, []byte(`{"limit":20,"on":true}`), client.AnyVersion); err != nil {
				return err
			}
		case cache.Updated:
			_, _ = fmt.Fprintf(out, "%s is %+v, was %+v\n", change.New.Name(), change.New.Value, change.Old.Value)
			return nil
		case cache.Deleted:
			_, _ = fmt.Fprintf(out, "%s is gone\n", change.Old.Name())
		case cache.Gap, cache.BecameStale, cache.BecameSynced:
			_, _ = fmt.Fprintln(out, "the settings are", change.State)
		}
	}
	return ctx.Err()
}

// begin makes the setting cart anew.
func begin(ctx context.Context, operator *client.Client) error {
	if err := operator.Delete(ctx, top+"/cart", client.AnyVersion); err != nil && !errors.Is(err, client.ErrNoNode) {
		return err
	}
	_, err := operator.Create(ctx, top+"/cart", []byte(`{"limit":10,"on":true}`), client.WithParents())
	return err
}
