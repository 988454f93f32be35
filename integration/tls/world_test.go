// Package tls_test uses real servers by TLS: which clients are let in, and what
// the others hear. It tests ACLs for certificates, and certificates that are
// replaced while locks are held. The keys are made by the commands of
// docs/tls.md.
//
// The suite of the mutex by TLS is in integration/locks, the promise to be told in
// time in integration/lease.
package tls_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
)

// limited bounds a test; nothing in it may wait for ever.
func limited(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func quiet() client.Option { return client.WithLogger(slog.New(slog.DiscardHandler)) }

// names is where hosts of connect strings are to be found, which have no DNS here.
type names map[string]string

func (n names) dial(ctx context.Context, network, address string) (net.Conn, error) {
	at, ok := n[address]
	if !ok {
		return nil, fmt.Errorf("no server is %s", address)
	}
	return new(net.Dialer).DialContext(ctx, network, at)
}

func closed(ctx context.Context, t *testing.T, c *client.Client) {
	t.Helper()
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err := c.CloseContext(bounded); err != nil {
		t.Errorf("close: %v", err)
	}
}
