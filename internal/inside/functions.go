package inside

import (
	"context"
	"fmt"
	"log/slog"
)

// Functions are what package client does for recipes alone. Everything is safe for
// concurrent use. The errors are those of the client's operations.
type Functions[Client, Session, Op any] struct {
	// CreateAndList makes one node, and lists its directory and what is
	// beside it. It is the first step of every recipe that queues. All
	// requests leave together, so it costs one round trip; the lists may be
	// missing if the connection failed in between. Missing parents are made
	// as by client.WithParents.
	//
	// On error no node remains, or its removal goes on in the background until
	// it succeeds or the session is over.
	CreateAndList func(ctx context.Context, s *Session, node Node[Client]) (Entry, error)

	// CreateGroup makes several nodes and applies parts, all in one
	// transaction or not at all. No other change comes between two of the
	// nodes, in whatever directories they are, and all have the same Czxid.
	// With the lists asked for it costs one round trip. Missing parents are
	// made before, as by client.WithParents.
	//
	// A lost answer is resolved as with client.Protected, so that nothing is
	// applied twice, unless somebody deletes all of the nodes before they are
	// looked for. If one of parts is refused, the error is a
	// *client.MultiError with its index among parts.
	//
	// On error no node remains, or its removal goes on in the background until
	// it succeeds or the session is over. If the error matches
	// client.UnknownOutcome, parts may have been applied.
	CreateGroup func(ctx context.Context, s *Session, nodes []Node[Client], parts ...Op) ([]Entry, error)

	// Hold begins to rely on the nodes at paths, which the session has made.
	// If the newest proof is old it waits for another, within ctx; a session
	// that has just made the nodes needs none.
	//
	// lost is called once if the holding ends before [Holding.Done]: with an
	// error that matches client.ErrLeaseExpired at the latest when the
	// deadline less the safety margin has come, or client.ErrNoNode when a
	// heartbeat found a node missing. It must not block. It is not called when
	// the session ends, for which there is the session's context. If Hold
	// fails lost is not called; the error then says why there is no proof,
	// matches client.ErrNoNode if a node does not exist, or
	// client.ErrUnsafeTimeout.
	//
	// After the deadline of a holding that ended with ErrLeaseExpired its
	// nodes are in everybody's way. If it is not given up by then, with Done,
	// the nodes are deleted in the background, and the session goes on. If the
	// session was not proved again by then, it is ended instead, and all that
	// it holds with it. Deleting may take several tries, so the paths must be
	// names that nobody will use again, such as those of sequential or
	// protected nodes.
	Hold func(ctx context.Context, s *Session, lost func(error), paths ...string) (Holding, error)

	// DeleteInBackground deletes a node of the session without waiting: it is
	// tried until the node is gone, or the session is over and an ephemeral
	// node with it. A refusal, whatever its reason, is logged once, and it
	// goes on: others may be waiting for the node to go. The error says that
	// the path is none.
	DeleteInBackground func(s *Session, path string) error

	// In returns the same session with the paths of c. The error says that c
	// is nil or has another Root than the client that s came from: it has
	// sessions of its own then.
	In func(s *Session, c *Client) (*Session, error)

	// Root returns the client of the connect string itself: its paths start at
	// the chroot. Clients that share a session have the same Root.
	Root func(c *Client) *Client

	// ServerPath maps a path to the one that servers and other clients know:
	// with the chroot and the namespace in front.
	ServerPath func(c *Client, path string) (string, error)

	// DefaultData is what recipes write into their nodes unless they are given
	// data: that of client.WithDefaultData, else the textual address of this
	// host as the servers see it, with more behind it if the client was named
	// by client.WithName. Curator writes its own host's address in the same
	// form.
	DefaultData func(c *Client) []byte

	// Logger is that of client.WithLogger.
	Logger func(c *Client) *slog.Logger

	// Tell has f, which calls a hook of client.Observer, run on a goroutine on
	// which no lease depends, behind what was told before. It does not block. If
	// a hook does not return, f may be dropped.
	Tell func(c *Client, f func())
}

// provided are the Functions of package client.
var provided any //nolint:gochecknoglobals // written once, while packages are initialised

// Provide is called by package client, once, while it is initialised. Its
// result is there for a declaration to call it.
func Provide[Client, Session, Op any](in Functions[Client, Session, Op]) struct{} {
	provided = in
	return struct{}{}
}

// Of returns what package client has provided. It is for packages that import
// client, while they are initialised.
func Of[Client, Session, Op any]() Functions[Client, Session, Op] {
	in, ok := provided.(Functions[Client, Session, Op])
	if !ok {
		panic(fmt.Sprintf("inside: package client provides %T, and not %T", provided, in))
	}
	return in
}
