package client

// ParseConnectString lets tests judge connect strings without connecting.
var ParseConnectString = parseConnectString

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
