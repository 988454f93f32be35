package inside

import (
	"context"
	"fmt"
	"log/slog"
)

// Functions are what package client does for recipes alone. Everything is safe for
// concurrent use. The errors are those of the client's operations.
type Functions[Client, Session, Op any] struct {
	// CreateAndList makes one node, and lists its directory if Node.List is set, and the
	// one of Node.Other. It is the first step of every recipe with a queue. All requests
	// leave together, so it costs one round trip. The lists may be missing if the
	// connection failed in between. Missing parents are made as by
	// client.WithParents.
	//
	// On error no node remains, or its removal goes on in the background until
	// it succeeds or the session is over.
	CreateAndList func(ctx context.Context, s *Session, node Node[Client]) (Entry, error)

	// CreateGroup makes several nodes and applies parts, all in one transaction or
	// not at all. No other change comes between two of the nodes, in whatever
	// directories they are, and all have the same Czxid. The lists that are asked for
	// leave with it, so it costs one round trip. Missing parents are made before, as
	// by client.WithParents.
	//
	// A lost answer is resolved as with client.Protected. So nothing is applied twice,
	// unless another client deletes all of the nodes before the search for them. If one
	// of parts is refused, the error is a *client.MultiError with its index among parts.
	//
	// On error no node remains, or its removal goes on in the background until
	// it succeeds or the session is over. If the error matches
	// client.UnknownOutcome, parts may have been applied.
	CreateGroup func(ctx context.Context, s *Session, nodes []Node[Client], parts ...Op) ([]Entry, error)

	// LostTry reports whether err is that of a CreateGroup of which an earlier try got no
	// answer. The nodes of that try were not found. It was not applied then, or another
	// client has deleted all of them since. What the last try says of parts may be due to
	// the earlier one.
	LostTry func(err error) bool

	// ProtectedPrefix returns "_c_<uuid>-" with a new UUID, as client.Protected puts it
	// in front of names. It is for recipes that resolve a lost answer themselves.
	ProtectedPrefix func() string

	// Orderly reports whether the servers are known to send an event before the answers
	// to requests that they run after the change, and to end no session with its
	// connection: whether they are Apache ZooKeeper.
	Orderly func(s *Session) bool

	// Guard sets a data watch on the node at path. It returns nil if it could not, or if
	// the servers are not Orderly.
	Guard func(ctx context.Context, s *Session, path string) Guard

	// Watch reads the data of the nodes at paths, and leaves a watch on each, as
	// client.Session.GetW does. The requests leave in one write, but for those of nodes
	// whose watches another request is about to change. The results are in the order of paths. A node that does
	// not exist, or may not be read, has an error of its own and no watch. After any
	// other error no watch is wanted.
	Watch func(ctx context.Context, s *Session, paths ...string) ([]Watched, error)

	// Lists lists two directories in one write, in this order. If the second does not
	// exist, its list is empty. If it could not be listed, its list is nil.
	Lists func(ctx context.Context, s *Session, first, second string) ([2][]string, error)

	// GuardChildren sets a watch on the children of the node at path, and returns these.
	// The guard tells of children that are made or deleted. It is nil if it could not be
	// set, or if the servers are not Orderly.
	GuardChildren func(ctx context.Context, s *Session, path string) ([]string, Guard)

	// Kept returns what recipes keep for the client under the key what: the result of
	// the init of one of the first calls. Clients that share a session share it. The key
	// is of a type of the caller's own.
	Kept func(c *Client, what any, init func() any) any

	// Hold begins to rely on the nodes at paths, which the session has made. If the
	// newest proof is old, Hold waits for another, within ctx. A session that has
	// just made the nodes has a proof.
	//
	// lost is called if the holding ends before [Holding.Done]. Its error matches
	// client.ErrLeaseExpired at the latest a safety margin before the deadline. It
	// matches client.ErrNoNode when a heartbeat found a node missing. Else it is the end
	// of the session. It may be called again when the session ends as well, and it must
	// not block. A holding that begins while the session ends learns that from
	// [Holding.Err] alone. If Hold fails lost is not called. The error of Hold says why
	// there is no proof, matches client.ErrNoNode if a node does not exist, or matches
	// client.ErrUnsafeTimeout.
	//
	// After the deadline of a holding that ended with ErrLeaseExpired, other clients
	// may wait for its nodes. If the holder has not called Done by then, the nodes
	// are deleted in the background, and the session goes on. If the session has not
	// been proved again by then, the session is ended instead, with everything that
	// it holds. A delete may take several tries. So no client may use the paths
	// again: they are names of sequential or protected nodes.
	Hold func(ctx context.Context, s *Session, lost func(error), paths ...string) (Holding, error)

	// DeleteInBackground deletes a node of the session and does not wait. The client
	// tries until the node is gone, or until the session is over and an ephemeral
	// node with it. A refusal, whatever its reason, is logged once, and the client
	// tries again: other clients may wait for the node to be deleted. The error says
	// that the path is invalid. Then, or as soon as the node does not stand any more, or the
	// client is closed, gone is called. It must not block. Optional.
	DeleteInBackground func(s *Session, path string, gone func()) error

	// In returns the same session with the paths of c. The error says that c is nil,
	// or has another Root than the client of s: then it has sessions of its own.
	In func(s *Session, c *Client) (*Session, error)

	// Root returns the client of the connect string itself: its paths start at
	// the chroot. Clients that share a session have the same Root.
	Root func(c *Client) *Client

	// ServerPath maps a path to the one that servers know: with the chroot and the
	// namespace in front.
	ServerPath func(c *Client, path string) (string, error)

	// Oversized reports whether the servers may have hung up because of the size of the
	// request that failed with err: their jute.maxbuffer may be less than MaxRequest.
	Oversized func(err error) bool

	// MaxRequest is that of client.WithMaxRequest.
	MaxRequest func(c *Client) int

	// MaxReply is that of client.WithMaxReply.
	MaxReply func(c *Client) int

	// DefaultData is what recipes write into their nodes without data of the caller. It
	// is that of client.WithDefaultData. Without that it is the textual address of this
	// host as the servers see it. If the client has a name by client.WithName, the
	// process and the name follow. Curator writes the address of its host in the same
	// form.
	DefaultData func(c *Client) []byte

	// LocalAddress is the textual address of this host as the servers see it, on the newest
	// connection. It is empty before the first, and of a dialer without such addresses.
	LocalAddress func(c *Client) string

	// Logger is that of client.WithLogger.
	Logger func(c *Client) *slog.Logger

	// Feed follows the node at path: see [Feed]. Except with FeedOneShot the error
	// matches client.ErrUnsupported if the servers have no persistent watches that are
	// known to be right. Feed waits for a connection, within ctx. The feed stays until
	// it is closed or the client is.
	Feed func(ctx context.Context, c *Client, path string, mode FeedMode) (Feed, error)

	// Contact tells whether the client is connected.
	Contact func(c *Client) Contact

	// Tell queues f, which calls a hook of client.Observer. f runs on a goroutine on
	// which no lease depends, after the calls that were queued before. Tell does not
	// block. If a hook does not return, f may be dropped.
	Tell func(c *Client, f func())
}

// provided are the Functions of package client.
var provided any //nolint:gochecknoglobals // written once, while packages are initialised

// Provide is called by package client, once, while it is initialised. It has a result
// so that a declaration can call it.
func Provide[Client, Session, Op any](in Functions[Client, Session, Op]) struct{} {
	provided = in
	return struct{}{}
}

// Of returns what package client has provided. Packages that import client call it
// while they are initialised.
func Of[Client, Session, Op any]() Functions[Client, Session, Op] {
	in, ok := provided.(Functions[Client, Session, Op])
	if !ok {
		panic(fmt.Sprintf("inside: package client provides %T, and not %T", provided, in))
	}
	return in
}
