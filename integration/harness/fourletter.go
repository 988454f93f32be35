package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// Role is what a server says it is.
type Role string

// The roles. NotServing is a server that runs and has no quorum.
const (
	Leader     Role = "leader"
	Follower   Role = "follower"
	Observer   Role = "observer"
	Standalone Role = "standalone"
	NotServing Role = "not serving"
)

// fourLetterLimit bounds one exchange when ctx does not.
const fourLetterLimit = 5 * time.Second

// ErrNotServing means that the server runs and answers, but has no quorum.
var ErrNotServing = errors.New("harness: server is not serving requests")

// FourLetter sends one four-letter word and returns the answer. While the node is
// cut from its clients the word is sent inside the node's network namespace. It
// fails when the node is stopped, paused, or does not allow the word.
func (n *Node) FourLetter(ctx context.Context, word string) (string, error) {
	bounded, cancel := context.WithTimeout(ctx, fourLetterLimit)
	defer cancel()
	ask := n.askFromHost
	if n.clientsCut() {
		ask = n.askFromInside
	}
	answer, err := ask(bounded, word)
	switch {
	case err != nil:
		return "", fmt.Errorf("node %d: %s: %w", n.id, word, err)
	case answer == "":
		return "", fmt.Errorf("node %d: %s: no answer: %w", n.id, word, io.ErrUnexpectedEOF)
	case strings.Contains(answer, "is not executed because it is not in the whitelist"):
		return "", fmt.Errorf("node %d: %s: %s", n.id, word, strings.TrimSpace(answer))
	case strings.Contains(answer, "not currently serving requests"):
		return answer, fmt.Errorf("node %d: %s: %w", n.id, word, ErrNotServing)
	}
	return answer, nil
}

func (n *Node) askFromHost(ctx context.Context, word string) (string, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", n.Addr())
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := io.WriteString(conn, word); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(conn)
	return string(answer), err
}

// Role asks the server what it is. A server without quorum is [NotServing], which is
// no error; a server that does not answer is.
func (n *Node) Role(ctx context.Context) (Role, error) {
	answer, err := n.FourLetter(ctx, "srvr")
	if errors.Is(err, ErrNotServing) {
		return NotServing, nil
	}
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(answer) {
		if mode, ok := strings.CutPrefix(line, "Mode: "); ok {
			return Role(strings.TrimSpace(mode)), nil
		}
	}
	return "", fmt.Errorf("node %d: srvr names no mode: %q", n.id, answer)
}

// AwaitRole waits until the server says that it is one of these, and returns which.
func (n *Node) AwaitRole(ctx context.Context, roles ...Role) (Role, error) {
	var now Role
	err := poll(ctx, func(ctx context.Context) error {
		role, err := n.Role(ctx)
		if err != nil {
			return err
		}
		for _, r := range roles {
			if role == r {
				now = r
				return nil
			}
		}
		return fmt.Errorf("node %d is %s, not one of %v", n.id, role, roles)
	})
	return now, err
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

// awaitAnswer waits until the server answers at all, serving or not.
func (n *Node) awaitAnswer(ctx context.Context) error {
	return poll(ctx, func(ctx context.Context) error {
		answer, err := n.FourLetter(ctx, "ruok")
		if err == nil && answer != "imok" {
			return fmt.Errorf("node %d: ruok answered %q", n.id, answer)
		}
		return err
	})
}
