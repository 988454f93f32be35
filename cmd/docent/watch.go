package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/cache"
)

// event is a node, or a change, as `docent watch` writes it. The names of the JSON fields
// stay.
type event struct {
	Time    string `col:"TIME"       json:"time"` // when docent saw it
	Kind    string `col:"KIND"       json:"kind"`
	Cause   string `col:"CAUSE,wide" json:"cause"`
	State   string `col:"STATE,wide" json:"state"` // "synced", or "stale" if there may be newer changes
	Zxid    int64  `col:"ZXID,wide"  json:"zxid"`
	Path    string `col:"PATH"       json:"path"`
	Version string `col:"VERSION"    json:"-"`
	Session string `col:"SESSION,wide"  json:"session"`
	Changed string `col:"MODIFIED,wide" json:"-"`
	Short   string `col:"DATA"       json:"-"`

	NodeVersion *int32     `json:"version"`
	Modified    *time.Time `json:"modified"`
	Size        int        `json:"size"`
	Data        *string    `json:"data"` // null without a node
	Encoding    string     `json:"encoding"`
	Error       string     `json:"error"`
}

// exists is the kind of a node that was there when the watch began.
const exists = "exists"

// How Data is written.
const (
	asText   = "text"
	asBase64 = "base64"
)

func (e event) level() level {
	switch e.Kind {
	case cache.BecameStale.String(), cache.Gap.String():
		return bad
	case cache.Undecodable.String():
		return doubtful
	}
	return usual
}

// pictures is a cache of raw data.
type pictures interface {
	Start(ctx context.Context) error
	Changes(ctx context.Context) iter.Seq2[cache.Change[[]byte], error]
	Snapshot() *cache.Snapshot[[]byte]
	State() cache.State
	Close()
}

func newWatch(to *target) *cobra.Command {
	var depth int
	var once bool
	cmd := &cobra.Command{
		Use:   "watch PATH",
		Short: "Show the nodes at and below a path, and their changes as they come",
		Long: `Watch writes the nodes at PATH and below, and then each change, until it gets a signal. The
path need not exist.

The kinds of lines are: began (the nodes that follow are what there was after the
transaction ZXID), exists, created, updated, recreated (deleted and made again), deleted,
undecodable (the node may not be read), stale (the servers do not answer: there may be
changes that are not shown), synced (all is shown again), and gap (docent was too slow in
writing: what follows leads to the newest state, and steps between are left out). The cause of a
change is live, resync (found after a lost connection), or skipped (found after a gap).

Data that is no text is written in base64, and the lines of JSON say so in "encoding".
Tables show the beginning of data, with -o wide more of it.`,
		Example: `  docent watch /config --depth -1 -o jsonl
  docent watch /config --once`,
		Args: onPath(), ValidArgsFunction: to.completePath(),
	}
	cmd.Flags().IntVar(&depth, "depth", 1, "levels to go down: 0 is the node alone, -1 the whole subtree")
	cmd.Flags().BoolVar(&once, "once", false, "write the nodes that there are, and end")
	form := formatFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case depth < -1:
			return usageError("--depth %d: give 0 or more, or -1 for the whole subtree", depth)
		case *form == asJSON && !once:
			return usageError("-o json (--json) is one document, and a watch has no end: take -o jsonl, or --once")
		}
		return to.connected(cmd, func(ctx context.Context, c *client.Client) error {
			p, err := picturesOf(c, args[0], depth)
			if err != nil {
				return err
			}
			v := viewer{cmd: cmd, path: args[0], form: *form, limit: to.connect}
			defer p.Close()
			if once {
				return v.snapshot(ctx, p)
			}
			return v.follow(ctx, p)
		})
	}
	return cmd
}

// picturesOf returns the cache that costs the servers least.
func picturesOf(c *client.Client, at string, depth int) (pictures, error) {
	switch depth {
	case 0:
		return cache.NewValue(c, at, cache.Bytes)
	case 1:
		return cache.NewChildren(c, at, cache.Bytes)
	case -1:
		return cache.NewTree(c, at, cache.Bytes)
	}
	return cache.NewTree(c, at, cache.Bytes, cache.WithDepth(depth))
}

// viewer writes what a cache sees.
type viewer struct {
	cmd   *cobra.Command
	path  string
	form  format
	limit time.Duration // for the first snapshot
}

// snapshot writes the nodes that there are.
func (v viewer) snapshot(ctx context.Context, p pictures) error {
	ctx, cancel := context.WithTimeout(ctx, v.limit)
	defer cancel()
	if err := p.Start(ctx); err != nil {
		return fmt.Errorf("%w (--connect-timeout %v)", err, v.limit)
	}
	s := p.Snapshot()
	if _, there := s.Root(); !there {
		return fmt.Errorf("%s does not exist", v.path)
	}
	return write(v.cmd.OutOrStdout(), v.form, v.nodes(s, p.State()))
}

// nodes are the rows of a snapshot.
func (v viewer) nodes(s *cache.Snapshot[[]byte], state cache.State) (all []event) {
	for _, n := range s.All() {
		e := v.row(exists, "", s.Zxid(), state)
		e.Path = n.Path
		v.describe(&e, &n)
		all = append(all, e)
	}
	return all
}

// follow writes the nodes that there are, and every change.
func (v viewer) follow(ctx context.Context, p pictures) error {
	out := newListing[event](v.cmd.OutOrStdout(), v.form)
	late := time.AfterFunc(v.limit, func() {
		_, _ = fmt.Fprintf(v.cmd.ErrOrStderr(), "docent: %s could not be read for %v: it is %v\n", v.path, v.limit, p.State())
	})
	err := p.Start(ctx)
	late.Stop()
	if err != nil && ctx.Err() == nil {
		return err
	}
	for change, err := range p.Changes(ctx) {
		if err != nil {
			return err
		}
		e := v.row(change.Kind.String(), change.Cause.String(), change.Zxid, change.State)
		e.Path = change.Path
		switch change.Kind {
		case cache.Began:
			e.Cause = ""
			if _, there := change.Snapshot.Root(); !there {
				_, _ = fmt.Fprintf(v.cmd.ErrOrStderr(), "docent: %s does not exist yet\n", v.path)
			}
			err = out.add(append([]event{e}, v.nodes(change.Snapshot, change.State)...)...)
		default:
			v.describe(&e, change.New)
			if change.Kind == cache.BecameStale && change.State.Err != nil {
				e.Error = change.State.Err.Error()
				e.Short = e.Error
			}
			err = out.add(e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// row is an event without a node.
func (v viewer) row(kind, cause string, zxid int64, state cache.State) event {
	return event{Time: time.Now().UTC().Format(time.RFC3339), Kind: kind, Cause: cause, Zxid: zxid, State: state.Phase.String()}
}

// describe fills in what an event says of its node, which is nil if it is gone.
func (v viewer) describe(e *event, n *cache.Node[[]byte]) {
	if n == nil {
		return
	}
	e.Session = sessionOf(n.EphemeralOwner)
	e.NodeVersion, e.Version = &n.Version, fmt.Sprint(n.Version)
	e.Modified, e.Changed = moment(n.Modified()), n.Modified().UTC().Format(time.RFC3339)
	text, encoding := readable(n.Value)
	e.Size, e.Data, e.Encoding = len(n.Value), &text, encoding
	e.Short = shortened(text, encoding, v.form)
	var hidden *cache.UnreadableError
	if errors.As(n.Err, &hidden) {
		e.Error = n.Err.Error()
		e.Short = "may not be read: pass credentials with --auth"
	}
}

// readable returns data as it is if it is text, and otherwise in base64.
func readable(data []byte) (text, encoding string) {
	unfit := func(r rune) bool { return unicode.IsControl(r) && !strings.ContainsRune("\t\r\n", r) }
	if utf8.Valid(data) && strings.IndexFunc(string(data), unfit) < 0 {
		return string(data), asText
	}
	return base64.StdEncoding.EncodeToString(data), asBase64
}

// Data in tables is no longer than this, in characters.
const (
	shortData = 60
	longData  = 1000
)

func shortened(text, encoding string, form format) string {
	limit := shortData
	if form == wide {
		limit = longData
	}
	if encoding == asBase64 {
		text = asBase64 + ":" + text
	}
	runes := []rune(text)
	if len(runes) <= limit {
		return text
	}
	return string(runes[:limit]) + "..."
}
