//go:build foreign

package foreign_test

import (
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
)

// masks replace what no two runs have in common: random names, and session ids.
func mask(text string) string {
	text = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`).ReplaceAllString(text, "<uuid>")
	text = regexp.MustCompile(`[0-9a-f]{32}`).ReplaceAllString(text, "<hex>")
	text = regexp.MustCompile(`20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?`).ReplaceAllString(text, "<time>")
	return regexp.MustCompile(`queue-\|[0-9A-F]{8,16}\|`).ReplaceAllString(text, "queue-|<epoch>|")
}

// node is what is compared of a node. The names of siblings may be equal once masked.
type node struct {
	path  string
	text  string
	owner int64
}

// tree describes what is at and below a path, one line a node. Owners are numbered in
// the order of the lines, times and absolute transaction numbers left out.
func (c *conductor) tree(root string) ([]string, error) {
	var nodes []node
	if err := c.walk(root, &nodes); err != nil {
		return nil, err
	}
	slices.SortFunc(nodes, func(a, b node) int {
		return strings.Compare(a.path+"\x00"+a.text, b.path+"\x00"+b.text)
	})
	owners := map[int64]int{}
	lines := make([]string, len(nodes))
	for i, n := range nodes {
		owner := "persistent"
		if n.owner != 0 {
			if owners[n.owner] == 0 {
				owners[n.owner] = len(owners) + 1
			}
			owner = fmt.Sprintf("ephemeral of %d", owners[n.owner])
		}
		lines[i] = n.path + " " + owner + " " + n.text
	}
	return lines, nil
}

func (c *conductor) walk(at string, nodes *[]node) error {
	data, stat, err := c.conn.Get(at)
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	if errors.Is(err, zk.ErrNoAuth) {
		*nodes = append(*nodes, node{path: mask(at), text: "not readable"})
		return nil
	}
	if err != nil {
		return fmt.Errorf("get %s: %w", at, err)
	}
	acl, _, err := c.conn.GetACL(at)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return fmt.Errorf("get ACL of %s: %w", at, err)
	}
	rights := ""
	if len(acl) != 1 || acl[0] != zk.WorldACL(zk.PermAll)[0] {
		rights = fmt.Sprintf(" acl=%v", acl)
	}
	counts := fmt.Sprintf(" v=%d cv=%d av=%d set=%t changed=%t", stat.Version, stat.Cversion, stat.Aversion,
		stat.Mzxid != stat.Czxid, stat.Pzxid != stat.Czxid)
	if c.now.loose {
		counts = ""
	}
	*nodes = append(*nodes, node{
		path:  mask(at),
		owner: stat.EphemeralOwner,
		text:  fmt.Sprintf("n=%d data=%q%s%s", stat.NumChildren, mask(brief(data)), counts, rights),
	})
	names, _, err := c.conn.Children(at)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return fmt.Errorf("list %s: %w", at, err)
	}
	for _, name := range names {
		if err := c.walk(path.Join(at, name), nodes); err != nil {
			return err
		}
	}
	return nil
}

// brief is data of which a line can be printed.
func brief(data []byte) string {
	if len(data) > 200 {
		return fmt.Sprintf("%d bytes", len(data))
	}
	return string(data)
}

// awaitWatches waits until the server's own table has n pairs of a connection and
// a path at or below root. It returns each path with its number of connections.
func (s *server) awaitWatches(ctx context.Context, root string, n int) ([]string, error) {
	end := time.Now().Add(15 * time.Second) // as long as the programs wait for a condition
	for {
		answer, err := s.word(ctx, "wchp")
		if err != nil {
			return nil, err
		}
		lines, total := watched(answer, root)
		switch {
		case total == n:
			return lines, nil
		case time.Now().After(end):
			return lines, fmt.Errorf("%d watches, want %d: %v", total, n, lines)
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return lines, context.Cause(ctx)
		}
	}
}

// watched reads the answer to wchp: a path on a line of its own, then a line that begins
// with a tab for each session.
func watched(answer, root string) ([]string, int) {
	var lines []string
	total, count := 0, 0
	at := ""
	flush := func() {
		if at != "" && (at == root || strings.HasPrefix(at, root+"/")) {
			lines = append(lines, fmt.Sprintf("%s by %d", mask(at), count))
			total += count
		}
		count = 0
	}
	for line := range strings.Lines(answer) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "\t") {
			count++
			continue
		}
		flush()
		at = line
	}
	flush()
	slices.Sort(lines)
	return lines, total
}
