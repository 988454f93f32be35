// Command panels makes a picture of the dashboard's panels from real data:
//
//	cd observe/live && go run ./panels -out ../../docs/observability/panels.png
//
// It plays a scene with four instances on a server, all in its own process. A
// Prometheus server scrapes them and answers the queries of the dashboard. The command
// writes a PNG, and the page that it shows if -page names a file. It needs Debian's packages prometheus and chromium.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/docent-go/docent/observe/live/internal/promserver"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt) //nolint:forbidigo // the root of the program
	err := run(ctx, os.Args[1:])
	stop()
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "panels:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("panels", flag.ContinueOnError)
	out := flags.String("out", "panels.png", "the file for the picture")
	kept := flags.String("page", "", "a file for the HTML page that the picture shows (default none)")
	dashboard := flags.String("dashboard", "../dashboard.json", "the dashboard to draw")
	browser := flags.String("browser", "chromium", "the browser that makes the PNG")
	long := flags.Duration("for", 2*time.Minute, "how long the scene takes, at least 10s")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *long < 10*time.Second {
		return fmt.Errorf("-for %v is too short for the scene, take 10s or more", *long)
	}
	b, err := readBoard(*dashboard)
	if err != nil {
		return err
	}
	if err := b.check(); err != nil {
		return fmt.Errorf("%s: %w", *dashboard, err)
	}
	dir, err := os.MkdirTemp("", "panels")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	drawings, events, err := record(ctx, b, dir, *long)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := write(&text, b, drawings, events); err != nil {
		return err
	}
	html := filepath.Join(dir, "panels.html")
	if *kept != "" {
		html = *kept
	}
	if err := os.WriteFile(html, text.Bytes(), 0o600); err != nil {
		return err
	}
	return screenshot(ctx, *browser, html, *out, b.height(pageWidth))
}

// record plays the scene, and returns the panels and what happened when. The time between
// two scrapes and between two points is a second, and less if the scene is shorter than
// two minutes. The server's data is in dir.
func record(ctx context.Context, b board, dir string, long time.Duration) (_ []drawing, events string, err error) {
	s, err := open(ctx, long)
	if err != nil {
		return nil, "", err
	}
	defer func() { err = errors.Join(err, s.close(context.WithoutCancel(ctx))) }()
	step := min(time.Second, long/60)
	server, err := promserver.Start(ctx, promserver.Config{Dir: dir, Job: "shop", Targets: s.targets(), Interval: step})
	if err != nil {
		return nil, "", err
	}
	defer server.Close()
	if err := scraped(ctx, server, len(s.instances)); err != nil {
		return nil, "", err
	}
	values, err := b.variables(step, step)
	if err != nil {
		return nil, "", err
	}
	shown := span{from: time.Now(), long: long, step: step}
	if err := s.play(ctx); err != nil {
		return nil, "", err
	}
	var drawings []drawing
	var errs error
	for _, p := range b.Panels {
		lines, err := ask(ctx, server, p, values, shown)
		errs = errors.Join(errs, err)
		drawings = append(drawings, draw(p, lines, shown, pageWidth))
	}
	return drawings, s.events(), errs
}

// screenshot has a browser draw the page.
func screenshot(ctx context.Context, browser, html, png string, height int) error {
	from, err := filepath.Abs(html)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", //nolint:gosec // the user's own choice
		fmt.Sprintf("--window-size=%d,%d", pageWidth+2*margin, pageHead+height+margin), "--screenshot="+png, "file://"+from)
	if answer, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: install Debian's package chromium, or name another browser by -browser\n%s", err, answer)
	}
	return shrink(png)
}
