package client

import (
	"context"
	"net"
)

// ParseConnectString lets tests judge connect strings without connecting.
var ParseConnectString = parseConnectString

// Share lets tests see how the time of a dial is shared.
var Share = share

// HubSize is the number of watches that the present session of c keeps.
func HubSize(c *Client) int {
	c.core.mu.Lock()
	h := c.core.current.hub
	c.core.mu.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.watches)
}

// DeadSessions is how many sessions c still means to end on a server.
func DeadSessions(c *Client) int {
	c.core.mu.Lock()
	defer c.core.mu.Unlock()
	return len(c.core.dead)
}

// Resolved is dial with another resolver: the addresses that names have now.
func Resolved(ctx context.Context, addr string, resolve func(ctx context.Context, host string) ([]string, error)) (net.Conn, error) {
	cfg, err := newConfig(addr, nil)
	if err != nil {
		return nil, err
	}
	s := newServers(cfg, newJournal(cfg.logger))
	s.resolve = resolve
	return s.dial(ctx, addr)
}
