// Package helper returns errors of Docent, and others, to packages that compare them.
package helper

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
)

// Read returns errors of Docent only.
func Read(ctx context.Context, c *client.Client) ([]byte, error) { // want Read:"wraps"
	data, _, err := c.Get(ctx, "/n")
	if err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	return data, nil
}

// Store has methods.
type Store struct{ c *client.Client }

// Delete returns what another function returns.
func (s *Store) Delete(ctx context.Context) error { return remove(ctx, s.c) } // want Delete:"wraps"

func remove(ctx context.Context, c *client.Client) error { return c.Delete(ctx, "/n", -1) }

// Plain takes the wrapper off.
func (s *Store) Plain(ctx context.Context) error {
	err := s.Delete(ctx)
	if errors.Is(err, zk.ErrNoNode) {
		return zk.ErrNoNode
	}
	return err
}

// Either returns the errors of both.
func Either(ctx context.Context, c *client.Client, raw *zk.Conn) error {
	if raw != nil {
		return raw.Delete("/n", -1)
	}
	return c.Delete(ctx, "/n", -1)
}
