// Command nightly is a job for cron on two machines: its work is done once a night, and
// it is done even if the machine dies that began it. Without -servers it plays three
// nights with two machines on an in-process server.
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
	"github.com/docent-go/docent/zktest"
)

func main() {
	servers := flag.String("servers", "", "connect string; empty: an in-process server and two machines")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	var err error
	if *servers == "" {
		err = demo(ctx, os.Stdout)
	} else {
		err = tonight(ctx, *servers, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		cancel()
		os.Exit(1) //nolint:gocritic // the deferred cancel was called
	}
}

// tonight is what cron starts on each machine.
func tonight(ctx context.Context, servers string, out io.Writer) error {
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	c, err := client.Connect(ctx, servers, client.WithName("nightly"))
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	j, err := newJob(ctx, c, func(_ context.Context, token int64, night string) ([]byte, error) {
		_, _ = fmt.Fprintln(out, "working for the night of", night, "with token", token)
		return []byte("report of " + host), nil
	})
	if err != nil {
		return err
	}
	return j.run(ctx, nightOf(time.Now()))
}

// nightOf names the night of a moment, from noon to noon. So a job at two o'clock has the
// same name on machines whose clocks differ by hours.
func nightOf(now time.Time) string {
	return now.UTC().Add(-12 * time.Hour).Format(time.DateOnly)
}

// machine is one of the two of the demo.
type machine struct {
	*job
	link   *zktest.ClientLink    // its network
	during func(context.Context) // what happens while it works
}

// demo plays a quiet night, one in which a machine dies at work, and one in which the
// answer to the last write is lost.
func demo(ctx context.Context, out io.Writer) error {
	srv, err := zktest.Start()
	if err != nil {
		return err
	}
	defer func() { _ = srv.Close() }()
	var begun []string // is written under the lock
	a, err := newMachine(ctx, srv, "a", &begun)
	if err != nil {
		return err
	}
	defer func() { _ = a.c.Close() }()
	b, err := newMachine(ctx, srv, "b", &begun)
	if err != nil {
		return err
	}
	defer func() { _ = b.c.Close() }()
	play := func(what, night string, nights func() error) error {
		begun = nil
		if err := nights(); err != nil {
			return err
		}
		done, _ := srv.Node(donePath + "/" + night)
		_, _ = fmt.Fprintf(out, "%s: begun by %v, %s\n", what, begun, done.Data)
		return nil
	}
	return errors.Join(
		play("a quiet night", "1", func() error {
			return errors.Join(a.run(ctx, "1"), b.run(ctx, "1"))
		}),
		play("a machine dies", "2", func() error {
			working, ended := make(chan struct{}), make(chan error, 1)
			queued := srv.BeforeReply(zktest.Match{Client: "b", Op: zktest.OpCreate}, func(context.Context, zktest.Request) {})
			a.during = func(ctx context.Context) {
				a.during = func(context.Context) {}
				close(working)
				_ = queued.Wait(ctx, 1) // b stands in line behind a
				a.link.ExpireSession()
				<-ctx.Done()
			}
			go func() { ended <- a.run(ctx, "2") }()
			<-working
			return errors.Join(b.run(ctx, "2"), <-ended)
		}),
		play("an answer is lost", "3", func() error {
			lost := srv.LoseReply(zktest.Match{Op: zktest.OpMulti, Path: donePath + "/3"})
			err := errors.Join(a.run(ctx, "3"), b.run(ctx, "3"))
			if lost.Fired() != 1 {
				err = errors.Join(err, errors.New("no answer was lost"))
			}
			return err
		}),
	)
}

// newMachine connects a machine whose work is to note in begun that it began.
func newMachine(ctx context.Context, srv *zktest.Server, name string, begun *[]string) (*machine, error) {
	m := &machine{link: srv.Client(name), during: func(context.Context) {}}
	c, err := client.Connect(ctx, "zk:2181", client.WithName(name), client.WithDialer(m.link.DialContext),
		client.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return nil, err
	}
	m.job, err = newJob(ctx, c, func(ctx context.Context, _ int64, _ string) ([]byte, error) {
		*begun = append(*begun, name)
		m.during(ctx)
		return []byte("report of " + name), ctx.Err()
	})
	return m, err
}
