package client

import (
	"context"
	"log/slog"
	"net"
	"slices"

	"github.com/docent-go/docent/client/internal/duties"
	"github.com/docent-go/docent/client/internal/fate"
	"github.com/docent-go/docent/client/internal/session"
	"github.com/docent-go/docent/client/internal/watches"
	"github.com/docent-go/docent/internal/inside"
	"github.com/docent-go/docent/internal/wire"
)

// Only recipes need these functions. They are handed over here, and are not part of
// the API.
var _ = inside.Provide(inside.Functions[Client, Session, Op]{
	CreateAndList:      createAndList,
	CreateGroup:        createGroup,
	LostTry:            lostTry,
	ProtectedPrefix:    func() string { return newProtectedPrefix(false) },
	Orderly:            orderly,
	Guard:              setGuard,
	GuardChildren:      setGuardOfChildren,
	Watch:              watchNodes,
	Lists:              listNodes,
	Kept:               func(c *Client, what any, init func() any) any { return c.core.keep(what, init) },
	Hold:               hold,
	DeleteInBackground: deleteInBackground,
	In:                 sessionIn,
	Root:               func(c *Client) *Client { return c.core.root },
	ServerPath:         func(c *Client, path string) (string, error) { return c.full(path) },
	Oversized:          fate.IsHangUp,
	MaxRequest:         func(c *Client) int { return c.core.cfg.maxRequest },
	MaxReply:           func(c *Client) int { return c.core.cfg.maxReply },
	DefaultData:        defaultNodeData,
	LocalAddress:       localAddress,
	Logger:             func(c *Client) *slog.Logger { return c.core.log },
	Feed:               openFeed,
	Contact:            clientContact,
	Tell:               func(c *Client, f func()) { c.core.teller.Tell(f) },
})

// keep is inside.Functions.Kept.
func (c *core) keep(what any, init func() any) any {
	kept, ok := c.kept.Load(what)
	if !ok {
		kept, _ = c.kept.LoadOrStore(what, init())
	}
	return kept
}

// orderly is inside.Functions.Orderly.
func orderly(s *Session) bool { return s.session.Product() == session.ApacheZooKeeper }

// defaultNodeData is inside.Functions.DefaultData. The address is not known before the
// first connection of a client [WithLazyConnect].
func defaultNodeData(c *Client) []byte {
	if c.core.cfg.hasDefaultData {
		return slices.Clone(c.core.cfg.defaultData)
	}
	return slices.Clone(*c.core.ownData.Load())
}

// localAddress is inside.Functions.LocalAddress.
func localAddress(c *Client) string {
	if at, isTCP := (*c.core.local.Load()).(*net.TCPAddr); isTCP {
		return at.IP.String()
	}
	return ""
}

// setGuard is inside.Functions.Guard.
func setGuard(ctx context.Context, s *Session, path string) inside.Guard {
	full, err := s.full(path)
	if err != nil || !orderly(s) {
		return nil
	}
	_, w, err := s.session.hub.ReadOne(ctx, wire.OpGetData, full)
	if err != nil {
		return nil
	}
	return w
}

// setGuardOfChildren is inside.Functions.GuardChildren.
func setGuardOfChildren(ctx context.Context, s *Session, path string) ([]string, inside.Guard) {
	full, err := s.full(path)
	if err != nil || !orderly(s) {
		return nil, nil
	}
	x, w, err := s.session.hub.ReadOne(ctx, wire.OpGetChildren, full)
	if err != nil {
		return nil, nil
	}
	return names(x), w
}

// openFeed is inside.Functions.Feed.
func openFeed(ctx context.Context, c *Client, path string, mode inside.FeedMode) (inside.Feed, error) {
	full, err := c.followed(ctx, path)
	if err != nil {
		return nil, err
	}
	names := watches.Names{Top: max(c.prefix, "/"), Full: c.full, Stripped: c.stripped}
	if mode == inside.FeedOneShot {
		return c.core.watches.Lone(names)
	}
	return c.core.watches.Follow(ctx, names, full, mode == inside.FeedDeep)
}

// clientContact is inside.Functions.Contact.
func clientContact(c *Client) inside.Contact {
	state := c.core.state()
	newest := c.core.states.newest()
	return inside.Contact{
		Connected: state == Connected, Closed: state == Closed, Connection: c.core.watches.Connection(),
		Since: newest.change.At, Err: newest.change.Err, Changed: newest.ready,
	}
}

// listNodes is inside.Functions.Lists.
func listNodes(ctx context.Context, s *Session, first, second string) (lists [2][]string, err error) {
	var full [2]string
	for i, path := range [...]string{first, second} {
		if full[i], err = s.full(path); err != nil {
			return lists, s.invalid(ctx, "children", path, err)
		}
	}
	err = s.do(ctx, "children", first, reads, func(ctx context.Context, t try) error {
		x, y := session.Ask(wire.OpGetChildren, full[0]), session.Ask(wire.OpGetChildren, full[1])
		err := t.s.Call(ctx, x, y)
		lists = [2][]string{names(x), namesOrNone(y)}
		return err
	})
	return lists, err
}

// watchNodes is inside.Functions.Watch.
func watchNodes(ctx context.Context, s *Session, paths ...string) (nodes []inside.Watched, err error) {
	full := make([]string, len(paths))
	for i, path := range paths {
		if full[i], err = s.full(path); err != nil {
			return nil, s.invalid(ctx, "get", path, err)
		}
	}
	nodes = make([]inside.Watched, len(paths))
	err = s.do(ctx, "get", paths[0], reads, func(ctx context.Context, t try) error {
		reads, err := t.s.hub.Read(ctx, wire.OpGetData, full...)
		for i, r := range reads {
			if nodes[i] = (inside.Watched{Err: r.Err}); r.Err == nil {
				nodes[i] = inside.Watched{Data: r.X.Reply.Data, Stat: stat(r.X), Watch: &OneShotWatch{wait: r.Wait}}
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return nodes, nil
}

// deleteInBackground is inside.Functions.DeleteInBackground.
func deleteInBackground(s *Session, path string, gone func()) error {
	full, err := s.full(path)
	if err != nil {
		call(gone)
		return &OpError{Op: "delete", Path: path, Outcome: OutcomeNeverSent, Err: err}
	}
	s.core.remover.Add(&duties.Removal{Owner: s.session, What: full, Full: []string{full}, Gone: gone})
	return nil
}
