package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"path"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/cmd/docent/internal/ui"
)

func newUI(to *target) *cobra.Command {
	var listen string
	var hosts []string
	var depth int
	var actions bool
	cmd := &cobra.Command{
		Use:   "ui [DIR]",
		Short: "Show the locks at or below a directory on a local web page, live",
		Long: `Ui serves a web page until it gets a signal, and prints its address. The page shows locks with
their lines and timelines, who waits for whom, elections, groups, the tree of nodes, sessions and
servers.

It reads from ZooKeeper while a page is open, at most 50 requests a second, by one session. It
writes nothing, unless --allow-actions lets a page ask holders to release, and evict contenders.
Then the address that it prints has a token. Whoever has it may act with the rights of docent.

It listens on this host alone. With --listen others may look who can reach the address: the page
has no login and no encryption. To look from your desk, forward the port by ssh:

  ssh -L 8370:localhost:8370 HOST docent ui`,
		Args: maybeDir, ValidArgsFunction: to.completePath(),
	}
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:8370", "`address` for browsers; port 0 takes a free one")
	cmd.Flags().StringArrayVar(&hosts, "host", nil, "`name` by which browsers call the page, beside localhost and addresses")
	cmd.Flags().IntVar(&depth, "depth", 16, "levels to go down")
	cmd.Flags().BoolVar(&actions, "allow-actions", false, "let a page with the token ask holders and evict contenders")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if depth < 0 {
			return usageError("--depth %d is negative", depth)
		}
		cfg := ui.Config{Dir: path.Clean(append(args, "/")[0]), Depth: depth, Hosts: hosts, Ask: to.saysOf}
		if actions {
			cfg.Act, cfg.Token = act, rand.Text()
		}
		return to.serveUI(cmd, listen, cfg)
	}
	return cmd
}

// serveUI serves the page until the command's context ends.
func (t *target) serveUI(cmd *cobra.Command, listen string, cfg ui.Config) error {
	if err := t.complete(); err != nil {
		return err
	}
	log := slog.New(slog.DiscardHandler)
	if t.verbose {
		log = slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
	}
	opts, err := t.options(log, client.WithLazyConnect())
	if err != nil {
		return err
	}
	cfg.Dial = func(ctx context.Context) (*client.Client, error) { return client.Connect(ctx, t.servers, opts...) }
	l, err := new(net.ListenConfig).Listen(cmd.Context(), "tcp", listen)
	if err != nil {
		return fmt.Errorf("%w (--listen takes another address)", err)
	}
	if at, ok := l.Addr().(*net.TCPAddr); ok && !at.IP.IsLoopback() {
		say(cmd.ErrOrStderr(), "%s is not this host alone: whoever can reach it may look", l.Addr())
	}
	page := ui.New(cfg)
	defer page.Close()
	if _, err := fmt.Fprintln(cmd.OutOrStdout(), address(l.Addr(), cfg.Token)); err != nil {
		_ = l.Close()
		return err
	}
	srv := &http.Server{Handler: page, ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn)}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(l) }() // ends with Close
	select {
	case err = <-ended:
	case <-cmd.Context().Done():
		page.Close()
		_ = srv.Close()
		err = <-ended
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// address is where a browser on this host finds the page.
func address(at net.Addr, token string) string {
	to, err := netip.ParseAddrPort(at.String())
	if err != nil {
		return at.String()
	}
	host := to.Addr().Unmap().String()
	if to.Addr().IsUnspecified() {
		host = "localhost"
	}
	s := "http://" + net.JoinHostPort(host, fmt.Sprint(to.Port())) + "/"
	if token != "" {
		s += "#token=" + token
	}
	return s
}

// saysOf asks one server how it is.
func (t *target) saysOf(ctx context.Context, server string) ui.Server {
	answer := t.word(ctx, server, "srvr")
	s := ui.Server{Address: server, Mode: value(answer, "Mode:")}
	for _, what := range []string{"Zookeeper version:", "Latency min/avg/max:", "Connections:", "Outstanding:", "Node count:"} {
		if v := value(answer, what); v != "" {
			v, _, _ = strings.Cut(v, ",")
			s.Says += strings.ToLower(what) + " " + v + "; "
		}
	}
	s.Says = strings.TrimSuffix(s.Says, "; ")
	if s.Says == "" {
		s.Says = strings.TrimSpace(answer) // it may not be allowed to say it
	}
	return s
}

// act asks the contender that a page has shown, or evicts it.
func act(ctx context.Context, c *client.Client, a ui.Action) (string, error) {
	l, who, err := find(ctx, c, []string{a.Lock, a.Path})
	switch {
	case err != nil:
		return "", err
	case who.FencingToken != a.Token:
		return "", errors.New("another node has that name meanwhile; nothing was done; look again")
	case who.Holder != a.Holds:
		return "", errors.New("it was shown as a waiter and holds now, or the other way round; nothing was done; look again")
	}
	if a.Do == ui.ActionEvict {
		if err := evict(ctx, c, l, who); err != nil {
			return "", err
		}
		return "deleted " + who.Path, nil
	}
	if _, err := unchanged(ctx, c, who); err != nil {
		return "", err
	}
	if err := l.ask(ctx, who); err != nil {
		return "", err
	}
	return "asked " + who.String(), nil
}
