package harness

import (
	"context"

	"github.com/docent-go/docent/integration/zkcontainer"
)

// Keys is the key material of one server, as PEM.
type Keys = zkcontainer.Keys

// WithTLS opens a second client port on every server, which speaks TLS and wants
// a certificate of every client; see [Node.SecureAddr]. keys is called with the
// id of each server. A later [WithProperty] overrides what this sets.
func WithTLS(keys func(id int) Keys) Option { return with(zkcontainer.WithTLSKeys(keys)) }

// SecureAddr is where clients reach the server by TLS; it is the same for the
// node's whole life. It is empty without [WithTLS].
func (n *Node) SecureAddr() string { return n.server.SecureAddr() }

// SecureAddrs returns the addresses for TLS of all nodes in the order of their ids.
func (e *Ensemble) SecureAddrs() []string { return e.servers.SecureServers() }

// SetKeys replaces the files that [WithTLS] made. A server reads them when it starts.
func (n *Node) SetKeys(ctx context.Context, keys Keys) error { return n.server.SetTLSKeys(ctx, keys) }
