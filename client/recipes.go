package client

import (
	"log/slog"

	"github.com/docent-go/docent/internal/inside"
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
	In:                 inNamespace,
	Root:               func(c *Client) *Client { return c.core.root },
	ServerPath:         func(c *Client, path string) (string, error) { return c.full(path) },
	Oversized:          oversized,
	MaxRequest:         func(c *Client) int { return c.core.cfg.maxRequest },
	MaxReply:           func(c *Client) int { return c.core.cfg.maxReply },
	DefaultData:        defaultData,
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
