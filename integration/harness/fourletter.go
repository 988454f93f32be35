package harness

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/docent-go/docent/integration/zkcontainer"
)

// Role is what a server says it is.
type Role = zkcontainer.Role

// The roles. NotServing is a server that runs and has no quorum.
const (
	Leader     = zkcontainer.Leader
	Follower   = zkcontainer.Follower
	Observer   = zkcontainer.Observer
	Standalone = zkcontainer.Standalone
	NotServing = zkcontainer.NotServing
)

// ErrNotServing means that the server runs and answers, but has no quorum.
var ErrNotServing = zkcontainer.ErrNotServing

// FourLetter sends one four-letter word and returns the answer. While the node is
// cut from its clients the word is sent inside the node's network namespace. It
// fails when the node is stopped, paused, or does not allow the word.
func (n *Node) FourLetter(ctx context.Context, word string) (string, error) {
	if !n.clientsCut() {
		return n.server.FourLetter(ctx, word)
	}
	answer, err := n.askFromInside(ctx, word)
	if err == nil {
		err = zkcontainer.CheckAnswer(answer)
	}
	if err != nil {
		return answer, fmt.Errorf("node %d: %s: %w", n.ID(), word, err)
	}
	return answer, nil
}

// Role asks the server what it is. A server without quorum is [NotServing], which is
// no error; a server that does not answer is.
func (n *Node) Role(ctx context.Context) (Role, error) {
	return zkcontainer.ParseRole(n.FourLetter(ctx, "srvr"))
}

// AwaitRole waits until the server says that it is one of these, and returns which.
// Without arguments it waits for any answer.
func (n *Node) AwaitRole(ctx context.Context, roles ...Role) (Role, error) {
	return zkcontainer.Await(ctx, func(ctx context.Context) (Role, error) {
		role, err := n.Role(ctx)
		if err == nil && len(roles) > 0 && !slices.Contains(roles, role) {
			err = fmt.Errorf("node %d is %s, not one of %v", n.ID(), role, roles)
		}
		return role, err
	})
}

// Mntr returns the server's counters by name, without the prefix "zk_".
func (n *Node) Mntr(ctx context.Context) (map[string]string, error) {
	answer, err := n.FourLetter(ctx, "mntr")
	if err != nil {
		return nil, err
	}
	counters := map[string]string{}
	for line := range strings.Lines(answer) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
			counters[strings.TrimPrefix(name, "zk_")] = value
		}
	}
	return counters, nil
}
