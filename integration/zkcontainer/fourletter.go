package zkcontainer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
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
var ErrNotServing = errors.New("zkcontainer: server is not serving requests")

// FourLetter sends one four-letter word, such as "mntr", and returns the answer. It fails
// when the server is stopped or paused, with [ErrNotServing] when it has no quorum, and when
// it does not allow the word. It gives up after five seconds.
func (c *Container) FourLetter(ctx context.Context, word string) (string, error) {
	if c.life.Err() != nil {
		return "", c.wrap(word, hopeless{context.Cause(c.life)})
	}
	bounded, cancel := context.WithTimeout(ctx, fourLetterLimit)
	defer cancel()
	answer, err := speak(bounded, c.Addr(), word)
	if err == nil {
		err = CheckAnswer(answer)
	}
	return answer, c.wrap(word, err)
}

// CheckAnswer returns the error that stands in the answer to a four-letter word, wherever
// the answer comes from. See [Container.FourLetter].
func CheckAnswer(answer string) error {
	switch {
	case answer == "":
		return fmt.Errorf("no answer: %w", io.ErrUnexpectedEOF)
	case strings.Contains(answer, "is not executed because it is not in the whitelist"):
		return errors.New(strings.TrimSpace(answer))
	case strings.Contains(answer, "not currently serving requests"):
		return ErrNotServing
	}
	return nil
}

func speak(ctx context.Context, addr, word string) (string, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	defer endWith(ctx, conn)()
	if _, err := io.WriteString(conn, word); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(conn)
	return string(answer), err
}

// Role asks the server what it is, by the four-letter word srvr. A server without quorum is
// [NotServing], which is no error; a server that does not answer is.
func (c *Container) Role(ctx context.Context) (Role, error) {
	answer, err := c.FourLetter(ctx, "srvr")
	role, err := ParseRole(answer, err)
	return role, err
}

// ParseRole reads the answer to srvr, with the error that came with it. See [Container.Role].
func ParseRole(answer string, err error) (Role, error) {
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
	return "", fmt.Errorf("zkcontainer: srvr names no mode: %q", answer)
}

// AwaitRole waits until the server says that it is one of these, and returns which. Without
// arguments it waits for any answer. It fails at once after Terminate.
func (c *Container) AwaitRole(ctx context.Context, roles ...Role) (Role, error) {
	var now Role
	err := poll(ctx, func(ctx context.Context) error {
		var err error
		if now, err = c.Role(ctx); err == nil && len(roles) > 0 && !slices.Contains(roles, now) {
			err = fmt.Errorf("server %d is %s, not one of %v", c.id, now, roles)
		}
		return err
	})
	return now, err
}
