package harness

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// WatchCount is how many watches one server keeps.
type WatchCount struct {
	Connections int // connections with at least one watch
	Paths       int // watched paths
	Total       int // pairs of connection and path
}

// Watches asks the server for its number of watches. Each server knows only those of
// its own connections.
func (n *Node) Watches(ctx context.Context) (WatchCount, error) {
	answer, err := n.FourLetter(ctx, "wchs")
	if err != nil {
		return WatchCount{}, err
	}
	var c WatchCount
	if _, err := fmt.Sscanf(answer, "%d connections watching %d paths\nTotal watches:%d", &c.Connections, &c.Paths, &c.Total); err != nil {
		return WatchCount{}, fmt.Errorf("node %d: wchs answered %q: %w", n.ID(), answer, err)
	}
	return c, nil
}

// WatchesByPath asks the server which sessions watch each path.
func (n *Node) WatchesByPath(ctx context.Context) (map[string][]int64, error) {
	byPath := map[string][]int64{}
	err := n.watchTable(ctx, "wchp", func(path, session string) error {
		id, err := parseSession(session)
		byPath[path] = append(byPath[path], id)
		return err
	})
	return byPath, err
}

// WatchesBySession asks the server which paths each session watches.
func (n *Node) WatchesBySession(ctx context.Context) (map[int64][]string, error) {
	bySession := map[int64][]string{}
	err := n.watchTable(ctx, "wchc", func(session, path string) error {
		id, err := parseSession(session)
		bySession[id] = append(bySession[id], path)
		return err
	})
	return bySession, err
}

// watchTable reads the answer to wchp or wchc: a key at the start of a line, its
// values indented below it.
func (n *Node) watchTable(ctx context.Context, word string, pair func(key, value string) error) error {
	answer, err := n.FourLetter(ctx, word)
	if err != nil {
		return err
	}
	key := ""
	for line := range strings.Lines(answer) {
		text := strings.TrimSpace(line)
		switch {
		case text == "":
		case !strings.HasPrefix(line, "\t"):
			key = text
		default:
			if err := pair(key, text); err != nil {
				return fmt.Errorf("node %d: %s: %w", n.ID(), word, err)
			}
		}
	}
	return nil
}

func parseSession(text string) (int64, error) {
	id, err := strconv.ParseUint(strings.TrimPrefix(text, "0x"), 16, 64)
	return int64(id), err
}
