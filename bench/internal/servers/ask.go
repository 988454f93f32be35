package servers

import (
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

const askTimeout = 10 * time.Second

// ask sends a line to a server and returns its answer up to the end of the connection.
// If until is not empty, the answer ends where until comes.
func ask(ctx context.Context, addr, line, until string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return "", err
	}
	defer func() { _ = c.Close() }()
	if deadline, ok := ctx.Deadline(); ok {
		_ = c.SetDeadline(deadline)
	}
	if _, err := io.WriteString(c, line); err != nil {
		return "", err
	}
	var said strings.Builder
	part := make([]byte, 16<<10)
	for {
		n, err := c.Read(part)
		said.Write(part[:n])
		if err == io.EOF || err == nil && until != "" && strings.Contains(said.String(), until) { //nolint:errorlint // io.Reader says EOF as it is
			return said.String(), nil
		}
		if err != nil {
			return "", err
		}
	}
}

// field finds the number that stands behind a key at the begin of a line.
func field(text, key string) (float64, error) {
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(line, key)
		if !ok {
			continue
		}
		return strconv.ParseFloat(strings.TrimSpace(rest), 64)
	}
	return 0, fmt.Errorf("no %s in %q", key, text[:min(len(text), 200)])
}
